// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Float32} from "../arithmetic/Float32.sol";
import {LEAF_WORDS} from "../commitments/MerkleBranch.sol";
import {Descriptor, OperandView} from "./Descriptor.sol";
import {Openings} from "./Opening.sol";
import {Operands, Source} from "./Operands.sol";

/// @title Chunk
/// @notice Many terms of a fold at once: `acc = fma(a, b, acc)` along two runs of adjacent words (docs/spec/dispute.md, proveStep).
library Chunk {
    /// @notice The terms do not lie in one row of the fold.
    error CrossesRow();
    /// @notice The operand gathers, is not read from adjacent words, or yields its fill somewhere in the chunk.
    error NotAdjacent(uint256 operand);

    /// @notice Reverts unless the coordinates of the first and the last term differ in the last one only: it counts the terms then, and
    /// along them every affine form is one of a single number.
    function requireRow(uint256[] memory first, uint256[] memory last) internal pure {
        for (uint256 i = 0; i + 1 < first.length; ++i) {
            if (first[i] != last[i]) revert CrossesRow();
        }
    }

    /// @notice The words of an operand from the source's coordinates to those of the `last` term, from the next opening.
    /// @param steps Terms from the first to the last one; at most 63, so that two leaves hold them.
    /// @return words Byte of calldata at which the first of them begins; the others follow, because leaves do.
    function open(
        Source memory source,
        uint256 index,
        uint256[] memory last,
        uint256 steps,
        bytes calldata descriptor
    ) internal pure returns (uint256 words) {
        OperandView memory operand = Operands.viewOf(source, index, descriptor);
        int256 begin = Descriptor.affine(descriptor, operand.affineAt, source.coordinates);
        int256 end = Descriptor.affine(descriptor, operand.affineAt, last);
        // Bounds are affine too: what holds at both ends holds in between.
        if (
            operand.gatherAt != 0 || end - begin != int256(steps) || begin < 0
                || uint256(end) >= operand.tensor.elements
                || Operands.isOutOfBounds(operand, source.coordinates, descriptor)
                || Operands.isOutOfBounds(operand, last, descriptor)
        ) revert NotAdjacent(index);
        uint256 first = uint256(begin);
        bool isTwo = uint256(end) / LEAF_WORDS != first / LEAF_WORDS;
        bytes calldata leaves = Operands.open(source, operand, first / LEAF_WORDS, isTwo, descriptor);
        assembly ("memory-safe") {
            words := add(leaves.offset, mul(4, mod(first, LEAF_WORDS)))
        }
    }

    /// @notice The accumulator after `terms` terms on the words at the bytes `a` and `b` of calldata.
    function fold(uint256 a, uint256 b, uint256 terms, uint256 accumulator) internal pure returns (uint256) {
        unchecked {
            uint256 x;
            uint256 y;
            for (uint256 i = 0; i < terms; ++i) {
                if (i % 8 == 0) (x, y) = (Openings.eightWordsAt(a + 4 * i), Openings.eightWordsAt(b + 4 * i));
                accumulator = Float32.fma(x >> 224, y >> 224, accumulator);
                (x, y) = (x << 32, y << 32);
            }
            return accumulator;
        }
    }
}
