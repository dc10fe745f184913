// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MovePayload} from "../../../contracts/dispute/MovePayload.sol";
import {Level, Part, Position} from "../../../contracts/dispute/Position.sol";
import {Transition} from "../../../contracts/dispute/Transition.sol";
import {Base} from "../Base.sol";
import {NaiveTree} from "../commitments/NaiveTree.sol";

contract Walker {
    function answer(Position memory p, Part memory part, bytes calldata payload, uint256 width)
        external
        pure
        returns (Position memory)
    {
        return Transition.answer(p, part, payload, width);
    }
}

/// @notice Answers in ranges that are longer than those of the toy program: folds of more than 64 terms, sums of more
/// than 16 parts.
contract TransitionTest is Base {
    uint64 private constant LO = 200;
    uint64 private constant HI = 300;
    /// @dev A hundred parts are seven levels, opened as four and three.
    uint256 private constant PARTS = 16;

    Walker private walker = new Walker();

    function _at(Level level) private pure returns (Position memory p, Part memory part) {
        (p.level, p.lo, p.hi, p.frame) = (level, 100, 1700, keccak256("frame"));
        (part.lo, part.hi) = (LO, HI);
    }

    function _assertRange(Position memory p, Position memory next, bytes32 opening) private pure {
        vm.assertTrue(next.level == p.level);
        vm.assertEq(next.lo, LO);
        vm.assertEq(next.hi, HI);
        vm.assertEq(next.frame, p.frame);
        vm.assertEq(next.height, 0);
        vm.assertEq(next.count, 0);
        vm.assertEq(next.opening, opening);
    }

    function test_accumulators_in_a_range_of_terms() public {
        (Position memory p, Part memory part) = _at(Level.TERMS);
        (part.agreed, part.claimed) = (bytes32(uint256(7)), bytes32(uint256(2000)));
        bytes[2] memory pieces = [abi.encodePacked(uint32(7)), bytes("")];
        bytes memory payload;
        for (uint32 i = 0; i < PARTS; i++) {
            payload = abi.encodePacked(payload, 1000 + i);
            if (i < 8) pieces[0] = abi.encodePacked(pieces[0], 1000 + i);
            // Pieces overlap in one accumulator.
            if (i >= 7) pieces[1] = abi.encodePacked(pieces[1], 1000 + i);
        }
        bytes32[] memory leaves = new bytes32[](2);
        for (uint256 i = 0; i < 2; i++) {
            leaves[i] = keccak256(abi.encodePacked(uint8(0), pieces[i]));
        }
        _assertRange(p, walker.answer(p, part, payload, 4), NaiveTree.tree(leaves));
        part.claimed = bytes32(uint256(1015));
        vm.expectRevert(MovePayload.Agreed.selector);
        walker.answer(p, part, payload, 4);
    }

    function test_sums_in_a_range() public {
        for (uint256 level = uint256(Level.SUM_SLOTS); level <= uint256(Level.SUM_LEAVES); level++) {
            (Position memory p, Part memory part) = _at(Level(level));
            part.claimed = bytes32(uint256(1));
            bytes memory payload;
            bytes32[] memory sums = new bytes32[](PARTS);
            for (uint256 i = 0; i < PARTS; i++) {
                sums[i] = bytes32(3 * i);
                payload = abi.encodePacked(payload, sums[i]);
            }
            _assertRange(p, walker.answer(p, part, payload, 4), NaiveTree.tree(sums));
            part.claimed = bytes32(uint256(360));
            vm.expectRevert(MovePayload.Agreed.selector);
            walker.answer(p, part, payload, 4);
        }
    }

    /// @dev Below a single term, slot or leaf there is no range.
    function test_a_range_of_one_is_not_answered() public {
        for (uint256 level = uint256(Level.TERMS); level <= uint256(Level.SUM_LEAVES); level++) {
            if (level == uint256(Level.BODY) || level == uint256(Level.STATE)) continue;
            (Position memory p, Part memory part) = _at(Level(level));
            part.hi = LO + 1;
            vm.expectRevert(abi.encodeWithSelector(Transition.WrongLevel.selector, level));
            walker.answer(p, part, new bytes(32), 4);
        }
    }
}
