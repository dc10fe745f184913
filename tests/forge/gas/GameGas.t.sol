// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {GameTest} from "../dispute/GameTest.sol";

/// @notice Gas of the game's calls in a dispute about two steps of the toy program, on record in .ci/gas.json. Calldata
/// and the 21,000 of a transaction are not in it, nor what the market does when it is told.
contract GameGas is GameTest {
    modifier metered() {
        vm.pauseGasMetering();
        _;
        vm.pauseGasMetering();
    }

    function test_game_start() public metered {
        _after(0);
        bytes memory call = abi.encodeCall(game.start, (params, _header(), p.opened));
        _measure(address(resolver), call);
    }

    function test_game_answer() public metered {
        _measureMove(0, game.answer.selector);
    }

    function test_game_describe() public metered {
        _measureMove(1, game.describe.selector);
    }

    function test_game_unfold() public metered {
        _measureMove(2, game.unfold.selector);
    }

    function test_game_prove_step() public metered {
        _measureMove(3, game.proveStep.selector);
    }

    function test_game_timeout() public metered {
        _after(1);
        vm.warp(game.deadline(number));
        _measure(asserter, abi.encodeCall(game.timeout, (number)));
    }

    /// @dev The first `moves` moves of a dispute in which the asserter is wrong about an element of a map.
    function _after(uint256 moves) private {
        outputs[_key(1, FIRST_STEP + 1)][2][1] ^= 1;
        _advance(_key(1, FIRST_STEP + 1));
        _cast(true);
        _start(_replay(2));
        for (uint256 i = 0; i < moves; i++) {
            _move();
        }
    }

    function _measureMove(uint256 moves, bytes4 selector) private {
        _after(moves);
        (bytes memory call,) = _prepare();
        vm.assertTrue(bytes4(call) == selector);
        _measure(_onTurn(), call);
    }

    /// @dev As the first call of a transaction, with a market that does nothing.
    function _measure(address sender, bytes memory call) private {
        vm.etch(address(resolver), hex"00");
        vm.cool(address(game));
        vm.cool(address(game.oneStep()));
        vm.cool(address(game.starts()));
        vm.cool(address(resolver));
        address target = address(game);
        vm.prank(sender);
        vm.resumeGasMetering();
        (bool success,) = target.call(call);
        vm.pauseGasMetering();
        vm.assertTrue(success);
    }
}
