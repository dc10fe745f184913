// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {LEAF_BYTES, LEAF_WORDS, MerkleBranch, TAG_LEAF} from "../commitments/MerkleBranch.sol";
import {Descriptor, TypeView} from "./Descriptor.sol";
import {Cursor, PackedReader} from "./PackedReader.sol";

/// @title Openings
/// @notice Reads openings (docs/spec/dispute.md, Openings), and words from the leaves in them.
library Openings {
    using PackedReader for Cursor;

    uint256 private constant ODD_BYTES = 0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff;
    uint256 private constant ODD_PAIRS = 0x0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff;

    /// @notice The opening does not lead to the commitment.
    error WrongInclusionProof();

    /// @notice Reads `leaf ‖ branch in its tensor's tree`: the leaf, and the root of the tensor that has it at `index`.
    /// @param descriptor The bytes in which `tensor` is a type.
    function leafOf(Cursor memory cursor, TypeView memory tensor, uint256 index, bytes calldata descriptor)
        internal
        pure
        returns (bytes calldata leaf, bytes32 tensorRoot)
    {
        leaf = cursor.slice(LEAF_BYTES);
        tensorRoot = _climb(cursor, MerkleBranch.tagged(TAG_LEAF, leaf), index, Descriptor.leaves(tensor.elements));
        tensorRoot = MerkleBranch.tensorRoot(descriptor[tensor.begin:tensor.end], tensorRoot);
    }

    /// @notice Reads `leaf ‖ leaf ‖ branches` of the leaves at `index` and `index + 1`. The siblings come from the
    /// bottom up, and where the two paths are apart the left one's first; once the paths have met there is one of each
    /// height.
    /// @param descriptor The bytes in which `tensor` is a type.
    function leavesOf(Cursor memory cursor, TypeView memory tensor, uint256 index, bytes calldata descriptor)
        internal
        pure
        returns (bytes calldata leaves, bytes32 tensorRoot)
    {
        uint256 count = Descriptor.leaves(tensor.elements);
        if (index + 1 >= count) revert MerkleBranch.IndexOutOfRange(index + 1, count);
        leaves = cursor.slice(2 * LEAF_BYTES);
        bytes32 left = MerkleBranch.tagged(TAG_LEAF, leaves[:LEAF_BYTES]);
        bytes32 right = MerkleBranch.tagged(TAG_LEAF, leaves[LEAF_BYTES:]);
        bytes32 tree = _climbBoth(cursor, left, right, index, MerkleBranch.depth(count));
        tensorRoot = MerkleBranch.tensorRoot(descriptor[tensor.begin:tensor.end], tree);
    }

    /// @notice Reads the branch of a tensor in a list, and reverts unless it leads to the list's root.
    /// @param tag Domain of the list.
    /// @param root Commitment to the list.
    /// @param count Tensors in the list.
    /// @param index The tensor's.
    function requireIn(Cursor memory cursor, uint8 tag, bytes32 root, uint256 count, uint256 index, bytes32 tensorRoot)
        internal
        pure
    {
        bytes32 tree = _climb(cursor, tensorRoot, index, count);
        if (MerkleBranch.listRoot(tag, uint32(count), tree) != root) revert WrongInclusionProof();
    }

    /// @notice Eight words of a leaf, from word `8 * row` on, the first one in the highest 32 bits. The caller has
    /// checked that the leaf has 256 bytes and that `row < 8`.
    function eightWords(bytes calldata leaf, uint256 row) internal pure returns (uint256) {
        uint256 offset;
        assembly ("memory-safe") {
            offset := add(leaf.offset, mul(32, row))
        }
        return eightWordsAt(offset);
    }

    /// @notice Eight words from byte `offset` of calldata on, the first one in the highest 32 bits.
    function eightWordsAt(uint256 offset) internal pure returns (uint256 words) {
        assembly ("memory-safe") {
            words := calldataload(offset)
        }
        // Leaves are little-endian: this turns round the bytes of all eight at once.
        words = ((words & ODD_BYTES) << 8) | ((words >> 8) & ODD_BYTES);
        return ((words & ODD_PAIRS) << 16) | ((words >> 16) & ODD_PAIRS);
    }

    /// @notice Word `index % 64` of a leaf (little-endian); the caller has checked that the leaf has 256 bytes.
    function word(bytes calldata leaf, uint256 index) internal pure returns (uint32 w) {
        uint256 offset;
        unchecked {
            // At most 252.
            offset = 4 * (index % LEAF_WORDS);
        }
        assembly ("memory-safe") {
            w := shr(224, calldataload(add(leaf.offset, offset)))
        }
        w = ((w & 0x00ff00ff) << 8) | ((w >> 8) & 0x00ff00ff);
        return (w << 16) | (w >> 16);
    }

    /// @dev The root of a tree over `count` leaves that has `leaf` at `index`.
    function _climb(Cursor memory cursor, bytes32 leaf, uint256 index, uint256 count) private pure returns (bytes32) {
        if (index >= count) revert MerkleBranch.IndexOutOfRange(index, count);
        return MerkleBranch.climb(leaf, index, cursor.hashes(MerkleBranch.depth(count)));
    }

    /// @dev The root over the leaves `left` at `index` and `right` at `index + 1`, both of which the tree has.
    function _climbBoth(Cursor memory cursor, bytes32 left, bytes32 right, uint256 index, uint256 height)
        private
        pure
        returns (bytes32)
    {
        // An odd left one and its right neighbour have different parents, neighbours again; the halved index is even in
        // the end, below the tree's root, because the right one lies in the tree.
        for (; index % 2 == 1; index /= 2) {
            left = MerkleBranch.inner(cursor.hash(), left);
            right = MerkleBranch.inner(right, cursor.hash());
            --height;
        }
        return MerkleBranch.climb(MerkleBranch.inner(left, right), index / 2, cursor.hashes(height - 1));
    }
}
