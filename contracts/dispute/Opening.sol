// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {LEAF_BYTES, LEAF_WORDS, MerkleBranch, TAG_LEAF} from "../commitments/MerkleBranch.sol";
import {Descriptor, TypeView} from "./Descriptor.sol";

/// @notice A data leaf of a tensor in a list of tensors (a state, a trace or the constants), with the branches that prove where it stands.
struct Opening {
    uint32 listCount; // tensors in the list
    bytes leaf; // 256 bytes
    bytes32[] leafBranch; // in the tensor's tree
    bytes32[] listBranch; // in the list's tree
}

/// @notice Where an opening has to stand.
struct Place {
    uint8 tag; // domain of the list
    bytes32 root; // commitment to the list
    uint256 index; // of the tensor in the list
    TypeView tensor;
    uint256 leaf; // index of the leaf in the tensor
}

/// @title Openings
/// @notice Checks openings and reads words from them.
library Openings {
    uint256 private constant ODD_BYTES = 0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff;
    uint256 private constant ODD_PAIRS = 0x0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff;

    /// @notice A leaf has `actual` bytes instead of 256.
    error WrongLeafLength(uint256 actual);
    /// @notice The opening does not lead to the commitment.
    error WrongInclusionProof();

    /// @notice Reverts unless the opening shows the leaf that stands at `place`.
    /// @param opening What was opened.
    /// @param place Where it has to stand.
    /// @param descriptor The bytes in which `place.tensor` is a type.
    function verify(Opening calldata opening, Place memory place, bytes calldata descriptor) internal pure {
        if (opening.leaf.length != LEAF_BYTES) revert WrongLeafLength(opening.leaf.length);
        TypeView memory tensor = place.tensor;
        bytes32 hash = MerkleBranch.climbIn(
            MerkleBranch.tagged(TAG_LEAF, opening.leaf),
            place.leaf,
            opening.leafBranch,
            Descriptor.leaves(tensor.elements)
        );
        hash = MerkleBranch.tensorRoot(descriptor[tensor.begin:tensor.end], hash);
        hash = MerkleBranch.climbIn(hash, place.index, opening.listBranch, opening.listCount);
        if (MerkleBranch.listRoot(place.tag, opening.listCount, hash) != place.root) revert WrongInclusionProof();
    }

    /// @notice Eight words of a leaf, from word `8 * row` on, the first one in the highest 32 bits. The caller has checked that
    /// the leaf has 256 bytes and that `row < 8`.
    function eightWords(bytes calldata leaf, uint256 row) internal pure returns (uint256 words) {
        assembly ("memory-safe") {
            words := calldataload(add(leaf.offset, mul(32, row)))
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
}
