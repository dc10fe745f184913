// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Opening} from "../../../contracts/dispute/Opening.sol";
import {Level} from "../../../contracts/dispute/Position.sol";
import {StartParams} from "../../../contracts/interfaces/IDisputeGame.sol";
import {NaiveTree} from "../commitments/NaiveTree.sol";
import {GameTest} from "./GameTest.sol";

/// @notice Whole games: an honest asserter wins wherever it is led, a liar loses at the instruction it lied about.
contract DisputeGameTest is GameTest {
    uint64 private constant STEP = FIRST_STEP + 1;

    function _lie(uint256 node, uint256 element) private {
        outputs[STEP][node][element] ^= 1;
        _advance(STEP);
    }

    function _gather(uint256 element) private view returns (Opening[] memory openings) {
        openings = new Opening[](2);
        openings[0] = _openConstant(0, 0);
        openings[1] = _openConstant(1, constants[0][element] / 64);
    }

    function test_gather_is_right() public {
        _start(_replay(2));
        _toNode(0);
        _toElement(0);
        vm.assertTrue(p.level == Level.ONE_STEP);
        _prove("", _gather(0));
        _expectAnswer(true);
    }

    function test_gather_is_wrong() public {
        _lie(0, 1);
        _start(_replay(2));
        _toNode(0);
        _toElement(1);
        _prove("", _gather(1));
        _expectAnswer(false);
    }

    function _term(uint256 term, bool filled) private returns (Opening[] memory openings) {
        _toNode(1);
        _toElement(0);
        vm.assertTrue(p.level == Level.TERMS);
        _open();
        _pick(term);
        openings = new Opening[](filled ? 1 : 2);
        openings[0] = _openState(STEP, 0, 0);
        if (!filled) openings[1] = _openOutput(STEP, 0, 0);
    }

    function _foldIsRight(uint256 term, bool filled) private {
        _start(_replay(2));
        Opening[] memory openings = _term(term, filled);
        _prove("", openings);
        _expectAnswer(true);
    }

    function test_fold_is_right_at_its_first_term() public {
        _foldIsRight(0, false);
    }

    function test_fold_is_right_at_an_inner_term() public {
        _foldIsRight(1, false);
    }

    function test_fold_is_right_where_an_operand_is_filled() public {
        _foldIsRight(2, true);
    }

    function test_fold_is_wrong() public {
        _lie(1, 0);
        _start(_replay(2));
        Opening[] memory openings = _term(2, true);
        _prove("", openings);
        _expectAnswer(false);
    }

    function _instruction(uint256 instruction) private returns (bytes memory values, Opening[] memory openings) {
        _toNode(2);
        _toElement(1);
        vm.assertTrue(p.level == Level.BODY);
        _open();
        values = opened;
        _pick(instruction);
        openings = new Opening[](1);
        openings[0] = instruction == 0 ? _openOutput(STEP, 1, 0) : _openState(STEP, 0, 0);
    }

    function test_body_is_right_at_its_first_instruction() public {
        _start(_replay(2));
        (bytes memory values, Opening[] memory openings) = _instruction(0);
        _prove(values, openings);
        _expectAnswer(true);
    }

    function test_body_is_right_at_its_last_instruction() public {
        _start(_replay(2));
        (bytes memory values, Opening[] memory openings) = _instruction(1);
        _prove(values, openings);
        _expectAnswer(true);
    }

    function test_body_is_wrong() public {
        _lie(2, 1);
        _start(_replay(2));
        (bytes memory values, Opening[] memory openings) = _instruction(1);
        _prove(values, openings);
        _expectAnswer(false);
    }

    function test_second_leaf_is_right_inside_and_past_the_bound() public {
        _start(_replay(2));
        _toNode(3);
        _toElement(64);
        Opening[] memory openings = new Opening[](1);
        openings[0] = _openState(STEP, 1, 1);
        _prove("", openings);
        _expectAnswer(true);
    }

    function test_read_past_the_bound_needs_no_opening() public {
        _start(_replay(2));
        _toNode(3);
        _toElement(65);
        _prove("", new Opening[](0));
        _expectAnswer(true);
    }

    function test_coordinate_is_the_step() public {
        _start(_replay(2));
        _toNode(4);
        _toElement(0);
        Opening[] memory openings = new Opening[](1);
        openings[0] = _openState(STEP, 2, 0);
        _prove("", openings);
        _expectAnswer(true);
    }

    function test_one_step_begins_at_its_trace() public {
        _start(_replay(1));
        vm.assertTrue(p.level == Level.TRACE);
        _open();
        _pick(4);
        _toElement(0);
        Opening[] memory openings = new Opening[](1);
        openings[0] = _openState(FIRST_STEP, 2, 0);
        _prove("", openings);
        _expectAnswer(true);
    }

    function _slotIsRight(uint256 slot) private {
        _start(_replay(2));
        _toSlot(slot);
        vm.assertEq(p.element, slot);
        vm.prank(asserter);
        game.proveSlot(id, p, _slotProof(slot));
        _expectAnswer(true);
    }

    function test_first_slot_is_right() public {
        _slotIsRight(0);
    }

    function test_last_slot_is_right() public {
        _slotIsRight(2);
    }

    /// @dev The liar executes honestly and claims a state that its own trace does not yield.
    function test_slot_is_wrong_under_a_right_trace() public {
        states[FIRST_STEP + 2][1][17] ^= 1;
        _start(_replay(2));
        _toSlot(1);
        vm.prank(asserter);
        vm.expectRevert();
        game.proveSlot(id, p, _slotProof(1));
        vm.warp(block.timestamp + CLOCK);
        game.timeout(id);
        _expectAnswer(false);
    }

    function _sums(uint8 component) private view returns (bytes memory row, uint256 total) {
        // 1.5 - 0.5 and the like: the oracle is Distance, tested on its own.
        for (uint256 slot = 0; slot < 3; slot++) {
            uint256 sum = 0;
            uint32[] memory x = states[FIRST_STEP + 2][slot];
            for (uint256 i = 0; i < x.length; i++) {
                sum = walk.add(sum, walk.distance(x[i], states[FIRST_STEP][slot][i], slot == 2 ? 2 : 1, slot == 1 ? 12 : 0));
            }
            bool counts = component == (slot == 0 ? 1 : slot == 1 ? 3 : 2);
            row = abi.encodePacked(row, counts ? sum : 0);
            if (counts) total = sum;
        }
    }

    function _leafSums() private view returns (bytes memory) {
        uint256 sum = 0;
        for (uint256 i = 0; i < 64; i++) {
            sum += walk.distance(states[FIRST_STEP + 2][1][i], states[FIRST_STEP][1][i], 1, 12);
        }
        return abi.encodePacked(sum, uint256(p.claimed) - sum);
    }

    function test_sum_of_one_leaf_is_right() public {
        (bytes memory row, uint256 total) = _sums(1);
        _start(_distance(1, total));
        _open(row);
        _pick(0);
        _describeSlot();
        vm.assertTrue(p.level == Level.SUM_LEAF);
        vm.prank(asserter);
        game.proveSum(id, p, slots[0], _openState(FIRST_STEP + 2, 0, 0), _openState(FIRST_STEP, 0, 0));
        _expectAnswer(true);
    }

    function test_sum_of_two_leaves_is_right() public {
        (bytes memory row, uint256 total) = _sums(3);
        _start(_distance(3, total));
        _open(row);
        _pick(1);
        _describeSlot();
        vm.assertTrue(p.level == Level.SUM_LEAVES);
        _open(_leafSums());
        _pick(1);
        vm.prank(asserter);
        game.proveSum(id, p, slots[1], _openState(FIRST_STEP + 2, 1, 1), _openState(FIRST_STEP, 1, 1));
        _expectAnswer(true);
    }

    function test_sum_is_wrong() public {
        (bytes memory row, uint256 total) = _sums(1);
        _start(_distance(1, total + 1));
        row[31] = bytes1(uint8(row[31]) + 1);
        _open(row);
        _pick(0);
        _describeSlot();
        vm.prank(asserter);
        game.proveSum(id, p, slots[0], _openState(FIRST_STEP + 2, 0, 0), _openState(FIRST_STEP, 0, 0));
        _expectAnswer(false);
    }

    function test_sum_of_another_component_is_zero() public {
        (bytes memory row, uint256 total) = _sums(1);
        _start(_distance(1, total));
        _open(row);
        _pick(2);
        _describeSlot();
        _expectAnswer(true);
    }

    function test_sum_of_another_component_is_not_zero() public {
        _start(_distance(1, 9));
        _open(abi.encodePacked(uint256(0), uint256(9), uint256(0)));
        _pick(1);
        _describeSlot();
        _expectAnswer(false);
    }

    function test_sum_counts_an_integer() public {
        (bytes memory row, uint256 total) = _sums(2);
        vm.assertEq(total, 2 ** 160);
        _start(_distance(2, total));
        _open(row);
        _pick(2);
        _describeSlot();
        vm.prank(asserter);
        game.proveSum(id, p, slots[2], _openState(FIRST_STEP + 2, 2, 0), _openState(FIRST_STEP, 2, 0));
        _expectAnswer(true);
    }

    /// @dev A number without a distance is infinitely far from every other, and an infinite part makes an infinite sum.
    function test_sum_may_be_infinite() public {
        states[FIRST_STEP + 2][0][1] = 0x7fc00000;
        (bytes memory row, uint256 total) = _sums(1);
        vm.assertEq(total, type(uint256).max);
        _start(_distance(1, total));
        _open(row);
        _pick(0);
        _describeSlot();
        vm.prank(asserter);
        game.proveSum(id, p, slots[0], _openState(FIRST_STEP + 2, 0, 0), _openState(FIRST_STEP, 0, 0));
        _expectAnswer(true);
    }

    /// @dev A stranger may commit to garbage behind the end of its tensor: an honest asserter can open it all the same.
    function test_sum_ignores_the_filling_of_the_last_leaf() public {
        (bytes memory row, uint256 total) = _sums(1);
        bytes memory dirty = NaiveTree.leaf(states[FIRST_STEP][0], 0);
        dirty[203] = 0x3f; // word 50 is 0.5
        bytes32[] memory roots = _slotRoots(FIRST_STEP);
        roots[0] = keccak256(abi.encodePacked(uint8(2), _slotType(0), keccak256(abi.encodePacked(uint8(0), dirty))));
        StartParams memory s = _distance(1, total);
        s.y = NaiveTree.listRoot(3, roots);
        _start(s);
        _open(row);
        _pick(0);
        _describeSlot();
        Opening memory y = Opening(3, dirty, new bytes32[](0), NaiveTree.branch(roots, 0));
        vm.prank(asserter);
        game.proveSum(id, p, slots[0], _openState(FIRST_STEP + 2, 0, 0), y);
        _expectAnswer(true);
    }
}
