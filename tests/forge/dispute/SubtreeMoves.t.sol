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

/// @notice Answers in subtrees, from positions that are put into storage, against rules that are written down once
/// more.
contract SubtreeMovesTest is Deployment {
    struct At {
        Level level;
        uint256 height;
        uint256 count;
        uint256 lo;
        bytes32 frame;
        bytes row; // children that lie open
    }

    uint24 internal constant MOVE_GRACE = 300;
    uint24 internal constant BUDGET = 5000;
    /// @dev The first of the two words of dispute 0.
    uint256 internal constant SLOT = 1;

    DisputeGame internal game;
    uint256 internal number = 1;
    address internal me;
    address internal other;

    function setUp() public {
        vm.warp(1_700_000_000);
        (me, other) = (account("me"), account("other"));
        _deploy(4);
    }

    function _deploy(uint8 width) internal {
        game = _deployGame(account("market"), _deployOneStep(), _deployStarts(), width, 7200, MOVE_GRACE);
    }

    // --- the rules, once more ---

    function _share(uint256 height, uint256 width) internal pure returns (uint256) {
        if (height == 0) return 0;
        uint256 moves = height / width + (height % width > 0 ? 1 : 0);
        return height / moves + (height % moves > 0 ? 1 : 0);
    }

    function _padding(uint256 height) internal pure returns (bytes32 root) {
        root = keccak256("pol/pad/1");
        for (uint256 i = 0; i < height; i++) {
            root = keccak256(abi.encodePacked(uint8(1), root, root));
        }
    }

    function _hashes(bytes memory row, uint256 size, bytes32 filler) internal pure returns (bytes32[] memory hashes) {
        hashes = new bytes32[](size);
        for (uint256 i = 0; i < size; i++) {
            bytes32 hash = filler;
            if (32 * i < row.length) {
                assembly {
                    hash := mload(add(row, mul(32, add(i, 1))))
                }
            }
            hashes[i] = hash;
        }
    }

    function _up(bytes32[] memory row) internal pure returns (bytes32[] memory parents) {
        parents = new bytes32[](row.length / 2);
        for (uint256 i = 0; i < parents.length; i++) {
            parents[i] = keccak256(abi.encodePacked(uint8(1), row[2 * i], row[2 * i + 1]));
        }
    }

    function _leaves(At memory p) internal pure returns (uint256) {
        return p.level == Level.LEAVES ? (p.count + 63) / 64 : p.count;
    }

    function _opened(At memory p) internal view returns (bytes32[] memory) {
        uint256 share = _share(p.height, game.width());
        return _hashes(p.row, 2 ** share, _padding(p.height - share));
    }

    function _opening(At memory p) internal view returns (bytes32) {
        bytes32[] memory row = _opened(p);
        while (row.length > 1) row = _up(row);
        return row[0];
    }

    function _witness(At memory p, uint256 index) internal view returns (bytes memory witness) {
        bytes32[] memory row = _opened(p);
        witness = abi.encodePacked(row[index]);
        for (; row.length > 1; index /= 2) {
            witness = abi.encodePacked(witness, row[index ^ 1]);
            row = _up(row);
        }
    }

    function _head(At memory p, address turn) internal view returns (bytes32) {
        return keccak256(
            abi.encodePacked(
                p.frame, _opening(p), turn, uint8(p.level), uint8(p.height), uint32(p.count), uint64(p.lo), uint64(0)
            )
        );
    }

    /// @dev As many children as the position has.
    function _row(At memory p, uint256 seed) internal view returns (bytes memory row) {
        uint256 share = _share(p.height, game.width());
        for (uint256 i = 0; i < 2 ** share && p.lo + (i << (p.height - share)) < _leaves(p); i++) {
            row = abi.encodePacked(row, keccak256(abi.encode(seed, i)));
        }
    }

    function _below(At memory p, uint256 index, uint256 seed) internal view returns (At memory next) {
        next.level = p.level;
        next.height = p.height - _share(p.height, game.width());
        next.count = p.count;
        next.lo = p.lo + (index << next.height);
        next.frame =
            p.level == Level.NODES ? keccak256(abi.encodePacked(p.frame, _opening(p), uint8(p.height))) : p.frame;
        next.row = _row(next, seed);
    }

    // --- storage ---

    function _put(At memory p, uint256 left, uint24 spare) internal {
        bytes32 slot = bytes32(SLOT + 2 * number);
        Clock memory clock =
            Clock(other, p.level, uint8(p.height), true, Result.NONE, spare, uint40(block.timestamp + left));
        vm.store(address(game), slot, _head(p, me));
        vm.store(address(game), bytes32(uint256(slot) + 1), bytes32(ClockWords.pack(clock)));
    }

    function _move(At memory p, uint256 index, bytes memory payload) internal view returns (bytes memory) {
        return abi.encodePacked(
            DisputeGame.answer.selector,
            uint32(number),
            p.frame,
            uint32(p.count),
            uint64(p.lo),
            uint64(0),
            uint8(index),
            _witness(p, index),
            payload
        );
    }

    function _send(address sender, bytes memory data) internal {
        vm.prank(sender);
        (bool success, bytes memory reason) = address(game).call(data);
        if (!success) {
            assembly {
                revert(add(reason, 32), mload(reason))
            }
        }
    }

    /// @dev What the call costs as a transaction: the larger one of use and floor.
    function _gasOf(bytes memory data) internal view returns (uint256) {
        uint256 tokens = 0;
        for (uint256 i = 0; i < data.length; i++) {
            tokens += data[i] == 0 ? 1 : 4;
        }
        uint256 use = 4 * tokens + vm.lastCallGas().gasTotalUsed;
        return 21000 + (use > 10 * tokens ? use : 10 * tokens);
    }

    function _at(Level level, uint256 height, uint256 count, uint256 lo) internal view returns (At memory p) {
        (p.level, p.height, p.count, p.lo) = (level, height, count, lo);
        p.frame = keccak256("frame");
        p.row = _row(p, 1);
    }

    // --- what it costs ---

    /// @dev An answer of sixteen below sixteen, with both slots cold.
    function _price(Level level, uint256 count, uint256 lo) private {
        At memory p = _at(level, 20, count, lo);
        _put(p, 100, BUDGET);
        At memory next = _below(p, 11, 2);
        bytes memory data = _move(p, 11, next.row);
        vm.assertEq(data.length, 733);
        vm.cool(address(game));
        vm.prank(me);
        (bool success,) = address(game).call(data);
        vm.assertLe(_gasOf(data), 54000);
        vm.assertTrue(success);
        vm.assertEq(game.head(number), _head(next, other));
    }

    function test_an_answer_of_leaves_costs_less_than_54000_gas() public {
        _price(Level.LEAVES, 64 * 2 ** 24, 11 << 20);
    }

    function test_an_answer_of_nodes_costs_less_than_54000_gas() public {
        _price(Level.NODES, 2 ** 20, 0);
    }

    function test_an_answer_of_a_state_costs_less_than_54000_gas() public {
        _price(Level.STATE, 2 ** 20, 0);
    }

    // --- that it follows the rules ---

    function _assertNext(At memory p, At memory next, uint256 left, uint24 spare) private view {
        (bytes32 head, Clock memory clock) = game.dispute(number);
        vm.assertEq(head, _head(next, other));
        vm.assertEq(clock.waiting, me);
        vm.assertTrue(clock.level == p.level && clock.result == Result.NONE && !clock.isAsserterOnTurn);
        vm.assertEq(uint256(clock.height), next.height);
        vm.assertEq(uint256(clock.spare), left);
        vm.assertEq(uint256(clock.deadline), block.timestamp + (spare > MOVE_GRACE ? spare : MOVE_GRACE));
    }

    /// @dev Any subtree of any tree, with any number of children.
    function testFuzz_answer(uint256 kind, uint256 height, uint256 count, uint256 lo, uint256 index, uint24 spare)
        public
    {
        _deploy(kind % 2 == 0 ? 4 : 5);
        Level level = [Level.NODES, Level.LEAVES, Level.STATE][(kind / 2) % 3];
        height = bound(height, 5, 24);
        uint256 leaves = bound(count, (1 << (height - 1)) + 1, 4 << height);
        // The subtree is one that the tree has, and begins before its end.
        lo = (bound(lo, 0, (leaves - 1) >> height)) << height;
        At memory p = _at(level, height, level == Level.LEAVES ? 64 * leaves - (leaves % 64) : leaves, lo);
        index = bound(index, 0, p.row.length / 32 - 1);
        At memory next = _below(p, index, 2);
        if (next.height == 0) return;
        uint256 left = 1 + uint256(spare) % 5000;
        _put(p, left, spare);
        vm.recordLogs();
        _send(me, _move(p, index, next.row));
        _assertNext(p, next, left, spare);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        vm.assertEq(logs.length, 1);
        vm.assertEq(logs[0].topics.length, 1);
        vm.assertEq(logs[0].topics[0], bytes32(number));
        vm.assertEq(logs[0].data, abi.encodePacked(uint8(1), uint8(index), next.row));
    }

    /// @dev Subtrees of every height, of which the last child is opened: it is whole, or ends in one leaf of the last
    /// subtree below it, or has one subtree less. Up to sixteen children have a ceiling: the gas beside calldata.
    function _everyHeight(Level level, uint8 width) private {
        _deploy(width);
        for (uint256 height = 2; height <= (level == Level.LEAVES ? 26 : 31); height++) {
            uint256 share = _share(height, width);
            uint256 opened = _share(height - share, width);
            if (opened == 0) continue;
            uint256 end = 1 << (height - share - opened);
            for (uint256 i = 0; i < 3; i++) {
                uint256 leaves = (1 << height) - (i == 0 ? 0 : i == 1 ? end - 1 : end);
                At memory p = _at(level, height, level == Level.LEAVES ? 64 * leaves - 63 : leaves, 0);
                uint256 index = p.row.length / 32 - 1;
                At memory next = _below(p, index, 2);
                uint256 children = next.row.length / 32;
                // Less than the grace or more, up to all bits.
                uint24 spare = i == 0 ? 7 : i == 1 ? type(uint24).max : BUDGET;
                _put(p, 100 + i, spare);
                if (i == 2 && index == (1 << share) - 1) {
                    vm.assertEq(children, (1 << opened) - 1);
                    bytes memory more = abi.encodePacked(next.row, keccak256("more"));
                    bytes4 wrong = MovePayload.WrongPayloadLength.selector;
                    _refuse(me, _move(p, index, more), abi.encodeWithSelector(wrong, 32 * children + 32, 32 * children));
                }
                vm.cool(address(game));
                _send(me, _move(p, index, next.row));
                if (opened < 5) vm.assertLe(vm.lastCallGas().gasTotalUsed, 25_700);
                _assertNext(p, next, 100 + i, spare);
            }
        }
    }

    function test_nodes_of_every_height_take_less_than_25700_gas() public {
        _everyHeight(Level.NODES, 4);
        _everyHeight(Level.NODES, 5);
    }

    function test_leaves_of_every_height_take_less_than_25700_gas() public {
        _everyHeight(Level.LEAVES, 4);
        _everyHeight(Level.LEAVES, 5);
    }

    /// @dev Neither touches the other one, nor what is kept beside them.
    function test_the_least_grace_beside_the_greatest() public {
        game = _deployGame(account("market"), _deployOneStep(), _deployStarts(), 4, type(uint24).max, 2);
        for (uint256 height = 19; height <= 31; height += 12) {
            At memory p = _at(Level.NODES, height, 1 << height, 0);
            _put(p, 100, 0);
            _send(me, _move(p, 3, _below(p, 3, 2).row));
            (, Clock memory clock) = game.dispute(number);
            vm.assertEq(uint256(clock.deadline), block.timestamp + 2);
        }
    }

    /// @dev The same move, sent for its mover.
    function test_a_relayed_answer_leads_to_the_same() public {
        me = vm.addr(7);
        for (uint256 level = 2; level < 8; level = level == 3 ? 7 : level + 1) {
            At memory p = _at(Level(level), 20, level == 3 ? 64 << 20 : 1 << 20, 0);
            At memory next = _below(p, 9, 2);
            _put(p, 100, 7);
            bytes memory data = _move(p, 9, next.row);
            bytes32 domain = keccak256(
                abi.encode(
                    keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                    keccak256("pol dispute"),
                    keccak256("1"),
                    block.chainid,
                    address(game)
                )
            );
            bytes32 content =
                keccak256(abi.encode(keccak256("Move(bytes32 head,bytes32 content)"), _head(p, me), keccak256(data)));
            (uint8 v, bytes32 r, bytes32 s) = vm.sign(7, keccak256(abi.encodePacked(hex"1901", domain, content)));
            vm.recordLogs();
            _send(address(this), abi.encodePacked(game.relay.selector, r, s, v, data));
            _assertNext(p, next, 100, 7);
            vm.assertEq(vm.getRecordedLogs()[0].data, abi.encodePacked(uint8(1), uint8(9), next.row));
        }
    }

    function _refuse(address sender, bytes memory data, bytes memory reason) private {
        vm.prank(sender);
        (bool success, bytes memory answer) = address(game).call(data);
        vm.assertFalse(success);
        vm.assertEq(answer, reason);
    }

    function _wrongHead(address mover) private pure returns (bytes memory) {
        return abi.encodeWithSelector(DisputeStorage.WrongHead.selector, mover);
    }

    /// @dev Every bit of what a move says about its position and its witness.
    function testFuzz_one_bit_of_a_move_is_wrong(uint256 bit) public {
        At memory p = _at(Level.LEAVES, 20, 64 << 20, 0);
        _put(p, 100, BUDGET);
        bytes memory data = _move(p, 11, _below(p, 11, 2).row);
        // Behind the number, up to the payload.
        bit = bound(bit, 8 * 8, 8 * 221 - 1);
        data[bit / 8] ^= bytes1(uint8(1 << (bit % 8)));
        vm.prank(me);
        (bool success,) = address(game).call(data);
        vm.assertFalse(success);
        vm.assertEq(game.head(number), _head(p, me));
    }

    function test_the_wrong_side_a_stranger_and_a_latecomer() public {
        At memory p = _at(Level.NODES, 20, 1 << 20, 0);
        _put(p, 100, BUDGET);
        bytes memory data = _move(p, 3, _below(p, 3, 2).row);
        _refuse(other, data, _wrongHead(other));
        _refuse(address(this), data, _wrongHead(address(this)));
        vm.warp(block.timestamp + 100);
        _refuse(me, data, abi.encodeWithSelector(ClockExpiry.OutOfTime.selector, block.timestamp));
        vm.warp(block.timestamp - 1);
        _send(me, data);
    }

    function test_what_the_other_side_said_is_no_answer() public {
        At memory p = _at(Level.LEAVES, 20, 64 << 20, 0);
        At memory next = _below(p, 5, 2);
        bytes32 root = _opening(next);
        bytes memory row = p.row;
        assembly {
            mstore(add(row, mul(32, 6)), root)
        }
        _put(p, 100, BUDGET);
        _refuse(me, _move(p, 5, next.row), abi.encodeWithSelector(MovePayload.Agreed.selector));
    }

    /// @dev The same of a subtree with few children.
    function test_what_the_other_side_said_is_no_answer_of_another_size() public {
        for (uint256 i = 0; i < 2; i++) {
            At memory p = i == 0 ? _at(Level.LEAVES, 5, 64 * 19, 0) : _at(Level.NODES, 5, 19, 0);
            At memory next = _below(p, 4, 2);
            vm.assertEq(next.row.length, 3 * 32);
            bytes32 root = _opening(next);
            bytes memory row = p.row;
            assembly {
                mstore(add(row, mul(32, 5)), root)
            }
            _put(p, 100, BUDGET);
            _refuse(me, _move(p, 4, next.row), abi.encodeWithSelector(MovePayload.Agreed.selector));
        }
    }

    function test_children_too_many_or_too_few() public {
        At memory p = _at(Level.LEAVES, 20, 64 << 20, 0);
        _put(p, 100, BUDGET);
        bytes memory row = _below(p, 5, 2).row;
        bytes memory reason = abi.encodeWithSelector(MovePayload.WrongPayloadLength.selector, 513, 512);
        _refuse(me, _move(p, 5, abi.encodePacked(row, uint8(0))), reason);
        reason = abi.encodeWithSelector(MovePayload.WrongPayloadLength.selector, 544, 512);
        _refuse(me, _move(p, 5, abi.encodePacked(row, bytes32(0))), reason);
        reason = abi.encodeWithSelector(MovePayload.WrongPayloadLength.selector, 0, 512);
        _refuse(me, _move(p, 5, ""), reason);
    }

    /// @dev A tree of 19 leaves: the second subtree of 16 has three, and their fourth neighbour is padding.
    function test_padding_is_neither_picked_nor_shown() public {
        At memory p = _at(Level.NODES, 5, 19, 0);
        vm.assertEq(p.row.length, 5 * 32);
        _put(p, 100, BUDGET);
        At memory next = _below(p, 4, 2);
        vm.assertEq(next.row.length, 3 * 32);
        bytes memory shown = abi.encodePacked(next.row, keccak256("pol/pad/1"));
        _refuse(me, _move(p, 4, shown), abi.encodeWithSelector(MovePayload.WrongPayloadLength.selector, 128, 96));
        _refuse(me, _move(p, 5, next.row), abi.encodeWithSelector(PickedPart.NoSuchPart.selector, 5));
        _send(me, _move(p, 4, next.row));
        vm.assertEq(game.head(number), _head(next, other));
    }

    /// @dev Sixteen children of a subtree in which fewer begin before the tree ends.
    function test_more_children_than_there_are() public {
        Level[3] memory levels = [Level.NODES, Level.LEAVES, Level.STATE];
        for (uint256 i = 0; i < 6; i++) {
            for (uint256 children = 13; children < 16; children += 2) {
                uint256 leaves = (11 << 16) + (children << 12);
                uint256 count = levels[i % 3] != Level.LEAVES ? leaves : i < 3 ? 64 * leaves : 64 * leaves - 63;
                At memory p = _at(levels[i % 3], 20, count, 0);
                At memory next = _below(p, 11, 2);
                vm.assertEq(next.row.length, 32 * children);
                _put(p, 100, BUDGET);
                bytes memory shown = abi.encodePacked(next.row, new bytes(512 - 32 * children));
                bytes4 wrong = MovePayload.WrongPayloadLength.selector;
                _refuse(me, _move(p, 11, shown), abi.encodeWithSelector(wrong, 512, 32 * children));
            }
        }
    }

    /// @dev Of an index beyond the subtree, whose lowest bits are those of a child, whatever the length of the call.
    function test_no_part_lies_beyond_a_subtree() public {
        At memory p = _at(Level.NODES, 20, 1 << 30, 0);
        _put(p, 100, BUDGET);
        bytes memory data = _move(p, 3, _below(p, 3, 2).row);
        for (uint256 k = 1; k < 16; k++) {
            bytes memory call = new bytes(data.length ^ k);
            for (uint256 i = 0; i < call.length && i < data.length; i++) {
                call[i] = data[i];
            }
            call[60] = bytes1(uint8(16 * k + 3));
            _refuse(me, call, abi.encodeWithSelector(PickedPart.NoSuchPart.selector, 16 * k + 3));
        }
    }

    /// @dev What is logged names the dispute by all bits of its number.
    function test_the_last_dispute_there_can_be() public {
        number = type(uint32).max;
        At memory p = _at(Level.LEAVES, 20, 64 << 20, 0);
        At memory next = _below(p, 9, 2);
        _put(p, 100, 7);
        vm.recordLogs();
        _send(me, _move(p, 9, next.row));
        _assertNext(p, next, 100, 7);
        vm.assertEq(vm.getRecordedLogs()[0].topics[0], bytes32(number));
    }

    /// @dev A child that begins where the tree ends is no child.
    function test_no_part_begins_at_the_end() public {
        At memory p = _at(Level.NODES, 5, 20, 0);
        _put(p, 100, BUDGET);
        _refuse(me, _move(p, 5, ""), abi.encodeWithSelector(PickedPart.NoSuchPart.selector, 5));
    }

    /// @dev A subtree that does not begin where the tree begins: 51 leaves, of which 32 are before it.
    function test_what_is_opened_of_a_later_subtree() public {
        At memory p = _at(Level.NODES, 5, 51, 32);
        _put(p, 100, BUDGET);
        At memory next = _below(p, 4, 2);
        vm.assertEq(next.row.length, 3 * 32);
        _send(me, _move(p, 4, next.row));
        vm.assertEq(game.head(number), _head(next, other));
    }

    function test_the_wrong_position_or_side_in_a_subtree_of_another_size() public {
        At memory p = _at(Level.NODES, 5, 19, 0);
        bytes memory data = _move(p, 4, _below(p, 4, 2).row);
        _put(p, 100, BUDGET);
        _refuse(other, data, _wrongHead(other));
        // Frame, child and sibling.
        for (uint256 at = 8; at < 125; at += at == 8 ? 61 : 32) {
            data[at] ^= 0x01;
            _refuse(me, data, _wrongHead(me));
            data[at] ^= 0x01;
        }
        _send(me, data);
    }
}
