// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MovePayload} from "../../../contracts/dispute/MovePayload.sol";
import {Level, Part, Position} from "../../../contracts/dispute/Position.sol";
import {PackedReader} from "../../../contracts/dispute/PackedReader.sol";
import {Transition} from "../../../contracts/dispute/Transition.sol";
import {NaiveTree, PlainProofs} from "./PlainProofs.sol";

contract DeepWalker {
    function describe(Position memory p, Part memory part, bytes calldata rest, uint256 width)
        external
        pure
        returns (Position memory)
    {
        return Transition.describe(p, part, PackedReader.over(rest), width);
    }

    function openState(Position memory p, bytes calldata rest, uint256 width) external pure returns (Position memory) {
        return Transition.openState(p, PackedReader.over(rest), width);
    }

    function unfold(Position memory p, Part memory part, bytes calldata rest) external pure returns (Position memory) {
        return Transition.unfold(p, part, PackedReader.over(rest));
    }
}

/// @notice Steps down that the toy program takes no game to: nodes below a second and a third opening, folds of one and
/// of two terms.
contract DeepTest is PlainProofs {
    DeepWalker private walker = new DeepWalker();

    function setUp() public {
        _buildToy(2);
        params.program = _program();
        params.constants = _constantsRoot();
        (facts.id, facts.end, facts.pre) = (keccak256("id"), keccak256("end"), keccak256("pre"));
        (facts.step, facts.node) = (STEP, 4);
    }

    /// @dev The frames and openings above node 4 of six, of which `width` levels of three lie open at a time.
    function _aboveNode(uint256 width) private view returns (Position memory position, bytes memory openings) {
        bytes32 frame = keccak256(abi.encodePacked(_origin(), params.constants));
        frame = keccak256(abi.encodePacked(frame, facts.end));
        frame = keccak256(abi.encodePacked(frame, facts.pre, uint64(facts.step)));
        for (uint256 height = 3; height > 1; height -= width) {
            bytes32 opening = keccak256(abi.encode("opening", height));
            openings = abi.encodePacked(openings, opening);
            frame = keccak256(abi.encodePacked(frame, opening, uint8(height)));
        }
        (position.level, position.height, position.count, position.lo) = (Level.NODES, 1, 6, 4);
        (position.frame, position.opening) = (frame, keccak256("last opening"));
    }

    function test_a_node_below_the_second_or_third_opening() public {
        for (uint256 width = 1; width <= 2; width++) {
            (Position memory position, bytes memory openings) = _aboveNode(width);
            Part memory part;
            (part.lo, part.claimed) = (4, keccak256("claimed"));
            bytes memory payload = NaiveTree.leaf(outputs[_key(0, STEP)][4], 0);
            bytes memory rest =
                abi.encodePacked(_stepFacts(), openings, _branch(_nodeHashes(), 4), _sized(nodes[4]), payload);
            Position memory next = walker.describe(position, part, rest, width);
            vm.assertTrue(next.level == Level.LEAF);
            vm.assertEq(next.count, 1);
            vm.assertEq(next.lo + next.hi + next.height, 0);
            bytes32 frame = keccak256(abi.encodePacked(position.frame, position.opening, uint8(1)));
            vm.assertEq(next.frame, keccak256(abi.encodePacked(frame, _outline())));
            vm.assertEq(next.opening, NaiveTree.tree(_words(payload)));
            // The opening of another level, or a height of which not all lies open.
            position.frame ^= bytes32(uint256(1));
            vm.expectRevert(Transition.WrongFrame.selector);
            walker.describe(position, part, rest, width);
            (position.frame, position.height) = (position.frame ^ bytes32(uint256(1)), width + 1);
            vm.expectRevert(abi.encodeWithSelector(Transition.WrongLevel.selector, Level.NODES));
            walker.describe(position, part, rest, width);
        }
    }

    /// @dev Its frame would not be the step's either.
    function test_the_state_is_not_opened_below_a_second_opening() public {
        (Position memory position,) = _aboveNode(2);
        bytes memory rest = abi.encodePacked(_stepFacts(), new bytes(96));
        for (position.lo = 0; position.lo < 6; position.lo += 2) {
            vm.expectRevert(abi.encodeWithSelector(Transition.WrongLevel.selector, Level.NODES));
            walker.openState(position, rest, 2);
        }
    }

    function _unfold(uint64 terms, bytes memory payload) private view returns (Position memory next, bytes32 frame) {
        Position memory position;
        position.level = Level.LEAF;
        bytes memory node = abi.encodePacked(keccak256("descriptor"), uint32(3), terms, uint32(77), uint8(2));
        position.frame = keccak256(abi.encodePacked(keccak256("before"), node));
        Part memory part;
        (part.lo, part.claimed) = (70, bytes32(uint256(9)));
        next = walker.unfold(position, part, abi.encodePacked(keccak256("before"), node, payload));
        frame = keccak256(abi.encodePacked(position.frame, uint64(70)));
    }

    function test_a_fold_of_two_terms_is_opened_term_by_term() public {
        (Position memory next, bytes32 frame) = _unfold(2, abi.encodePacked(uint32(5), uint32(6)));
        vm.assertTrue(next.level == Level.TERMS);
        vm.assertEq(next.lo, 0);
        vm.assertEq(next.hi, 2);
        vm.assertEq(next.frame, frame);
        bytes memory piece = abi.encodePacked(uint8(0), uint32(77), uint32(5), uint32(6), new bytes(24));
        vm.assertEq(next.opening, keccak256(piece));
        vm.expectRevert(MovePayload.Agreed.selector);
        this.unfoldTo(9);
    }

    function unfoldTo(uint32 last) external view {
        _unfold(2, abi.encodePacked(uint32(5), last));
    }

    function test_a_fold_of_one_term_is_its_body() public view {
        bytes memory results = abi.encodePacked(uint32(5), uint32(6));
        (Position memory next, bytes32 frame) = _unfold(1, results);
        vm.assertTrue(next.level == Level.BODY);
        vm.assertEq(next.count, 2);
        vm.assertEq(next.lo + next.hi + next.height, 0);
        vm.assertEq(next.frame, keccak256(abi.encodePacked(frame, uint64(0), uint32(77))));
        vm.assertEq(next.opening, keccak256(results));
    }
}
