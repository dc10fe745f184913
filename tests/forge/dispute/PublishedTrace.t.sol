// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch} from "../../../contracts/commitments/MerkleBranch.sol";
import {PublishedTrace} from "../../../contracts/dispute/PublishedTrace.sol";
import {Transition} from "../../../contracts/dispute/Transition.sol";
import {Vm} from "../Base.sol";
import {PublishedGame} from "./PublishedGame.sol";
import {DisputeStorage, Level, MovePayload, PackedReader, Verb} from "./GameTest.sol";

/// @notice Parts of published traces that are shown: whoever says what is true wins, and what is shown is bound by the
/// trace that lies open.
contract PublishedTraceTest is PublishedGame {
    /// @dev Bytes before `rest`: selector, position, index. Of `rest` before the branch: opening, header, five facts.
    uint256 private constant REST = 4 + 56 + 1;
    uint256 private constant FACTS = 32 + 112 + 4 * 32 + 8;

    function _error(bytes4 selector) private pure returns (bytes memory) {
        return abi.encodeWithSelector(selector);
    }

    function _error(bytes4 selector, uint256 a, uint256 b) private pure returns (bytes memory) {
        return abi.encodeWithSelector(selector, a, b);
    }

    /// @dev Version 1 has another word in one output of the last step, and all that follows from it.
    function _lie(uint256 node, uint256 element, bool asserterLies) private {
        setUp();
        outputs[_key(1, STEP)][node][element] ^= 1;
        _advance(_key(1, STEP));
        // Nothing of the state follows from these nodes.
        if (node < 2 || node == 5) states[_key(1, STEP + 1)][0][0] ^= 1;
        _cast(asserterLies);
        _start(_replay(2));
    }

    // --- whole games ---

    function test_every_node() public {
        for (uint256 node = 0; node < 6; node++) {
            for (uint256 i = 0; i < 4; i++) {
                (what, showsOnlyLeaf) = (i < 2 ? NODE : LEAF, true);
                _lie(node, 0, i % 2 == 0);
                _finish(i % 2 == 0);
            }
        }
    }

    function test_every_leaf() public {
        what = LEAF;
        for (uint256 leaf = 0; leaf < 2; leaf++) {
            for (uint256 i = 0; i < 2; i++) {
                _lie(3, 64 * leaf + 1, i == 0);
                _move();
                _move();
                vm.assertTrue(p.level == Level.LEAF);
                vm.assertEq(p.lo, leaf);
                _finish(i == 0);
            }
        }
    }

    /// @dev The event has what follows neither from the program nor from earlier moves.
    function test_event() public {
        what = LEAF;
        _lie(3, 65, true);
        _move();
        (bytes memory call, At memory next) = _prepare();
        uint256 descriptor = REST + FACTS + 3 * 32 + 2 + nodes[3].length;
        bytes memory shown = new bytes(call.length - descriptor);
        for (uint256 i = 0; i < shown.length; i++) {
            shown[i] = call[descriptor + i];
        }
        vm.recordLogs();
        _send(_onTurn(), call);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        vm.assertEq(logs.length, 1);
        vm.assertEq(logs[0].topics[0], bytes32(number));
        vm.assertEq(logs[0].data, abi.encodePacked(uint8(Verb.SHOW), LEAF, shown));
        _advanceTo(next);
    }

    // --- moves that are refused ---

    function test_what_is_no_part_of_a_trace() public {
        what = NODE;
        _lie(4, 0, true);
        _move();
        (bytes memory call,) = _prepare();
        bytes1[3] memory wrong = [bytes1(0x00), 0x03, 0xff];
        for (uint256 i = 0; i < 3; i++) {
            call[REST - 1] = wrong[i];
            _refuse(
                _onTurn(), call, abi.encodeWithSelector(PublishedTrace.UnknownPart.selector, uint256(uint8(wrong[i])))
            );
        }
    }

    function test_indices_that_do_not_exist() public {
        what = LEAF;
        _lie(3, 0, true);
        _move();
        (bytes memory call,) = _prepare();
        bytes4 wrong = MerkleBranch.IndexOutOfRange.selector;
        uint256 nodeAt = REST + FACTS + 3 * 32 + 2 + nodes[3].length;
        call[nodeAt + 3] = 0x06;
        _refuse(_onTurn(), call, _error(wrong, 6, 6));
        call[nodeAt + 3] = 0x03;
        uint256 leafAt = call.length - 256 - 32 - 32 - 8;
        call[leafAt + 7] = 0x02;
        _refuse(_onTurn(), call, _error(wrong, 2, 2));
        call[leafAt + 7] = 0x00;
        call[leafAt] = 0x01;
        _refuse(_onTurn(), call, _error(wrong, 2 ** 56, 2));
    }

    /// @dev Changes bytes of `[from, to)` of a move.
    function _refuseChanges(bytes memory call, uint256 from, uint256 to, bytes4 selector) private {
        for (uint256 i = from; i < to; i += 5) {
            call[i] ^= 0x01;
            _refuse(_onTurn(), call, _error(selector));
            call[i] ^= 0x01;
        }
    }

    function test_what_was_not_published() public {
        what = LEAF;
        _lie(3, 0, true);
        _move();
        (bytes memory call, At memory next) = _prepare();
        uint256 branchAt = REST + FACTS;
        uint256 nodeAt = branchAt + 3 * 32 + 2 + nodes[3].length;
        uint256 opened = call.length - 256;
        // Identity, constants, state and step; branch and bytes of the descriptor.
        _refuseChanges(call, REST + 32 + 112, branchAt, Transition.WrongFrame.selector);
        _refuseChanges(call, branchAt, branchAt + 3 * 32, Transition.WrongDescriptor.selector);
        _refuseChanges(call, branchAt + 3 * 32 + 2, nodeAt, Transition.WrongDescriptor.selector);
        // The node's root and branch; the leaf's hash and branch.
        bytes4 wrong = PublishedTrace.NotPublished.selector;
        _refuseChanges(call, nodeAt + 4, nodeAt + 4 + 4 * 32, wrong);
        _refuseChanges(call, opened - 64, opened, wrong);
        // Another node or leaf than the one at which it stands.
        call[nodeAt + 3] = 0x02;
        _refuse(_onTurn(), call, _error(Transition.WrongDescriptor.selector));
        call[nodeAt + 3] = 0x03;
        call[opened - 64 - 1] = 0x01;
        _refuse(_onTurn(), call, _error(wrong));
        call[opened - 64 - 1] = 0x00;
        // Another opening is no position of the dispute.
        call[REST] ^= 0x01;
        _refuse(_onTurn(), call, abi.encodeWithSelector(DisputeStorage.WrongHead.selector, _onTurn()));
        call[REST] ^= 0x01;
        _send(_onTurn(), call);
        _advanceTo(next);
    }

    /// @dev The mover opens what lies open: it would agree.
    function test_what_is_shown_is_no_opening() public {
        for (uint8 i = NODE; i <= LEAF; i++) {
            (what, showsOnlyLeaf) = (i, true);
            for (uint256 node = 0; node < 6; node++) {
                _lie(node, 0, true);
                _move();
                challengerVersion = asserterVersion;
                (bytes memory call,) = _describe(node);
                _refuse(_onTurn(), call, _error(MovePayload.Agreed.selector));
            }
        }
    }

    function test_bytes_that_are_missing_or_left_over() public {
        for (uint8 i = NODE; i <= LEAF; i++) {
            what = i;
            _lie(3, 64, true);
            _move();
            (bytes memory call, At memory next) = _prepare();
            uint256 length = next.opened.length;
            bytes4 wrong = MovePayload.WrongPayloadLength.selector;
            _refuse(_onTurn(), _cut(call, call.length - length), _error(wrong, 0, length));
            _refuse(_onTurn(), abi.encodePacked(call, uint8(0)), _error(wrong, length + 1, length));
            for (uint256 at = REST + 32; at < call.length - length; at += 29) {
                vm.prank(_onTurn());
                vm.expectPartialRevert(PackedReader.MissingBytes.selector);
                (bool success,) = address(game).call(_cut(call, at));
                success;
            }
        }
    }

    function _cut(bytes memory data, uint256 length) private pure returns (bytes memory part) {
        part = new bytes(length);
        for (uint256 i = 0; i < length; i++) {
            part[i] = data[i];
        }
    }

    function test_garbage_past_the_end_of_a_leaf() public {
        what = LEAF;
        _lie(3, 64, true);
        _move();
        (bytes memory call,) = _prepare();
        call[call.length - 1] = 0x01;
        _refuse(_onTurn(), call, _error(MovePayload.DirtyLeaf.selector));
    }
}
