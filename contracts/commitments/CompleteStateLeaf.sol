// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Chunk} from "./ILearningLog.sol";
import {LEAF_BYTES, MerkleBranch, PAD, TAG_LEAF, TAG_TENSOR} from "./MerkleBranch.sol";

// Domains of a complete state (docs/spec/complete_state.md).
uint8 constant TAG_COMPLETE_STATE = 0x0c;
uint8 constant TAG_ENTRY = 0x0d;
uint8 constant TAG_DOCUMENT = 0x0e;

/// @title CompleteStateLeaf
/// @notice The complete root that follows from one leaf of one entry and its branches.
library CompleteStateLeaf {
    uint256 private constant MAX_RANK = 32;
    uint256 private constant MAX_BYTES = 2 ** 40;
    uint256 private constant MAX_ENTRIES = 2 ** 24;
    uint256 private constant MAX_NAME = 2 ** 10;
    /// @dev Byte `t` is the number of bytes of an element of type `t`.
    bytes18 private constant ELEMENT_BYTES = 0x000404080202080201010102040808010101;

    /// @notice A state has 1 to 2^24 entries.
    error InvalidCount(uint32 count);
    /// @notice The name of an entry has 1 to 1,024 bytes.
    error InvalidName(uint256 length);
    /// @notice The form is neither the type of an array nor the length of a document.
    error InvalidForm(bytes form);
    /// @notice The leaf has `length` bytes, not `expected`.
    error InvalidLeaf(uint256 length, uint256 expected);

    /// @notice The complete root. Reverts if the chunk is malformed; whoever asks compares the root.
    /// @param position Of the entry, counted on from 0 past the last one.
    /// @param leaf Of the leaf in the entry, counted on from 0 past the last one.
    function root(Chunk calldata chunk, uint256 position, uint256 leaf) internal pure returns (bytes32) {
        uint32 count = chunk.count;
        if (count == 0 || count > MAX_ENTRIES) revert InvalidCount(count);
        uint256 length = chunk.name.length;
        if (length == 0 || length > MAX_NAME) revert InvalidName(length);
        bytes32 content = keccak256(abi.encodePacked(chunk.form, _tree(chunk, leaf)));
        bytes32 entry = keccak256(abi.encodePacked(TAG_ENTRY, uint16(length), chunk.name, content));
        bytes32 tree = MerkleBranch.climbIn(entry, position % count, chunk.entryBranch, count);
        return MerkleBranch.listRoot(TAG_COMPLETE_STATE, count, tree);
    }

    /// @notice How many leaves an entry of this form has.
    function leavesOf(bytes calldata form) internal pure returns (uint256) {
        uint256 size;
        if (form.length == 9 && uint8(form[0]) == TAG_DOCUMENT) {
            size = uint64(bytes8(form[1:]));
        } else {
            size = _arrayBytes(form);
        }
        return (size + LEAF_BYTES - 1) / LEAF_BYTES;
    }

    function _tree(Chunk calldata chunk, uint256 leaf) private pure returns (bytes32) {
        uint256 leaves = leavesOf(chunk.form);
        uint256 expected = leaves == 0 ? 0 : LEAF_BYTES;
        if (chunk.leaf.length != expected) revert InvalidLeaf(chunk.leaf.length, expected);
        if (leaves == 0) return MerkleBranch.climbIn(PAD, 0, chunk.branch, 1);
        return MerkleBranch.climbIn(MerkleBranch.tagged(TAG_LEAF, chunk.leaf), leaf % leaves, chunk.branch, leaves);
    }

    /// @dev `02 || u8 element type || u8 rank || u32 dims[rank]`: bytes of the array.
    function _arrayBytes(bytes calldata form) private pure returns (uint256 size) {
        if (form.length < 3 || uint8(form[0]) != TAG_TENSOR) revert InvalidForm(form);
        (uint256 element, uint256 rank) = (uint8(form[1]), uint8(form[2]));
        if (element == 0 || element >= ELEMENT_BYTES.length || rank > MAX_RANK || form.length != 3 + 4 * rank) {
            revert InvalidForm(form);
        }
        size = uint8(ELEMENT_BYTES[element]);
        bool isEmpty = false;
        for (uint256 i = 0; i < rank; ++i) {
            uint256 dimension = uint32(bytes4(form[3 + 4 * i:]));
            if (dimension == 0) isEmpty = true;
            else size *= dimension;
            // Zeros must not hide sizes that overflow: the product of the others is bounded too.
            if (size > MAX_BYTES) revert InvalidForm(form);
        }
        if (isEmpty) size = 0;
    }
}
