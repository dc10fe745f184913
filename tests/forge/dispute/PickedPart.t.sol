// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {PickedPart} from "../../../contracts/dispute/PickedPart.sol";
import {Level, Part, Position} from "../../../contracts/dispute/Position.sol";
import {Cursor, PackedReader} from "../../../contracts/dispute/PackedReader.sol";
import {Base} from "../Base.sol";
import {PlainShares} from "./PlainShares.sol";

contract PickedPartHarness {
    /// @dev `left` are the bytes that are not read.
    function read(Position memory p, uint256 index, bytes calldata witness, uint256 width)
        external
        pure
        returns (bytes32 opening, Part memory part, uint256 left)
    {
        Cursor memory cursor = PackedReader.over(witness);
        part.index = index;
        PickedPart.read(p, part, cursor, width);
        (opening, left) = (p.opening, cursor.end - cursor.next);
    }
}

/// @notice Which part a witness shows and where it leads to, against rules that are written down once more.
contract PickedPartTest is Base {
    PickedPartHarness private harness = new PickedPartHarness();

    struct Expected {
        bytes32 opening;
        bytes32 agreed;
        bytes32 claimed;
        uint256 lo;
        uint256 hi;
    }

    /// @dev Behind the witness there are bytes that do not belong to it.
    function _read(Position memory p, uint256 index, bytes memory witness, uint256 width, Expected memory expected)
        private
        view
    {
        (bytes32 opening, Part memory part, uint256 left) =
            harness.read(p, index, abi.encodePacked(witness, "rest"), width);
        vm.assertEq(opening, expected.opening);
        vm.assertEq(part.index, index);
        vm.assertEq(part.agreed, expected.agreed);
        vm.assertEq(part.claimed, expected.claimed);
        vm.assertEq(part.lo, expected.lo);
        vm.assertEq(part.hi, expected.hi);
        vm.assertEq(left, 4);
    }

    function _refuse(Position memory p, uint256 index, uint256 width) private {
        vm.expectRevert(abi.encodeWithSelector(PickedPart.NoSuchPart.selector, index));
        harness.read(p, index, new bytes(2000), width);
    }

    // --- subtrees ---

    function _children(Level level, uint256 height, uint256 leaves, uint256 lo, uint256 width) private {
        Position memory p;
        (p.level, p.height, p.lo) = (level, height, lo);
        p.count = level == Level.LEAVES ? 64 * leaves - 63 : leaves;
        uint256 share = PlainShares.share(height, width);
        bytes32[] memory row = PlainShares.row(2 ** share, 3);
        Expected memory expected;
        expected.opening = PlainShares.root(row, 0);
        for (uint256 i = 0; i < row.length; i++) {
            expected.lo = lo + (i << (height - share));
            if (expected.lo >= leaves) {
                _refuse(p, i, width);
                continue;
            }
            expected.claimed = row[i];
            _read(p, i, abi.encodePacked(row[i], PlainShares.branch(row, 0, i)), width, expected);
        }
        _refuse(p, row.length, width);
        _refuse(p, 255, width);
    }

    function test_children() public {
        Level[3] memory levels = [Level.NODES, Level.LEAVES, Level.STATE];
        for (uint256 i = 0; i < 3; i++) {
            for (uint256 height = 1; height < 10; height++) {
                uint256 size = 1 << height;
                _children(levels[i], height, 2 * size, 0, 4);
                _children(levels[i], height, size - size / 4, 0, 5);
                _children(levels[i], height, 3 * size + 1, 3 * size, 4);
                _children(levels[i], height, 4 * size - size / 2, 3 * size, 4);
            }
        }
    }

    // --- words ---

    /// @dev A leaf of words as the tensor has them, and of its words' values.
    function _leaf() private pure returns (bytes32[] memory row, uint32[] memory words) {
        row = PlainShares.row(8, 4);
        words = new uint32[](64);
        for (uint256 i = 0; i < 256; i++) {
            uint32 value = uint8(row[i / 32][i % 32]);
            // Little-endian.
            words[i / 4] |= value << uint32(8 * (i % 4));
        }
    }

    function _words(uint256 lo, uint256 count) private {
        (bytes32[] memory row, uint32[] memory words) = _leaf();
        Position memory p;
        (p.level, p.lo, p.count) = (Level.LEAF, lo, count);
        Expected memory expected;
        expected.opening = PlainShares.root(row, 0);
        for (uint256 i = 0; i < 64; i++) {
            expected.lo = 64 * lo + i;
            if (expected.lo >= count) {
                _refuse(p, i, 4);
                continue;
            }
            expected.claimed = bytes32(uint256(words[i]));
            _read(p, i, abi.encodePacked(row[i / 8], PlainShares.branch(row, 0, i / 8)), 4, expected);
        }
        _refuse(p, 64, 4);
        _refuse(p, 255, 4);
    }

    function test_words() public {
        _words(0, 1);
        _words(0, 64);
        _words(3, 3 * 64 + 17);
        _words(5, 1000);
    }

    // --- results ---

    function test_results() public {
        Position memory p;
        (p.level, p.count) = (Level.BODY, 9);
        bytes memory values;
        for (uint32 i = 0; i < 9; i++) {
            values = abi.encodePacked(values, 0xabcdef00 + i);
        }
        Expected memory expected;
        expected.opening = keccak256(values);
        for (uint256 i = 0; i < 9; i++) {
            expected.claimed = bytes32(0xabcdef00 + i);
            _read(p, i, values, 4, expected);
        }
        _refuse(p, 9, 4);
        _refuse(p, 10, 4);
    }

    // --- ranges ---

    function _sizes() private pure returns (uint64[17] memory) {
        return [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 257, type(uint64).max - 3];
    }

    function _range(Level level, uint256 size) private pure returns (Position memory p) {
        (p.level, p.lo, p.hi) = (level, 3, 3 + size);
    }

    function _sums(Level level, uint256 size, uint256 width) private {
        Position memory p = _range(level, size);
        bytes32[] memory sums = PlainShares.row(PlainShares.parts(size, width), 5);
        bytes32 missing = PlainShares.padding(0);
        Expected memory expected;
        expected.opening = PlainShares.root(sums, missing);
        for (uint256 i = 0; i < sums.length; i++) {
            (expected.lo, expected.hi) = (3 + i * size / sums.length, 3 + (i + 1) * size / sums.length);
            expected.claimed = sums[i];
            _read(p, i, abi.encodePacked(sums[i], PlainShares.branch(sums, missing, i)), width, expected);
        }
        _refuse(p, sums.length, width);
        _refuse(p, 255, width);
    }

    function test_sums() public {
        uint64[17] memory sizes = _sizes();
        for (uint256 i = 0; i < sizes.length; i++) {
            _sums(Level.SUM_SLOTS, sizes[i], 4);
            _sums(Level.SUM_LEAVES, sizes[i], 5);
        }
    }

    function _accumulators(uint256 size) private {
        Position memory p = _range(Level.TERMS, size);
        uint32[] memory values = new uint32[](PlainShares.parts(size, 6));
        for (uint256 i = 0; i < values.length; i++) {
            values[i] = uint32(uint256(keccak256(abi.encode(size, i))));
        }
        bytes[] memory pieces = PlainShares.pieces(77, values);
        bytes32[] memory leaves = PlainShares.leaves(pieces);
        bytes32 missing = PlainShares.padding(0);
        Expected memory expected;
        expected.opening = PlainShares.root(leaves, missing);
        for (uint256 i = 0; i < values.length; i++) {
            (expected.lo, expected.hi) = (3 + i * size / values.length, 3 + (i + 1) * size / values.length);
            expected.agreed = bytes32(uint256(i == 0 ? 77 : values[i - 1]));
            expected.claimed = bytes32(uint256(values[i]));
            _read(p, i, abi.encodePacked(pieces[i / 8], PlainShares.branch(leaves, missing, i / 8)), 4, expected);
        }
        _refuse(p, values.length, 4);
        _refuse(p, 255, 4);
    }

    function test_accumulators() public {
        uint64[17] memory sizes = _sizes();
        for (uint256 i = 0; i < sizes.length; i++) {
            _accumulators(sizes[i]);
        }
    }
}
