// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Float32} from "../../../contracts/arithmetic/Float32.sol";
import {MerkleBranch} from "../../../contracts/commitments/MerkleBranch.sol";
import {Clocks} from "../../../contracts/dispute/Clock.sol";
import {DrandBeacon} from "../../../contracts/market/DrandBeacon.sol";
import {Distance, GameTest, Level} from "../dispute/GameTest.sol";
import {Drand, G1Point} from "../market/Drand.sol";

/// @notice Fixed calls whose gas is on record in .ci/gas.json; `.ci/gas.py` says if one has become dearer.
/// @dev Operands come as arguments of internal functions, so that no compiler computes the results.
contract GasRecord {
    uint256 private constant A = 0x3fc90fdb; // pi / 2
    uint256 private constant B = 0xbf317218; // -ln 2
    uint256 private constant C = 0x402df854; // e
    uint256 private constant SUBNORMAL = 0x00012345;

    /// @dev Storage is opaque to the optimizer.
    uint256[4] private words = [A, B, C, SUBNORMAL];
    uint256 private sink;

    function test_add() public {
        sink = Float32.add(words[0], words[1]);
    }

    function test_add_subnormal() public {
        sink = Float32.add(words[3], words[3]);
    }

    function test_mul() public {
        sink = Float32.mul(words[0], words[1]);
    }

    function test_mul_subnormal() public {
        sink = Float32.mul(words[0], words[3]);
    }

    function test_div() public {
        sink = Float32.div(words[0], words[1]);
    }

    function test_fma() public {
        sink = Float32.fma(words[0], words[1], words[2]);
    }

    function test_fma_subnormal() public {
        sink = Float32.fma(words[0], words[1], words[3]);
    }

    function test_sqrt() public {
        sink = Float32.sqrt(words[0]);
    }

    function test_compare() public {
        sink = Float32.lt(words[0], words[1]) ? 1 : 2;
    }

    function test_distance_of_words() public {
        sink = Distance.ofWords(words[0], words[1], 1, 0) + 1;
    }

    function test_distance_sum() public {
        sink = Distance.add(words[0], words[1]);
    }

    function test_press() public {
        sink = Clocks.press(words[0] << 72 | words[2] << 40 | 2 ** 39, address(this), Level(1), 2, words[3] & 0xffff);
    }

    function test_branch_of_20() public {
        sink = uint256(this.climb(bytes32(words[0]), 0xaaaaa, new bytes32[](20)));
    }

    function climb(bytes32 leaf, uint256 index, bytes32[] calldata branch) external pure returns (bytes32) {
        return MerkleBranch.climbIn(leaf, index, branch, 2 ** 20);
    }
}

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

/// @notice Gas of a signature of drand, on record in .ci/gas.json as `Gas.t.sol`: execution alone, without calldata and
/// the 21,000 of a transaction.
contract BeaconGas is Drand {
    uint64 private constant ROUND = 30_662_990;
    DrandBeacon private drand = new DrandBeacon(60);
    G1Point private signature = signatureOf(ROUND);

    function setUp() public {
        vm.warp(drand.timeOf(ROUND));
    }

    function test_drand_submit() public {
        drand.submit(ROUND, signature);
    }
}
