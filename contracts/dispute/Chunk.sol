// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Float32} from "../arithmetic/Float32.sol";
import {LEAF_WORDS} from "../commitments/MerkleBranch.sol";
import {Descriptor, OperandView} from "./Descriptor.sol";
import {Operands, Source} from "./Operands.sol";

/// @title Chunk
/// @notice Many terms of a fold at once: `acc = fma(a, b, acc)` along two runs of adjacent words (docs/spec/dispute.md,
/// proveStep).
library Chunk {
    /// @notice The terms do not lie in one row of the fold.
    error CrossesRow();
    /// @notice The operand gathers, is not read from adjacent words, or yields its fill somewhere in the chunk.
    error NotAdjacent(uint256 operand);

    /// @notice Reverts unless the coordinates of the first term and of the one `steps` after it differ in the last one
    /// only: it counts the terms then, and along them every affine form is one of a single number.
    function requireRow(Source memory source, uint256 steps, bytes calldata descriptor) internal pure {
        uint256 foldAt = source.node.foldAt;
        uint256 rank = Descriptor.u8(descriptor, foldAt);
        uint256 last = source.coordinates[source.coordinates.length - 1];
        // The last dimension stands at the end of those of the fold.
        if (rank == 0 || last + steps >= Descriptor.u32(descriptor, foldAt + 4 * rank - 3)) revert CrossesRow();
    }

    /// @notice The words of an operand from the source's coordinates to `steps` terms after them, from the next
    /// opening.
    /// @param steps Terms from the first to the last one; 1 to 63, so that two leaves hold them.
    /// @return words Byte of calldata at which the first of them begins; the others follow, because leaves do.
    function open(Source memory source, uint256 index, uint256 steps, bytes calldata descriptor)
        internal
        pure
        returns (uint256 words)
    {
        OperandView memory operand = Operands.viewOf(source, index, descriptor);
        int256 begin = Descriptor.affine(descriptor, operand.affineAt, source.coordinates);
        // Its last stride is that of the terms.
        int256 stride = Descriptor.i64(descriptor, operand.affineAt + 8 * source.coordinates.length);
        if (
            operand.gatherAt != 0 || stride != 1 || begin < 0 || uint256(begin) + steps >= operand.tensor.elements
                || _leavesBounds(operand, source.coordinates, int256(steps), descriptor)
        ) revert NotAdjacent(index);
        uint256 first = uint256(begin);
        bool isTwo = (first + steps) / LEAF_WORDS != first / LEAF_WORDS;
        bytes calldata leaves = Operands.open(source, operand, first / LEAF_WORDS, isTwo, descriptor);
        assembly ("memory-safe") {
            words := add(leaves.offset, mul(4, mod(first, LEAF_WORDS)))
        }
    }

    /// @dev Whether a bound is left at an end of the chunk. Bounds are affine: what holds at both ends holds in
    /// between.
    function _leavesBounds(OperandView memory operand, uint256[] memory place, int256 steps, bytes calldata descriptor)
        private
        pure
        returns (bool)
    {
        uint256 offset = operand.boundAt;
        for (uint256 i = 0; i < operand.bounds; ++i) {
            int256 value = Descriptor.affine(descriptor, offset, place);
            offset += 8 * place.length;
            int256 end = value + steps * Descriptor.i64(descriptor, offset);
            int256 limit = Descriptor.i64(descriptor, offset + 8);
            if (value < 0 || value >= limit || end < 0 || end >= limit) return true;
            offset += 16;
        }
        return false;
    }

    /// @notice The accumulator after `terms` terms on the words at the bytes `a` and `b` of calldata.
    function fold(uint256 a, uint256 b, uint256 terms, uint256 accumulator) internal pure returns (uint256) {
        unchecked {
            for (uint256 offset = 0; offset < 4 * terms; offset += 4) {
                accumulator = Float32.fma(_word(a + offset), _word(b + offset), accumulator);
            }
        }
        return accumulator;
    }

    /// @dev The little-endian word at a byte of calldata.
    function _word(uint256 place) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := calldataload(place)
            word := or(shl(24, byte(3, word)), or(shl(16, byte(2, word)), or(shl(8, byte(1, word)), byte(0, word))))
        }
    }
}
