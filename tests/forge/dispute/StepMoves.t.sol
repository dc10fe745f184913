// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Clock, Result} from "../../../contracts/dispute/Clock.sol";
import {ClockExpiry} from "../../../contracts/dispute/ClockExpiry.sol";
import {DisputeGame} from "../../../contracts/dispute/DisputeGame.sol";
import {DisputeStorage} from "../../../contracts/dispute/DisputeStorage.sol";
import {MovePayload} from "../../../contracts/dispute/MovePayload.sol";
import {PickedPart} from "../../../contracts/dispute/PickedPart.sol";
import {Level} from "../../../contracts/dispute/Position.sol";
import {Vm} from "../Base.sol";
import {Deployment} from "./Deployment.sol";
import {ClockWords} from "./ClockWords.sol";

/// @notice Answers in STEPS, from positions that are put into storage, against rules that are written down once more.
contract StepMovesTest is Deployment {
    /// @dev STEPS `[lo, hi)` of a program with `nodes`; the roots at the ends of the parts follow the agreed one.
    struct At {
        uint32 nodes;
        uint64 lo;
        uint64 hi;
        bytes32[] roots;
    }

    uint24 internal constant REPLAY_GRACE = 7200;
    uint24 internal constant BUDGET = 9000;
    uint256 internal constant SLOT = 1;
    bytes32 internal constant FRAME = keccak256("frame");

    DisputeGame internal game;
    uint256 internal number = 3;
    address internal me;
    address internal other;

    function setUp() public {
        vm.warp(1_700_000_000);
        (me, other) = (account("me"), account("other"));
        _deploy(4);
    }

    function _deploy(uint8 width) internal {
        game = _deployGame(account("market"), _deployOneStep(), _deployStarts(), width, REPLAY_GRACE, 300);
    }

    // --- the rules, once more ---

    function _depth(uint256 count) internal pure returns (uint256 depth) {
        while (2 ** depth < count) depth++;
    }

    function _share(uint256 height) internal view returns (uint256) {
        uint256 width = game.width();
        if (height == 0) return 0;
        uint256 moves = height / width + (height % width > 0 ? 1 : 0);
        return height / moves + (height % moves > 0 ? 1 : 0);
    }

    function _parts(uint256 size) internal view returns (uint256) {
        uint256 most = 2 ** _share(_depth(size));
        return size < most ? size : most;
    }

    function _tree(bytes32[] memory row, uint256 height, bytes32 missing) internal pure returns (bytes32) {
        bytes32[] memory level = new bytes32[](2 ** height);
        for (uint256 i = 0; i < level.length; i++) {
            level[i] = i < row.length ? row[i] : missing;
        }
        for (uint256 size = level.length / 2; size > 0; size /= 2) {
            for (uint256 i = 0; i < size; i++) {
                level[i] = keccak256(abi.encodePacked(uint8(1), level[2 * i], level[2 * i + 1]));
            }
        }
        return level[0];
    }

    function _padding(uint256 height) internal pure returns (bytes32 root) {
        root = keccak256("pol/pad/1");
        for (uint256 i = 0; i < height; i++) {
            root = keccak256(abi.encodePacked(uint8(1), root, root));
        }
    }

    function _pairs(bytes32[] memory roots) internal pure returns (bytes32[] memory row) {
        row = new bytes32[](roots.length - 1);
        for (uint256 i = 0; i < row.length; i++) {
            row[i] = keccak256(abi.encodePacked(roots[i], roots[i + 1]));
        }
    }

    function _opening(bytes32[] memory roots) internal pure returns (bytes32) {
        return _tree(_pairs(roots), _depth(roots.length - 1), _padding(0));
    }

    /// @dev What a pick of part `index` shows.
    function _witness(bytes32[] memory roots, uint256 index) internal pure returns (bytes memory witness) {
        witness = abi.encodePacked(roots[index], roots[index + 1]);
        bytes32[] memory row = _pairs(roots);
        for (uint256 height = 0; height < _depth(row.length); height++) {
            uint256 sibling = (index >> height) ^ 1;
            bytes32[] memory below = new bytes32[](2 ** height);
            for (uint256 i = 0; i < below.length; i++) {
                uint256 leaf = (sibling << height) + i;
                below[i] = leaf < row.length ? row[leaf] : _padding(0);
            }
            witness = abi.encodePacked(witness, _tree(below, height, _padding(0)));
        }
    }

    function _head(bytes32 frame, bytes32 opening, address turn, uint8 level, uint8 height, At memory p)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encodePacked(frame, opening, turn, level, height, p.nodes, p.lo, p.hi));
    }

    function _row(bytes32 first, uint256 count, uint256 seed) internal pure returns (bytes32[] memory row) {
        row = new bytes32[](count + 1);
        row[0] = first;
        for (uint256 i = 1; i <= count; i++) {
            row[i] = keccak256(abi.encode(seed, i));
        }
    }

    function _payload(bytes32[] memory row) internal pure returns (bytes memory payload) {
        for (uint256 i = 1; i < row.length; i++) {
            payload = abi.encodePacked(payload, row[i]);
        }
    }

    /// @dev Sends the pick of part `index` with the mover's own version of it.
    struct Next {
        bytes32 head;
        uint8 level;
        uint8 height;
        bytes payload;
    }

    function _next(At memory p, uint256 index) internal view returns (Next memory next) {
        uint256 size = p.hi - p.lo;
        uint256 parts = p.roots.length - 1;
        At memory q =
            At(p.nodes, uint64(p.lo + index * size / parts), uint64(p.lo + (index + 1) * size / parts), p.roots);
        if (q.hi - q.lo > 1) {
            bytes32[] memory roots = _row(p.roots[index], _parts(q.hi - q.lo), 2);
            next.level = 1;
            next.payload = _payload(roots);
            next.head = _head(FRAME, _opening(roots), other, 1, 0, q);
            return next;
        }
        (next.level, next.height) = (2, uint8(_depth(p.nodes)));
        uint256 share = _share(next.height);
        uint256 below = next.height - share;
        bytes32[] memory row = _row(0, (p.nodes + 2 ** below - 1) / 2 ** below, 2);
        next.payload = _payload(row);
        bytes32[] memory children = new bytes32[](row.length - 1);
        for (uint256 i = 0; i < children.length; i++) {
            children[i] = row[i + 1];
        }
        bytes32 frame =
            keccak256(abi.encodePacked(keccak256(abi.encodePacked(FRAME, p.roots[index + 1])), p.roots[index], q.lo));
        (q.lo, q.hi) = (0, 0);
        next.head = _head(frame, _tree(children, share, _padding(below)), other, 2, next.height, q);
    }

    function _put(At memory p, uint256 left, uint24 spare) internal {
        Clock memory clock = Clock(other, Level.STEPS, 0, true, Result.NONE, spare, uint40(block.timestamp + left));
        vm.store(address(game), bytes32(SLOT + 2 * number), _head(FRAME, _opening(p.roots), me, 1, 0, p));
        vm.store(address(game), bytes32(SLOT + 2 * number + 1), bytes32(ClockWords.pack(clock)));
    }

    function _move(At memory p, uint256 index, bytes memory payload) internal view returns (bytes memory) {
        return abi.encodePacked(
            DisputeGame.answer.selector,
            uint32(number),
            FRAME,
            p.nodes,
            p.lo,
            p.hi,
            uint8(index),
            _witness(p.roots, index),
            payload
        );
    }

    function _send(address sender, bytes memory data) internal returns (bool success, bytes memory reason) {
        vm.prank(sender);
        (success, reason) = address(game).call(data);
    }

    function _assertNext(Next memory next, uint256 left, uint24 spare) private view {
        (bytes32 head, Clock memory clock) = game.dispute(number);
        vm.assertEq(head, next.head);
        vm.assertEq(clock.waiting, me);
        vm.assertTrue(clock.result == Result.NONE && !clock.isAsserterOnTurn);
        vm.assertEq(uint256(uint8(clock.level)), uint256(next.level));
        vm.assertEq(uint256(clock.height), uint256(next.height));
        vm.assertEq(uint256(clock.spare), left);
        vm.assertEq(uint256(clock.deadline), block.timestamp + (spare > REPLAY_GRACE ? spare : REPLAY_GRACE));
    }

    function _at(uint32 nodes, uint64 lo, uint64 size) internal view returns (At memory) {
        return At(nodes, lo, lo + size, _row(keccak256("agreed"), _parts(size), 1));
    }

    // --- the tests ---

    /// @dev Any part of any range, in programs of any size.
    function testFuzz_answer(uint256 kind, uint32 nodes, uint64 lo, uint64 size, uint256 index, uint24 spare) public {
        _deploy([4, 5, 3, 1][kind % 4]);
        // Short ranges and round counts are where moves differ.
        size = kind & 8 == 0 ? uint64(bound(size, 1, 18)) : uint64(bound(size, 1, 2 ** (kind / 16 % 60 + 1)));
        lo = uint64(bound(lo, 0, type(uint64).max - size));
        nodes = uint32(bound(nodes, 1, 2 ** (kind / 1024 % 32)));
        At memory p = _at(nodes, lo, size);
        index = bound(index, 0, p.roots.length - 2);
        Next memory next = _next(p, index);
        uint256 left = 1 + uint256(spare) % 5000;
        _put(p, left, spare);
        vm.recordLogs();
        (bool success,) = _send(me, _move(p, index, next.payload));
        vm.assertTrue(success);
        _assertNext(next, left, spare);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        vm.assertEq(logs.length, 1);
        vm.assertEq(logs[0].topics[0], bytes32(number));
        vm.assertEq(logs[0].data, abi.encodePacked(uint8(1), uint8(index), next.payload));
    }

    /// @dev Every step of seven and eight, of a program whose trace has sixteen children or one less.
    function test_a_step_of_a_thousand_is_entered() public {
        for (uint64 size = 4; size <= 9; size++) {
            for (uint32 nodes = 959; nodes <= 1025; nodes += 1 + 31 * (nodes % 2)) {
                At memory p = _at(nodes, 617, size);
                for (uint256 index = 0; index < size; index++) {
                    Next memory next = _next(p, index);
                    // More than the grace, or less.
                    uint24 spare = index % 2 == 0 ? BUDGET : 7;
                    _put(p, 50, spare);
                    vm.recordLogs();
                    (bool success,) = _send(me, _move(p, index, next.payload));
                    vm.assertTrue(success);
                    _assertNext(next, 50, spare);
                    Vm.Log memory logged = vm.getRecordedLogs()[0];
                    vm.assertEq(logged.topics[0], bytes32(number));
                    vm.assertEq(logged.data, abi.encodePacked(uint8(1), uint8(index), next.payload));
                }
            }
        }
    }

    /// @dev Sixteen children where there are fifteen.
    function test_more_children_of_a_trace_than_there_are() public {
        for (uint32 nodes = 959; nodes <= 960; nodes++) {
            At memory p = _at(nodes, 617, 8);
            _put(p, 50, BUDGET);
            bytes memory payload = abi.encodePacked(_next(p, 3).payload, keccak256("more"));
            vm.assertEq(payload.length, 512);
            bytes memory reason = abi.encodeWithSelector(MovePayload.WrongPayloadLength.selector, 512, 480);
            _refuse(me, _move(p, 3, payload), reason);
        }
    }

    /// @dev Steps of programs of every size whose trace shows sixteen children, the last of which has one node or all.
    /// One node less makes fifteen. The ceiling is the gas beside calldata.
    function test_entering_a_step_of_every_size_takes_less_than_22100_gas() public {
        for (uint8 width = 4; width <= 5; width++) {
            _deploy(width);
            for (uint256 height = 4; height < 32; height++) {
                if (_share(height) != 4) continue;
                for (uint256 i = 0; i < 3; i++) {
                    uint256 nodes = i == 0 ? 1 << height : (15 << (height - 4)) + 2 - i;
                    At memory p = _at(uint32(nodes), 617, i == 0 ? 8 : 5);
                    Next memory next = _next(p, 4);
                    vm.assertEq(next.payload.length, i == 2 ? 480 : 512);
                    // Less than the grace or more, up to all bits.
                    uint24 spare = i == 0 ? 7 : i == 1 ? type(uint24).max : BUDGET;
                    _put(p, 50 + i, spare);
                    if (i == 2) {
                        bytes memory more = abi.encodePacked(next.payload, keccak256("more"));
                        bytes4 wrong = MovePayload.WrongPayloadLength.selector;
                        _refuse(me, _move(p, 4, more), abi.encodeWithSelector(wrong, 512, 480));
                    }
                    vm.cool(address(game));
                    (bool success,) = _send(me, _move(p, 4, next.payload));
                    uint256 used = vm.lastCallGas().gasTotalUsed;
                    vm.assertTrue(success);
                    _assertNext(next, 50 + i, spare);
                    if (i < 2) vm.assertLe(used, 22_100);
                }
            }
        }
    }

    /// @dev A call as long as one that enters one of eight steps, where there are fewer or more.
    function test_the_length_of_a_call_says_nothing_about_the_steps() public {
        for (uint64 size = 2; size <= 16; size++) {
            if (size >= 5 && size <= 8) continue;
            At memory p = _at(1000, 617, size);
            _put(p, 50, BUDGET);
            bytes memory entry = _move(p, 1, _next(p, 1).payload);
            bytes memory call = new bytes(733);
            for (uint256 i = 0; i < call.length && i < entry.length; i++) {
                call[i] = entry[i];
            }
            uint256 length = 512 + 733 - entry.length;
            _refuse(me, call, abi.encodeWithSelector(MovePayload.WrongPayloadLength.selector, length, 512));
        }
    }

    /// @dev What is logged names the dispute by all bits of its number.
    function test_the_last_dispute_there_can_be() public {
        number = type(uint32).max;
        At memory p = _at(1000, 617, 8);
        Next memory next = _next(p, 5);
        _put(p, 100, 7);
        vm.recordLogs();
        (bool success,) = _send(me, _move(p, 5, next.payload));
        vm.assertTrue(success);
        _assertNext(next, 100, 7);
        vm.assertEq(vm.getRecordedLogs()[0].topics[0], bytes32(number));
    }

    /// @dev Neither touches the other one.
    function test_the_least_grace_beside_the_greatest() public {
        game = _deployGame(account("market"), _deployOneStep(), _deployStarts(), 4, 2, type(uint24).max);
        for (uint64 size = 8; size < 32; size += 16) {
            At memory p = _at(1000, 617, size);
            _put(p, 100, 0);
            (bool success,) = _send(me, _move(p, 5, _next(p, 5).payload));
            vm.assertTrue(success);
            (, Clock memory clock) = game.dispute(number);
            vm.assertEq(uint256(clock.deadline), block.timestamp + 2);
        }
    }

    function test_entering_a_step_costs_less_than_55000_gas() public {
        At memory p = _at(1000, 617, 8);
        _put(p, 100, BUDGET);
        Next memory next = _next(p, 5);
        bytes memory data = _move(p, 5, next.payload);
        vm.assertEq(data.length, 733);
        vm.cool(address(game));
        (bool success,) = _send(me, data);
        uint256 tokens = 0;
        for (uint256 i = 0; i < data.length; i++) {
            tokens += data[i] == 0 ? 1 : 4;
        }
        vm.assertLe(21000 + 4 * tokens + vm.lastCallGas().gasTotalUsed, 55000);
        vm.assertTrue(success);
        vm.assertEq(game.head(number), next.head);
    }

    /// @dev Every bit of what a move says about its position and its witness.
    function testFuzz_one_bit_of_a_move_is_wrong(uint256 bit) public {
        At memory p = _at(1000, 617, 8);
        _put(p, 100, BUDGET);
        bytes memory data = _move(p, 5, _next(p, 5).payload);
        // Behind the number, up to the payload.
        bit = bound(bit, 8 * 8, 8 * 221 - 1);
        data[bit / 8] ^= bytes1(uint8(1 << (bit % 8)));
        (bool success,) = _send(me, data);
        vm.assertFalse(success);
        vm.assertEq(game.head(number), _head(FRAME, _opening(p.roots), me, 1, 0, p));
    }

    function _refuse(address sender, bytes memory data, bytes memory reason) private {
        (bool success, bytes memory answer) = _send(sender, data);
        vm.assertFalse(success);
        vm.assertEq(answer, reason);
    }

    function test_strangers_latecomers_and_wrong_lengths_are_refused() public {
        for (uint64 size = 8; size < 32; size += 16) {
            At memory p = _at(1000, 617, size);
            _put(p, 100, BUDGET);
            bytes memory payload = _next(p, 5).payload;
            bytes memory data = _move(p, 5, payload);
            _refuse(other, data, abi.encodeWithSelector(DisputeStorage.WrongHead.selector, other));
            bytes memory reason =
                abi.encodeWithSelector(MovePayload.WrongPayloadLength.selector, payload.length + 1, payload.length);
            _refuse(me, abi.encodePacked(data, uint8(0)), reason);
            reason = abi.encodeWithSelector(MovePayload.WrongPayloadLength.selector, 0, payload.length);
            _refuse(me, _move(p, 5, ""), reason);
            data[60] = bytes1(uint8(8));
            _refuse(me, data, abi.encodeWithSelector(PickedPart.NoSuchPart.selector, 8));
            data[60] = bytes1(uint8(5));
            vm.warp(block.timestamp + 100);
            _refuse(me, data, abi.encodeWithSelector(ClockExpiry.OutOfTime.selector, block.timestamp));
        }
    }

    function test_states_that_end_as_claimed_are_no_answer() public {
        At memory p = _at(1000, 617, 24);
        bytes memory payload = _next(p, 5).payload;
        bytes32 last;
        assembly {
            last := mload(add(payload, mload(payload)))
        }
        p.roots[6] = last;
        _put(p, 100, BUDGET);
        _refuse(me, _move(p, 5, payload), abi.encodeWithSelector(MovePayload.Agreed.selector));
    }
}
