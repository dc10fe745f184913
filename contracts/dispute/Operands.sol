// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {LEAF_WORDS, MerkleBranch, TAG_CONSTANTS, TAG_STATE} from "../commitments/MerkleBranch.sol";
import {Descriptor, NodeView, OperandView, TypeView} from "./Descriptor.sol";
import {Openings} from "./Opening.sol";
import {Cursor, PackedReader} from "./PackedReader.sol";

/// @notice What a node's operands are read from, and where.
struct Source {
    NodeView node;
    uint256 nodeIndex;
    uint256 step;
    uint256[] coordinates;
    bytes32 pre; // state before the step
    bytes32 constants; // 0 if they are not shown: then no opening leads to them
    uint256 roots; // byte of calldata at which the roots of the agreed prefix of the trace begin
    uint256 rootsEnd;
    Cursor proof; // at the next opening
}

/// @title Operands
/// @notice Reads operands at coordinates (docs/spec/program.md), from openings that lead to what both sides agree on.
library Operands {
    using PackedReader for Cursor;

    /// @notice An operand breaks the topological order, or gathers through an operand that it may not.
    error InvalidOperand(uint256 operand);

    uint256 private constant SOURCE_STATE = 1;
    uint256 private constant SOURCE_CONSTANT = 2;
    /// @dev A root of the prefix: bytes32 ‖ u8 height.
    uint256 private constant ROOT_BYTES = 33;

    /// @notice Coordinates of `term` of `element`.
    function coordinates(Source memory source, bytes calldata descriptor, uint256 element, uint256 term)
        internal
        pure
        returns (uint256[] memory result)
    {
        result = new uint256[](source.node.coordinates);
        result[0] = source.step;
        uint256 rank = _unravel(result, descriptor, source.node.output.begin + 1, element, 1);
        _unravel(result, descriptor, source.node.foldAt, term, 1 + rank);
    }

    /// @notice One operand at the coordinates: the fill, or a word proved by the next opening.
    function read(Source memory source, uint256 index, bytes calldata descriptor) internal pure returns (uint32) {
        OperandView memory operand = viewOf(source, index, descriptor);
        if (operand.gatherAt == 0) return _readAt(source, operand, 0, descriptor);
        uint256 through = Descriptor.u8(descriptor, operand.gatherAt);
        if (through >= index) revert InvalidOperand(index);
        OperandView memory indices = viewOf(source, through, descriptor);
        if (indices.gatherAt != 0) revert InvalidOperand(index);
        int256 value = int32(_readAt(source, indices, 0, descriptor));
        if (value < 0 || value >= Descriptor.i64(descriptor, operand.gatherAt + 9)) return operand.fill;
        return _readAt(source, operand, Descriptor.i64(descriptor, operand.gatherAt + 1) * value, descriptor);
    }

    /// @notice An operand of the node; the others are not looked at.
    function viewOf(Source memory source, uint256 index, bytes calldata descriptor)
        internal
        pure
        returns (OperandView memory result)
    {
        Descriptor.readOperand(result, descriptor, source.node.operandAt[index], source.node.coordinates);
    }

    /// @dev Whether a bound says that the operand is not read at these coordinates.
    function _isOutOfBounds(OperandView memory operand, uint256[] memory place, bytes calldata descriptor)
        private
        pure
        returns (bool)
    {
        uint256 offset = operand.boundAt;
        for (uint256 i = 0; i < operand.bounds; ++i) {
            int256 value = Descriptor.affine(descriptor, offset, place);
            offset += 8 + 8 * place.length;
            if (value < 0 || value >= Descriptor.i64(descriptor, offset)) return true;
            offset += 8;
        }
        return false;
    }

    /// @notice Reads leaf `index` of the operand's tensor from the next opening, and the one after it if `isTwo`.
    function open(
        Source memory source,
        OperandView memory operand,
        uint256 index,
        bool isTwo,
        bytes calldata descriptor
    ) internal pure returns (bytes calldata leaves) {
        // Of a state and the constants an opening says how many tensors they are.
        uint256 count = operand.source <= SOURCE_CONSTANT ? source.proof.number(4) : 0;
        bytes32 tensorRoot;
        (leaves, tensorRoot) = isTwo
            ? Openings.leavesOf(source.proof, operand.tensor, index, descriptor)
            : Openings.leafOf(source.proof, operand.tensor, index, descriptor);
        _requireAgreed(source, operand, count, tensorRoot);
    }

    /// @dev Row-major coordinates of `index` in the shape at byte `offset`, written from `first` on.
    function _unravel(uint256[] memory result, bytes calldata descriptor, uint256 offset, uint256 index, uint256 first)
        private
        pure
        returns (uint256 rank)
    {
        rank = Descriptor.u8(descriptor, offset);
        unchecked {
            // `Descriptor.node` has read these dimensions: none is zero, and there are as many places behind `first`.
            for (uint256 i = rank; i > 0; --i) {
                uint256 size = Descriptor.u32(descriptor, offset + 4 * i - 3);
                result[first + i - 1] = index % size;
                index /= size;
            }
        }
    }

    /// @dev The operand's word, `gathered` past the address that its coordinates give.
    function _readAt(Source memory source, OperandView memory operand, int256 gathered, bytes calldata descriptor)
        private
        pure
        returns (uint32)
    {
        if (_isOutOfBounds(operand, source.coordinates, descriptor)) return operand.fill;
        int256 address_ = Descriptor.affine(descriptor, operand.affineAt, source.coordinates) + gathered;
        if (address_ < 0 || uint256(address_) >= operand.tensor.elements) return operand.fill;
        bytes calldata leaf = open(source, operand, uint256(address_) / LEAF_WORDS, false, descriptor);
        return Openings.word(leaf, uint256(address_));
    }

    /// @dev Reads the branch from the operand's tensor to what both sides agree on.
    function _requireAgreed(Source memory source, OperandView memory operand, uint256 count, bytes32 tensorRoot)
        private
        pure
    {
        if (operand.source == SOURCE_STATE) {
            Openings.requireIn(source.proof, TAG_STATE, source.pre, count, operand.index, tensorRoot);
        } else if (operand.source == SOURCE_CONSTANT) {
            Openings.requireIn(source.proof, TAG_CONSTANTS, source.constants, count, operand.index, tensorRoot);
        } else {
            (bytes32 root, uint256 height) = _prefix(source, operand.index);
            bytes32[] calldata branch = source.proof.hashes(height);
            if (MerkleBranch.climb(tensorRoot, operand.index, branch) != root) revert Openings.WrongInclusionProof();
        }
    }

    /// @dev The smallest of the opened subtrees that holds the earlier node `index`. Both sides agree on it from there
    /// on down, because the disputed node lies in a later child; that a program reads no later node was agreed before,
    /// but is not relied on.
    function _prefix(Source memory source, uint256 index) private pure returns (bytes32 root, uint256 height) {
        if (index >= source.nodeIndex) revert InvalidOperand(index);
        uint256 offset = source.rootsEnd;
        while (offset > source.roots) {
            offset -= ROOT_BYTES;
            assembly ("memory-safe") {
                root := calldataload(offset)
                height := byte(0, calldataload(add(offset, 32)))
            }
            if (index >> height == source.nodeIndex >> height) return (root, height);
        }
        revert InvalidOperand(index);
    }
}
