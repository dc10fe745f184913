// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DisputeGame, DisputeStorage, GameTest} from "./GameTest.sol";

/// @notice Moves that somebody else sends: those that the side on turn has signed, and proofs.
contract RelayTest is GameTest {
    function setUp() public override {
        super.setUp();
        outputs[_key(1, STEP)][5][0] ^= 1;
        states[_key(1, STEP + 1)][0][0] ^= 1;
        _start(_replay(2));
    }

    function _digest(bytes32 head, bytes memory call) private view returns (bytes32) {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("pol dispute"),
                keccak256("1"),
                block.chainid,
                address(game)
            )
        );
        bytes32 content = keccak256(abi.encode(keccak256("Move(bytes32 head,bytes32 content)"), head, keccak256(call)));
        return keccak256(abi.encodePacked(hex"1901", domain, content));
    }

    function _signed(uint256 key, bytes memory call) private view returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, _digest(game.head(number), call));
        return abi.encodePacked(game.relay.selector, r, s, v, call);
    }

    function _key() private view returns (uint256) {
        return isAsserterOnTurn ? ASSERTER_KEY : CHALLENGER_KEY;
    }

    /// @dev Every kind of move of this game, sent by a stranger.
    function _relayAll() private {
        while (resolver.calls() == 0) {
            (bytes memory call, At memory next) = _prepare();
            bytes memory relayed = _signed(_key(), call);
            _send(address(this), relayed);
            _advanceTo(next);
        }
    }

    function test_a_whole_game() public {
        _relayAll();
        _expectResult(true);
    }

    function _startOfState() private {
        super.setUp();
        states[_key(1, STEP + 1)][1][0] ^= 1;
        _start(_replay(2));
    }

    /// @dev The asserter lies about a leaf.
    function _startOfSum() private {
        super.setUp();
        _sum(3);
        _sumLeaves(1);
        (slotSums[1][1], leafSums[1][1]) = (slotSums[1][1] + 1, leafSums[1][1] + 1);
        (asserterVersion, challengerVersion) = (1, 0);
        _start(_distance(3));
    }

    function test_a_whole_game_about_a_state() public {
        _startOfState();
        _relayAll();
        _expectResult(true);
    }

    function test_a_whole_game_about_a_sum() public {
        _startOfSum();
        _relayAll();
        _expectResult(false);
    }

    function test_resignation() public {
        bytes memory call = _call(game.resign.selector, 0, abi.encodePacked(_openingRoot()));
        _send(address(this), _signed(ASSERTER_KEY, call));
        _expectResult(false);
    }

    function test_signed_by_somebody_else() public {
        (bytes memory call,) = _prepare();
        bytes memory relayed = _signed(CHALLENGER_KEY, call);
        _refuse(asserter, relayed, abi.encodeWithSelector(DisputeStorage.WrongHead.selector, challenger));
        relayed = _signed(ASSERTER_KEY, call);
        relayed[68] = 0x00;
        _refuse(asserter, relayed, abi.encodeWithSelector(DisputeGame.WrongSignature.selector));
        _agree();
    }

    function test_another_move_than_the_signed_one() public {
        (bytes memory call,) = _prepare();
        bytes memory relayed = _signed(ASSERTER_KEY, call);
        relayed[relayed.length - 1] ^= 0x01;
        _refuse(address(this), relayed);
        _agree();
    }

    /// @dev What was signed for one head is nothing at another.
    function test_signed_for_another_head() public {
        (bytes memory call,) = _prepare();
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(ASSERTER_KEY, _digest(keccak256("elsewhere"), call));
        _refuse(address(this), abi.encodePacked(game.relay.selector, r, s, v, call));
        _agree();
    }

    function test_a_relayed_move_is_sent_once() public {
        (bytes memory call, At memory next) = _prepare();
        bytes memory relayed = _signed(ASSERTER_KEY, call);
        _send(address(this), relayed);
        _advanceTo(next);
        _refuse(address(this), relayed);
        _agree();
    }

    function test_what_is_no_move_is_not_relayed() public {
        bytes memory call = abi.encodePacked(game.timeout.selector, uint32(number), new bytes(60));
        bytes memory relayed = _signed(ASSERTER_KEY, call);
        _refuse(
            address(this), relayed, abi.encodeWithSelector(DisputeGame.NotRelayable.selector, game.timeout.selector)
        );
        call = _signed(ASSERTER_KEY, call);
        // A relay in a relay: the number of the inner one is not looked for behind its signature.
        _refuse(address(this), abi.encodePacked(game.relay.selector, new bytes(65), call));
        _refuse(address(this), abi.encodePacked(game.relay.selector, new bytes(40)), "");
    }

    function test_anybody_proves_a_slot_or_a_sum_for_the_side_on_turn() public {
        for (uint256 i = 0; i < 2; i++) {
            if (i == 0) _startOfState();
            else _startOfSum();
            for (uint256 moves = i; moves < 2; moves++) {
                _move();
            }
            (bytes memory call,) = _prepare();
            _send(account("anybody"), abi.encodePacked(game.help.selector, _onTurn(), call));
            _expectResult(i == 0);
        }
    }
}
