// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {LEAF_BYTES, LEAF_WORDS, MerkleBranch, TAG_LEAF} from "../commitments/MerkleBranch.sol";
import {Descriptor} from "./Descriptor.sol";
import {Distance} from "./Distance.sol";
import {PIECE_WORDS, PickedPart, TERMS_WIDTH, WORD_BYTES} from "./PickedPart.sol";
import {Level, Position} from "./Position.sol";
import {OpeningSize} from "./OpeningSize.sol";

/// @title MovePayload
/// @notice What a move opens: its length is what the level asks for, and it is committed to (docs/spec/dispute.md,
/// Levels).
library MovePayload {
    /// @notice The payload has `actual` bytes instead of `expected`.
    error WrongPayloadLength(uint256 actual, uint256 expected);
    /// @notice What is opened leads to what the other side has said: the mover would agree.
    error Agreed();
    /// @notice The leaf has bytes other than zero past the end of its tensor.
    error DirtyLeaf();

    /// @notice State roots at the ends of the parts of so many steps, of which the last one is not `claimed`.
    /// @return opening Of them.
    function openSteps(uint256 steps, bytes calldata payload, bytes32 agreed, bytes32 claimed, uint256 width)
        internal
        pure
        returns (bytes32 opening)
    {
        uint256 parts = OpeningSize.parts(steps, width);
        _requireLength(payload, 32 * parts);
        if (_hashAt(payload, parts - 1) == claimed) revert Agreed();
        uint256 row = MerkleBranch.freeRow();
        _hashPairs(row, agreed, payload);
        opening = MerkleBranch.treeOf(row, parts);
    }

    /// @notice Accumulators at the ends of the parts of `[p.lo, p.hi)`, of which the last one is not `claimed`.
    function openTerms(Position memory p, bytes calldata payload, bytes32 agreed, bytes32 claimed) internal pure {
        uint256 parts = OpeningSize.parts(p.hi - p.lo, TERMS_WIDTH);
        _requireLength(payload, WORD_BYTES * parts);
        if (Descriptor.u32(payload, WORD_BYTES * (parts - 1)) == uint32(uint256(claimed))) revert Agreed();
        uint256 pieces = (parts + PIECE_WORDS - 1) / PIECE_WORDS;
        uint256 row = MerkleBranch.freeRow();
        _hashPieces(row, agreed, payload, pieces);
        p.opening = MerkleBranch.treeOf(row, pieces);
    }

    /// @notice The sum of each part of `[p.lo, p.hi)`; all together are not `claimed`.
    function openSums(Position memory p, bytes calldata payload, bytes32 claimed, uint256 width) internal pure {
        uint256 parts = OpeningSize.parts(p.hi - p.lo, width);
        _requireLength(payload, 32 * parts);
        uint256 total = 0;
        for (uint256 i = 0; i < parts; ++i) {
            total = Distance.add(total, uint256(_hashAt(payload, i)));
        }
        if (bytes32(total) == claimed) revert Agreed();
        p.opening = MerkleBranch.root(payload, MerkleBranch.depth(parts), 0);
    }

    /// @notice The children of the subtree of height `p.height` at `p.lo`; `p.opening` is their root.
    function openSubtree(Position memory p, bytes calldata payload, uint256 width) internal pure {
        p.opening = subtree(payload, p.height, p.lo, PickedPart.leavesOf(p), OpeningSize.of_(p.height, width));
    }

    /// @notice Root of the subtree of height `height` at `lo`, in a tree over `leaves`, of which `share` levels are
    /// opened.
    function subtree(bytes calldata payload, uint256 height, uint256 lo, uint256 leaves, uint256 share)
        internal
        pure
        returns (bytes32)
    {
        unchecked {
            // No more levels are opened than there are.
            height -= share;
        }
        _requireLength(payload, 32 * OpeningSize.existing(lo, leaves, height, 1 << share));
        return MerkleBranch.root(payload, share, height);
    }

    /// @notice The data leaf at `p.lo` of a tensor of `p.count` elements.
    /// @return hash Of the leaf.
    function openLeaf(Position memory p, bytes calldata payload) internal pure returns (bytes32 hash) {
        _requireLength(payload, LEAF_BYTES);
        uint256 words = p.count - LEAF_WORDS * p.lo;
        for (uint256 offset = WORD_BYTES * words; offset < LEAF_BYTES; offset += 32) {
            // A slice of less than 32 bytes is filled up with zeros.
            if (bytes32(payload[offset:]) != 0) revert DirtyLeaf();
        }
        p.opening = MerkleBranch.root(payload, 3, 0);
        return MerkleBranch.tagged(TAG_LEAF, payload);
    }

    /// @notice The results of all `p.count` instructions, of which the last one is not `claimed`.
    function openBody(Position memory p, bytes calldata payload, bytes32 claimed) internal pure {
        _requireLength(payload, WORD_BYTES * p.count);
        if (Descriptor.u32(payload, WORD_BYTES * (p.count - 1)) == uint32(uint256(claimed))) revert Agreed();
        p.opening = keccak256(payload);
    }

    /// @dev Writes `H(root before || root)` of each root in the payload to the free memory at `row`; `agreed` is before
    /// the first.
    function _hashPairs(uint256 row, bytes32 agreed, bytes calldata payload) private pure {
        assembly ("memory-safe") {
            mstore(0, agreed)
            for { let i := 0 } lt(i, payload.length) { i := add(i, 32) } {
                let root := calldataload(add(payload.offset, i))
                mstore(32, root)
                mstore(add(row, i), keccak256(0, 64))
                mstore(0, root)
            }
        }
    }

    /// @dev Writes `H(00 || 36 bytes)` of so many pieces to the free memory at `row`. They are cut from the agreed
    /// value, those in the payload and zeros behind them, and overlap in one value.
    function _hashPieces(uint256 row, bytes32 agreed, bytes calldata payload, uint256 pieces) private pure {
        assembly ("memory-safe") {
            let end := add(row, shl(5, pieces))
            // Values stand behind the hashes and a byte for the first tag.
            let values := add(end, 1)
            mstore(values, shl(224, agreed))
            calldatacopy(add(values, 4), payload.offset, payload.length)
            // Behind the calldata there are zeros.
            calldatacopy(add(add(values, 4), payload.length), calldatasize(), 32)
            for { let tag := end } lt(row, end) { row := add(row, 32) } {
                // The byte before a piece belongs to the piece before it, which has been hashed.
                mstore8(tag, TAG_LEAF)
                mstore(row, keccak256(tag, 37))
                tag := add(tag, 32)
            }
        }
    }

    /// @dev The caller has checked the length.
    function _hashAt(bytes calldata row, uint256 index) private pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            hash := calldataload(add(row.offset, mul(32, index)))
        }
    }

    function _requireLength(bytes calldata payload, uint256 expected) private pure {
        if (payload.length != expected) revert WrongPayloadLength(payload.length, expected);
    }
}
