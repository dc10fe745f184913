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

    /// @notice The words of the terms, in the leaves that hold them.
    struct Words {
        uint256 first; // address of the first
        uint256 left; // byte of calldata at which the leaf with the first begins
        uint256 right; // the same of the leaf after it, if there is more than one
    }

    /// @notice Reverts unless the coordinates of the first and the last term differ in the last one only: it counts the terms then, and
    /// along them every affine form is one of a single number.
    function requireRow(uint256[] memory first, uint256[] memory last) internal pure {
        for (uint256 i = 0; i + 1 < first.length; ++i) {
            if (first[i] != last[i]) revert CrossesRow();
        }
    }

    /// @notice The words of an operand from the source's coordinates to those of the `last` term, from the next opening.
    function words(
        Source memory source,
        uint256 index,
        uint256[] memory last,
        uint256 steps,
        bytes calldata descriptor
    ) internal pure returns (Words memory run) {
        OperandView memory operand = Operands.view_(source, index, descriptor);
        int256 begin = Descriptor.affine(descriptor, operand.affineAt, source.coordinates);
        int256 end = Descriptor.affine(descriptor, operand.affineAt, last);
        // Bounds are affine too: what holds at both ends holds in between.
        if (
            operand.gatherAt != 0 || end - begin != int256(steps) || begin < 0
                || uint256(end) >= operand.tensor.elements
                || Operands.isOutOfBounds(operand, source.coordinates, descriptor)
                || Operands.isOutOfBounds(operand, last, descriptor)
        ) revert NotAdjacent(index);
        run.first = uint256(begin);
        uint256 leaf = run.first / LEAF_WORDS;
        bytes calldata left;
        bytes calldata right;
        if (uint256(end) / LEAF_WORDS == leaf) {
            left = Operands.open(source, operand, leaf, descriptor);
            right = left;
        } else {
            (left, right) = Operands.openTwo(source, operand, leaf, descriptor);
        }
        assembly ("memory-safe") {
            mstore(add(run, 32), left.offset)
            mstore(add(run, 64), right.offset)
        }
    }

    /// @notice The accumulator after `terms` terms.
    function fold(Words memory a, Words memory b, uint256 terms, uint256 accumulator) internal pure returns (uint256) {
        for (uint256 i = 0; i < terms; ++i) {
            accumulator = Float32.fma(_word(a, i), _word(b, i), accumulator);
        }
        return accumulator;
    }

    function _word(Words memory run, uint256 i) private pure returns (uint256) {
        unchecked {
            // Addresses are those of elements.
            uint256 element = run.first + i;
            uint256 offset = element / LEAF_WORDS == run.first / LEAF_WORDS ? run.left : run.right;
            bytes calldata leaf;
            assembly ("memory-safe") {
                leaf.offset := offset
                leaf.length := 256
            }
            return Openings.word(leaf, element);
        }
    }
}
