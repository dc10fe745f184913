// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Clock, Result} from "../../../contracts/dispute/Clock.sol";
import {ClockExpiry} from "../../../contracts/dispute/ClockExpiry.sol";
import {Level} from "../../../contracts/dispute/Position.sol";
import {DisputeGame, MovePayload, PlacedMoves} from "./PlacedMoves.sol";
import {PlainShares} from "./PlainShares.sol";

/// @notice Answers in STEPS, against rules that are written down once more.
contract StepMovesTest is PlacedMoves {
    /// @dev STEPS `[lo, hi)` of a program with `nodes`; the roots at the ends of the parts follow the agreed one.
    struct At {
        uint32 nodes;
        uint64 lo;
        uint64 hi;
        bytes32[] roots;
    }

    uint24 internal constant REPLAY_GRACE = 7200;
    uint24 internal constant BUDGET = 9000;
    bytes32 internal constant FRAME = keccak256("frame");

    function _deploy(uint8 width) internal override {
        game = _deployGame(account("market"), _deployOneStep(), _deployStarts(), width, REPLAY_GRACE, 300);
    }

    // --- the rules, once more ---

    function _share(uint256 height) internal view returns (uint256) {
        return PlainShares.share(height, game.width());
    }

    function _pairs(bytes32[] memory roots) internal pure returns (bytes32[] memory row) {
        row = new bytes32[](roots.length - 1);
        for (uint256 i = 0; i < row.length; i++) {
            row[i] = keccak256(abi.encodePacked(roots[i], roots[i + 1]));
        }
    }

    function _opening(bytes32[] memory roots) internal pure returns (bytes32) {
        return PlainShares.root(_pairs(roots), PlainShares.padding(0));
    }

    function _head(bytes32 frame, bytes32 opening, address turn, uint8 level, uint8 height, At memory p)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encodePacked(frame, opening, turn, level, height, p.nodes, p.lo, p.hi));
    }

    /// @dev The roots at the ends of the parts of a range, after the agreed one.
    function _roots(bytes32 agreed, uint256 size, uint256 seed) internal view returns (bytes32[] memory roots) {
        roots = PlainShares.row(PlainShares.parts(size, game.width()) + 1, seed);
        roots[0] = agreed;
    }

    /// @dev What a mover opens below a part, and where it leads.
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
            bytes32[] memory roots = _roots(p.roots[index], q.hi - q.lo, 2);
            next.level = 1;
            for (uint256 i = 1; i < roots.length; i++) {
                next.payload = abi.encodePacked(next.payload, roots[i]);
            }
            next.head = _head(FRAME, _opening(roots), other, 1, 0, q);
            return next;
        }
        (next.level, next.height) = (2, uint8(PlainShares.depth(p.nodes)));
        uint256 below = next.height - _share(next.height);
        bytes32[] memory children = PlainShares.row((p.nodes + 2 ** below - 1) / 2 ** below, 2);
        next.payload = abi.encodePacked(children);
        bytes32 frame =
            keccak256(abi.encodePacked(keccak256(abi.encodePacked(FRAME, p.roots[index + 1])), p.roots[index], q.lo));
        (q.lo, q.hi) = (0, 0);
        bytes32 opening = PlainShares.root(children, PlainShares.padding(below));
        next.head = _head(frame, opening, other, 2, next.height, q);
    }

    function _put(At memory p, uint256 left, uint24 spare) internal {
        uint40 deadline = uint40(block.timestamp + left);
        bytes32 head = _head(FRAME, _opening(p.roots), me, 1, 0, p);
        _store(head, Clock(other, Level.STEPS, 0, true, Result.NONE, spare, deadline));
    }

    function _move(At memory p, uint256 index, bytes memory payload) internal view returns (bytes memory) {
        bytes memory branch = PlainShares.branch(_pairs(p.roots), PlainShares.padding(0), index);
        bytes memory witness = abi.encodePacked(p.roots[index], p.roots[index + 1], branch);
        bytes memory position = abi.encodePacked(uint32(number), FRAME, p.nodes, p.lo, p.hi);
        return abi.encodePacked(DisputeGame.answer.selector, position, uint8(index), witness, payload);
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
        return At(nodes, lo, lo + size, _roots(keccak256("agreed"), size, 1));
    }

    // --- the tests ---

    /// @dev Sixteen children where there are fifteen; with an odd number of nodes, too.
    function test_more_children_of_a_trace_than_there_are() public {
        for (uint32 nodes = 959; nodes <= 960; nodes++) {
            At memory p = _at(nodes, 617, 8);
            _put(p, 50, BUDGET);
            Next memory next = _next(p, 3);
            _refuse(me, _move(p, 3, abi.encodePacked(next.payload, keccak256("more"))), _length(512, 480));
            (bool success,) = _try(me, _move(p, 3, next.payload));
            vm.assertTrue(success);
            _assertNext(next, 50, BUDGET);
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
                        _refuse(me, _move(p, 4, more), _length(512, 480));
                    }
                    vm.cool(address(game));
                    (bool success,) = _try(me, _move(p, 4, next.payload));
                    uint256 used = vm.lastCallGas().gasTotalUsed;
                    vm.assertTrue(success);
                    _assertNext(next, 50 + i, spare);
                    if (i < 2) vm.assertLe(used, 22_100);
                }
            }
        }
    }

    function test_entering_a_step_costs_less_than_55000_gas() public {
        At memory p = _at(1000, 617, 8);
        _put(p, 100, BUDGET);
        Next memory next = _next(p, 5);
        bytes memory data = _move(p, 5, next.payload);
        vm.assertEq(data.length, 733);
        _sendCold(data, 55000);
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
        (bool success,) = _try(me, data);
        vm.assertFalse(success);
        vm.assertEq(game.head(number), _head(FRAME, _opening(p.roots), me, 1, 0, p));
    }

    function test_strangers_latecomers_and_wrong_lengths_are_refused() public {
        for (uint64 size = 8; size < 32; size += 16) {
            At memory p = _at(1000, 617, size);
            _put(p, 100, BUDGET);
            bytes memory payload = _next(p, 5).payload;
            bytes memory data = _move(p, 5, payload);
            _refuse(other, data, _wrongHead(other));
            _refuse(me, abi.encodePacked(data, uint8(0)), _length(payload.length + 1, payload.length));
            _refuse(me, _move(p, 5, ""), _length(0, payload.length));
            data[60] = bytes1(uint8(8));
            _refuse(me, data, _noPart(8));
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
