// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch} from "../../../contracts/commitments/MerkleBranch.sol";
import {MovePayload} from "../../../contracts/dispute/MovePayload.sol";
import {IStarts} from "../../../contracts/dispute/IStarts.sol";
import {Level} from "../../../contracts/dispute/Position.sol";
import {PublishedTrace} from "../../../contracts/dispute/PublishedTrace.sol";
import {PackedReader} from "../../../contracts/dispute/PackedReader.sol";
import {Transition} from "../../../contracts/dispute/Transition.sol";
import {PublishedGame} from "./PublishedGame.sol";

/// @notice Disputes that begin below a published trace: whoever says what is true wins, and what is shown is bound by
/// what was published.
contract PublishedTraceTest is PublishedGame {
    function _refuseStart(bytes memory payload, bytes memory reason) private {
        uint256 before = game.disputes();
        vm.expectRevert(reason);
        resolver.start(game, params, _header(), payload);
        vm.assertEq(game.disputes(), before);
    }

    function _error(bytes4 selector) private pure returns (bytes memory) {
        return abi.encodeWithSelector(selector);
    }

    function _error(bytes4 selector, uint256 a, uint256 b) private pure returns (bytes memory) {
        return abi.encodeWithSelector(selector, a, b);
    }

    // --- whole games ---

    /// @dev Version 1 has another word in one output of the last step, and all that follows from it.
    function _lie(uint256 node, uint256 element, bool asserterLies) private {
        setUp();
        outputs[_key(1, STEP)][node][element] ^= 1;
        _advance(_key(1, STEP));
        _cast(asserterLies);
    }

    function test_every_node() public {
        for (uint256 node = 0; node < 6; node++) {
            for (uint256 i = 0; i < 2; i++) {
                _lie(node, 0, i == 0);
                _beginNode(1, node);
                _show(_shownNode(1, node));
                _finish(i == 0);
            }
        }
    }

    function test_every_leaf() public {
        for (uint256 leaf = 0; leaf < 2; leaf++) {
            for (uint256 i = 0; i < 2; i++) {
                _lie(3, 64 * leaf + 1, i == 0);
                _beginLeaf(1, 3, leaf);
                _show(_shownLeaf(1, 3, leaf));
                _finish(i == 0);
            }
        }
    }

    /// @dev A lie in the first step: the state before it is the one that the claim starts from.
    function test_first_step() public {
        for (uint256 i = 0; i < 2; i++) {
            setUp();
            outputs[_key(1, FIRST_STEP)][2][1] ^= 1;
            _advance(_key(1, FIRST_STEP));
            _execute(_key(1, STEP));
            _advance(_key(1, STEP));
            _cast(i == 0);
            _beginNode(0, 2);
            _show(_shownNode(0, 2));
            _finish(i == 0);
        }
    }

    /// @dev What was published as the state before the first step is not looked at: the agreed one is `start`.
    function test_a_lie_about_the_state_before_the_first_step() public {
        outputs[_key(1, FIRST_STEP)][4][0] ^= 1;
        _cast(true);
        states[_key(1, FIRST_STEP)][0][0] ^= 1;
        _beginNode(0, 4);
        vm.assertNotEq(_pre(1, 0), facts.pre);
        bytes memory shown = _shownNode(0, 4);
        states[_key(1, FIRST_STEP)][0][0] ^= 1;
        _show(shown);
        _finish(true);
    }

    /// @dev The traces are right, a state is not: between two steps, and at the end.
    function test_every_state() public {
        for (uint256 step = 0; step < 2; step++) {
            for (uint256 i = 0; i < 2; i++) {
                setUp();
                states[_key(1, FIRST_STEP + step + 1)][1][65] ^= 1;
                _cast(i == 0);
                _beginState(step);
                _show(_shownState(step));
                vm.assertTrue(p.level == Level.STATE);
                _finish(i == 0);
            }
        }
    }

    // --- starts that are refused ---

    function test_more_steps_than_can_be_published() public {
        _lie(4, 0, true);
        _beginNode(1, 4);
        bytes memory payload = abi.encodePacked(_shownNode(1, 4), p.opened);
        params.steps = 2 ** 32;
        _refuseStart(payload, _error(IStarts.InvalidStart.selector));
        // One less is counted, and has a branch of 32 siblings.
        (params.firstStep, params.steps) = (0, 2 ** 32 - 1);
        bytes memory longer = abi.encodePacked(payload, new bytes(32 * 32));
        _refuseStart(longer, _error(PublishedTrace.NotPublished.selector));
    }

    function test_what_is_no_part_of_a_claim() public {
        _lie(4, 0, true);
        _beginNode(1, 4);
        bytes memory payload = abi.encodePacked(_shownNode(1, 4), p.opened);
        bytes1[3] memory wrong = [bytes1(0x00), 0x04, 0xff];
        for (uint256 i = 0; i < 3; i++) {
            payload[0] = wrong[i];
            _refuseStart(payload, abi.encodeWithSelector(PublishedTrace.UnknownPart.selector, uint256(uint8(wrong[i]))));
        }
    }

    function test_indices_that_do_not_exist() public {
        _lie(3, 0, true);
        _beginLeaf(1, 3, 0);
        bytes memory payload = abi.encodePacked(_shownLeaf(1, 3, 0), p.opened);
        bytes4 wrong = MerkleBranch.IndexOutOfRange.selector;
        payload[4] = 0x02; // step
        _refuseStart(payload, _error(wrong, 2, 2));
        payload[4] = 0x01;
        payload[STEP_SHOWN + 3] = 0x06; // node
        _refuseStart(payload, _error(wrong, 6, 6));
        payload[STEP_SHOWN + 3] = 0x03;
        uint256 leafAt = payload.length - 256 - 32 - 32 - 8;
        payload[leafAt + 7] = 0x02; // leaf
        _refuseStart(payload, _error(wrong, 2, 2));
        payload[leafAt + 7] = 0x00;
        payload[leafAt] = 0x01;
        _refuseStart(payload, _error(wrong, 2 ** 56, 2));
    }

    /// @dev Changes each byte of `[from, to)` of what is shown.
    function _refuseChanges(bytes memory payload, uint256 from, uint256 to, bytes4 selector) private {
        for (uint256 i = from; i < to; i += 5) {
            payload[i] ^= 0x01;
            _refuseStart(payload, _error(selector));
            payload[i] ^= 0x01;
        }
    }

    function test_what_was_not_published() public {
        _lie(3, 0, true);
        _beginLeaf(1, 3, 0);
        bytes memory payload = abi.encodePacked(_shownLeaf(1, 3, 0), p.opened);
        bytes4 wrong = PublishedTrace.NotPublished.selector;
        // State, trace and branch of the step; the node's root and branch; the leaf's hash and branch.
        _refuseChanges(payload, 5, STEP_SHOWN, wrong);
        uint256 descriptorAt = STEP_SHOWN + 4 + 4 * 32;
        _refuseChanges(payload, STEP_SHOWN + 4, descriptorAt, wrong);
        uint256 opened = payload.length - 256;
        _refuseChanges(payload, opened - 64, opened, wrong);
        // Another step, node or leaf than the one at which it stands.
        payload[4] = 0x00;
        _refuseStart(payload, _error(wrong));
        payload[4] = 0x01;
        payload[STEP_SHOWN + 3] = 0x02;
        _refuseStart(payload, _error(wrong));
        payload[STEP_SHOWN + 3] = 0x03;
        payload[opened - 64 - 1] = 0x01;
        _refuseStart(payload, _error(wrong));
        payload[opened - 64 - 1] = 0x00;
        // Branch and bytes of the descriptor.
        _refuseChanges(payload, descriptorAt, descriptorAt + 3 * 32, Transition.WrongDescriptor.selector);
        _refuseChanges(payload, descriptorAt + 3 * 32 + 2, opened - 64 - 8, Transition.WrongDescriptor.selector);
        _show(_shownLeaf(1, 3, 0));
    }

    function test_a_next_state_that_was_not_published() public {
        setUp();
        states[_key(1, STEP)][1][65] ^= 1;
        _cast(true);
        _beginState(0);
        bytes memory payload = abi.encodePacked(_shownState(0), p.opened);
        _refuseChanges(payload, 5, STEP_SHOWN + 3 * 32, PublishedTrace.NotPublished.selector);
        // The same step twice: the next one is another.
        payload = abi.encodePacked(STATE, uint32(0), _shownStep(0), _shownStep(0), p.opened);
        _refuseStart(payload, _error(PublishedTrace.NotPublished.selector));
        _show(_shownState(0));
    }

    /// @dev The challenger opens what was claimed: it would agree.
    function test_what_was_claimed_is_no_opening() public {
        _lie(3, 64, true);
        challengerVersion = 1;
        _beginNode(1, 3);
        _refuseStart(abi.encodePacked(_shownNode(1, 3), p.opened), _error(MovePayload.Agreed.selector));
        _beginNode(1, 0); // a single leaf
        _refuseStart(abi.encodePacked(_shownNode(1, 0), p.opened), _error(MovePayload.Agreed.selector));
        _beginLeaf(1, 3, 1);
        _refuseStart(abi.encodePacked(_shownLeaf(1, 3, 1), p.opened), _error(MovePayload.Agreed.selector));
        for (uint256 step = 0; step < 2; step++) {
            _beginState(step);
            _refuseStart(abi.encodePacked(_shownState(step), p.opened), _error(MovePayload.Agreed.selector));
        }
    }

    function _refuseLengths(bytes memory shown) private {
        uint256 length = p.opened.length;
        bytes4 wrong = MovePayload.WrongPayloadLength.selector;
        _refuseStart(shown, _error(wrong, 0, length));
        _refuseStart(abi.encodePacked(shown, p.opened, uint8(0)), _error(wrong, length + 1, length));
        for (uint256 i = 0; i < shown.length; i += 29) {
            bytes memory cut = new bytes(i);
            for (uint256 j = 0; j < i; j++) {
                cut[j] = shown[j];
            }
            uint256 before = game.disputes();
            vm.expectPartialRevert(PackedReader.MissingBytes.selector);
            resolver.start(game, params, _header(), cut);
            vm.assertEq(game.disputes(), before);
        }
    }

    function test_bytes_that_are_missing_or_left_over() public {
        _lie(3, 64, true);
        _beginNode(1, 3);
        _refuseLengths(_shownNode(1, 3));
        _beginLeaf(1, 3, 1);
        _refuseLengths(_shownLeaf(1, 3, 1));
        _beginState(0);
        _refuseLengths(_shownState(0));
    }

    function test_garbage_past_the_end_of_a_leaf() public {
        _lie(3, 64, true);
        _beginLeaf(1, 3, 1);
        bytes memory payload = abi.encodePacked(_shownLeaf(1, 3, 1), p.opened);
        payload[payload.length - 1] = 0x01;
        _refuseStart(payload, _error(MovePayload.DirtyLeaf.selector));
    }
}
