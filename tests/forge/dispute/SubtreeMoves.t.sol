// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Clock, Result} from "../../../contracts/dispute/Clock.sol";
import {ClockExpiry} from "../../../contracts/dispute/ClockExpiry.sol";
import {Level} from "../../../contracts/dispute/Position.sol";
import {DisputeGame, MovePayload, PlacedMoves} from "./PlacedMoves.sol";
import {PlainShares} from "./PlainShares.sol";

/// @notice Answers in subtrees, against rules that are written down once more.
contract SubtreeMovesTest is PlacedMoves {
    struct At {
        Level level;
        uint256 height;
        uint256 count;
        uint256 lo;
        bytes32 frame;
        bytes32[] row; // children that lie open
    }

    uint24 internal constant MOVE_GRACE = 300;
    uint24 internal constant BUDGET = 5000;

    function _deploy(uint8 width) internal override {
        game = _deployGame(account("market"), _deployOneStep(), _deployStarts(), width, 7200, MOVE_GRACE);
    }

    // --- the rules, once more ---

    function _share(uint256 height) internal view returns (uint256) {
        return PlainShares.share(height, game.width());
    }

    function _opened(At memory p) internal view returns (bytes32[] memory hashes) {
        uint256 share = _share(p.height);
        hashes = new bytes32[](2 ** share);
        for (uint256 i = 0; i < hashes.length; i++) {
            hashes[i] = i < p.row.length ? p.row[i] : PlainShares.padding(p.height - share);
        }
    }

    function _opening(At memory p) internal view returns (bytes32) {
        return PlainShares.root(_opened(p), 0);
    }

    function _head(At memory p, address turn) internal view returns (bytes32) {
        return keccak256(
            abi.encodePacked(
                p.frame, _opening(p), turn, uint8(p.level), uint8(p.height), uint32(p.count), uint64(p.lo), uint64(0)
            )
        );
    }

    /// @dev As many children as the position has.
    function _row(At memory p, uint256 seed) internal view returns (bytes32[] memory) {
        uint256 share = _share(p.height);
        uint256 leaves = p.level == Level.LEAVES ? (p.count + 63) / 64 : p.count;
        uint256 children = 0;
        while (children < 2 ** share && p.lo + (children << (p.height - share)) < leaves) children++;
        return PlainShares.row(children, seed);
    }

    function _below(At memory p, uint256 index) internal view returns (At memory next) {
        next.level = p.level;
        next.height = p.height - _share(p.height);
        next.count = p.count;
        next.lo = p.lo + (index << next.height);
        next.frame =
            p.level == Level.NODES ? keccak256(abi.encodePacked(p.frame, _opening(p), uint8(p.height))) : p.frame;
        next.row = _row(next, 2);
    }

    function _put(At memory p, uint256 left, uint24 spare) internal {
        uint40 deadline = uint40(block.timestamp + left);
        _store(_head(p, me), Clock(other, p.level, uint8(p.height), true, Result.NONE, spare, deadline));
    }

    function _move(At memory p, uint256 index, bytes memory payload) internal view returns (bytes memory) {
        bytes32[] memory row = _opened(p);
        bytes memory witness = abi.encodePacked(row[index], PlainShares.branch(row, 0, index));
        bytes memory position = abi.encodePacked(uint32(number), p.frame, uint32(p.count), uint64(p.lo), uint64(0));
        return abi.encodePacked(DisputeGame.answer.selector, position, uint8(index), witness, payload);
    }

    function _move(At memory p, uint256 index, bytes32[] memory row) internal view returns (bytes memory) {
        return _move(p, index, abi.encodePacked(row));
    }

    function _at(Level level, uint256 height, uint256 count, uint256 lo) internal view returns (At memory p) {
        (p.level, p.height, p.count, p.lo) = (level, height, count, lo);
        p.frame = keccak256("frame");
        p.row = _row(p, 1);
    }

    /// @dev A position that is put into storage with plenty of time, and what answers in it with child `index`.
    function _placed(Level level, uint256 height, uint256 count, uint256 index)
        internal
        returns (At memory p, At memory next, bytes memory data)
    {
        p = _at(level, height, count, 0);
        next = _below(p, index);
        data = _move(p, index, next.row);
        _put(p, 100, BUDGET);
    }

    function _expectHead(At memory p, address turn) internal view {
        vm.assertEq(game.head(number), _head(p, turn));
    }

    // --- what it costs ---

    /// @dev Of sixteen below sixteen, of leaves, of nodes and of a state.
    function test_an_answer_costs_less_than_54000_gas() public {
        Level[3] memory levels = [Level.LEAVES, Level.NODES, Level.STATE];
        for (uint256 i = 0; i < 3; i++) {
            At memory p = _at(levels[i], 20, i == 0 ? 64 * 2 ** 24 : 2 ** 20, i == 0 ? 11 << 20 : 0);
            _put(p, 100, BUDGET);
            At memory next = _below(p, 11);
            bytes memory data = _move(p, 11, next.row);
            vm.assertEq(data.length, 733);
            _sendCold(data, 54000);
            _expectHead(next, other);
        }
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

    /// @dev Subtrees of every height, of which the last child is opened: it is whole, or ends in one leaf of the last
    /// subtree below it, or has one subtree less. Up to sixteen children have a ceiling: the gas beside calldata.
    function _everyHeight(Level level, uint8 width) private {
        _deploy(width);
        for (uint256 height = 2; height <= (level == Level.LEAVES ? 26 : 31); height++) {
            uint256 share = _share(height);
            uint256 opened = _share(height - share);
            if (opened == 0) continue;
            uint256 end = 1 << (height - share - opened);
            for (uint256 i = 0; i < 3; i++) {
                uint256 leaves = (1 << height) - (i == 0 ? 0 : i == 1 ? end - 1 : end);
                At memory p = _at(level, height, level == Level.LEAVES ? 64 * leaves - 63 : leaves, 0);
                uint256 index = p.row.length - 1;
                At memory next = _below(p, index);
                uint256 children = next.row.length;
                // Less than the grace or more, up to all bits.
                uint24 spare = i == 0 ? 7 : i == 1 ? type(uint24).max : BUDGET;
                _put(p, 100 + i, spare);
                if (i == 2 && index == (1 << share) - 1) {
                    vm.assertEq(children, (1 << opened) - 1);
                    bytes memory more = abi.encodePacked(next.row, keccak256("more"));
                    _refuse(me, _move(p, index, more), _length(32 * children + 32, 32 * children));
                }
                vm.cool(address(game));
                _send(_move(p, index, next.row));
                if (opened < 5) vm.assertLe(vm.lastCallGas().gasTotalUsed, 25_700);
                _assertNext(p, next, 100 + i, spare);
            }
        }
    }

    function test_subtrees_of_every_height_take_less_than_25700_gas() public {
        for (uint8 width = 4; width <= 5; width++) {
            _everyHeight(Level.NODES, width);
            _everyHeight(Level.LEAVES, width);
        }
    }

    /// @dev Every bit of what a move says about its position and its witness.
    function testFuzz_one_bit_of_a_move_is_wrong(uint256 bit) public {
        (At memory p,, bytes memory data) = _placed(Level.LEAVES, 20, 64 << 20, 11);
        // Behind the number, up to the payload.
        bit = bound(bit, 8 * 8, 8 * 221 - 1);
        data[bit / 8] ^= bytes1(uint8(1 << (bit % 8)));
        (bool success,) = _try(me, data);
        vm.assertFalse(success);
        _expectHead(p, me);
    }

    function test_the_wrong_side_a_stranger_and_a_latecomer() public {
        (,, bytes memory data) = _placed(Level.NODES, 20, 1 << 20, 3);
        _refuse(other, data, _wrongHead(other));
        _refuse(address(this), data, _wrongHead(address(this)));
        vm.warp(block.timestamp + 100);
        _refuse(me, data, abi.encodeWithSelector(ClockExpiry.OutOfTime.selector, block.timestamp));
        vm.warp(block.timestamp - 1);
        _send(data);
    }

    /// @dev Of a whole subtree, and of subtrees with few children.
    function test_what_the_other_side_said_is_no_answer() public {
        for (uint256 i = 0; i < 3; i++) {
            At memory p = i == 0
                ? _at(Level.LEAVES, 20, 64 << 20, 0)
                : i == 1 ? _at(Level.LEAVES, 5, 64 * 19, 0) : _at(Level.NODES, 5, 19, 0);
            At memory next = _below(p, 4);
            vm.assertEq(next.row.length, i == 0 ? 16 : 3);
            p.row[4] = _opening(next);
            _put(p, 100, BUDGET);
            _refuse(me, _move(p, 4, next.row), abi.encodeWithSelector(MovePayload.Agreed.selector));
        }
    }

    function test_children_too_many_or_too_few() public {
        (At memory p,, bytes memory data) = _placed(Level.LEAVES, 20, 64 << 20, 5);
        _refuse(me, abi.encodePacked(data, uint8(0)), _length(513, 512));
        _refuse(me, abi.encodePacked(data, bytes32(0)), _length(544, 512));
        _refuse(me, _move(p, 5, ""), _length(0, 512));
    }

    /// @dev A tree of 19 leaves: the second subtree of 16 has three, and their fourth neighbor is padding.
    function test_padding_is_neither_picked_nor_shown() public {
        (At memory p, At memory next, bytes memory data) = _placed(Level.NODES, 5, 19, 4);
        vm.assertEq(p.row.length, 5);
        vm.assertEq(next.row.length, 3);
        _refuse(me, abi.encodePacked(data, keccak256("pol/pad/1")), _length(128, 96));
        _refuse(me, _move(p, 5, next.row), _noPart(5));
        _send(data);
        _expectHead(next, other);
    }

    /// @dev Sixteen children of a subtree in which fewer begin before the tree ends.
    function test_more_children_than_there_are() public {
        Level[3] memory levels = [Level.NODES, Level.LEAVES, Level.STATE];
        for (uint256 i = 0; i < 6; i++) {
            for (uint256 children = 13; children < 16; children += 2) {
                uint256 leaves = (11 << 16) + (children << 12);
                uint256 count = levels[i % 3] != Level.LEAVES ? leaves : i < 3 ? 64 * leaves : 64 * leaves - 63;
                (, At memory next, bytes memory data) = _placed(levels[i % 3], 20, count, 11);
                vm.assertEq(next.row.length, children);
                _refuse(me, abi.encodePacked(data, new bytes(512 - 32 * children)), _length(512, 32 * children));
            }
        }
    }

    function test_the_last_dispute_there_can_be() public {
        number = type(uint32).max;
        (At memory p, At memory next, bytes memory data) = _placed(Level.LEAVES, 20, 64 << 20, 9);
        _put(p, 100, 7);
        vm.recordLogs();
        _send(data);
        _assertNext(p, next, 100, 7);
        _expectLogged(9, abi.encodePacked(next.row));
    }

    /// @dev A child that begins where the tree ends is no child.
    function test_no_part_begins_at_the_end() public {
        (At memory p,,) = _placed(Level.NODES, 5, 20, 0);
        _refuse(me, _move(p, 5, ""), _noPart(5));
    }

    /// @dev A subtree that does not begin where the tree begins: 51 leaves, of which 32 are before it.
    function test_what_is_opened_of_a_later_subtree() public {
        At memory p = _at(Level.NODES, 5, 51, 32);
        _put(p, 100, BUDGET);
        At memory next = _below(p, 4);
        vm.assertEq(next.row.length, 3);
        _send(_move(p, 4, next.row));
        _expectHead(next, other);
    }
}
