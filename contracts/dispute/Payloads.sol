// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {LEAF_BYTES, LEAF_WORDS, MerkleBranch, TAG_LEAF} from "../commitments/MerkleBranch.sol";
import {Descriptor} from "./Descriptor.sol";
import {Distance} from "./Distance.sol";
import {Frames} from "./Frames.sol";
import {PIECE_WORDS, Picks, TERMS_WIDTH, WORD_BYTES} from "./Picks.sol";
import {Level, Position} from "./Position.sol";
import {Shares} from "./Shares.sol";

/// @title Payloads
/// @notice What a move opens: its length is what the level asks for, and it is committed to (docs/spec/dispute.md, Levels).
library Payloads {
    /// @notice The payload has `actual` bytes instead of `expected`.
    error WrongPayloadLength(uint256 actual, uint256 expected);
    /// @notice What is opened leads to what the other side has said: the mover would agree.
    error Agreed();
    /// @notice The leaf has bytes other than zero past the end of its tensor.
    error DirtyLeaf();

    /// @notice State roots at the ends of the parts of `[p.lo, p.hi)`, of which the last one is not `claimed`.
    function openSteps(Position memory p, bytes calldata payload, bytes32 agreed, bytes32 claimed, uint256 width)
        internal
        pure
    {
        uint256 parts = Shares.parts(p.hi - p.lo, width);
        _requireLength(payload, 32 * parts);
        bytes32[] memory row = new bytes32[](parts);
        for (uint256 i = 0; i < parts; ++i) {
            bytes32 root = _hashAt(payload, i);
            row[i] = Frames.pair(agreed, root);
            agreed = root;
        }
        if (agreed == claimed) revert Agreed();
        p.opening = MerkleBranch.treeOf(row);
    }

    /// @notice Accumulators at the ends of the parts of `[p.lo, p.hi)`, of which the last one is not `claimed`.
    function openTerms(Position memory p, bytes calldata payload, bytes32 agreed, bytes32 claimed) internal pure {
        uint256 parts = Shares.parts(p.hi - p.lo, TERMS_WIDTH);
        _requireLength(payload, WORD_BYTES * parts);
        if (Descriptor.u32(payload, WORD_BYTES * (parts - 1)) == uint32(uint256(claimed))) revert Agreed();
        // All values from the agreed one on, and zeros behind them: pieces overlap in one value.
        bytes memory values = abi.encodePacked(uint32(uint256(agreed)), payload, new bytes(WORD_BYTES * PIECE_WORDS));
        bytes32[] memory row = new bytes32[]((parts + PIECE_WORDS - 1) / PIECE_WORDS);
        for (uint256 i = 0; i < row.length; ++i) {
            row[i] = _pieceHash(values, i);
        }
        p.opening = MerkleBranch.treeOf(row);
    }

    /// @notice The sum of each part of `[p.lo, p.hi)`; all together are not `claimed`.
    function openSums(Position memory p, bytes calldata payload, bytes32 claimed, uint256 width) internal pure {
        uint256 parts = Shares.parts(p.hi - p.lo, width);
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
        uint256 share = Shares.of_(p.height, width);
        uint256 height = p.height - share;
        _requireLength(payload, 32 * Shares.existing(p.lo, Picks.leavesOf(p), height, 1 << share));
        p.opening = MerkleBranch.root(payload, share, height);
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

    /// @dev `H(00 || 36 bytes)` of the piece that begins at value `8 * index`. `values` reach so far.
    function _pieceHash(bytes memory values, uint256 index) private pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            let hashed := mload(0x40)
            mstore8(hashed, TAG_LEAF)
            mcopy(add(hashed, 1), add(add(values, 32), mul(32, index)), 36)
            hash := keccak256(hashed, 37)
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
