// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {LEAF_WORDS, MerkleBranch, TAG_LEAF} from "../commitments/MerkleBranch.sol";
import {Descriptor} from "./Descriptor.sol";
import {Openings} from "./Opening.sol";
import {Level, Part, Position} from "./Position.sol";
import {Cursor, PackedReader} from "./PackedReader.sol";
import {OpeningSize} from "./OpeningSize.sol";

/// @dev Levels that an opening of accumulators shows, and accumulators in one of its pieces.
uint256 constant TERMS_WIDTH = 6;
uint256 constant PIECE_WORDS = 8;
/// @dev Bytes of an accumulator, a result or an element.
uint256 constant WORD_BYTES = 4;

/// @title PickedPart
/// @notice The part of an opening that a move picks: its witness shows the part, and leads to the opening
/// (docs/spec/dispute.md, Levels).
library PickedPart {
    using PackedReader for Cursor;

    /// @notice There is no part `index`.
    error NoSuchPart(uint256 index);

    /// @dev Bytes of an opened leaf in one of its pieces, and their tree's depth.
    uint256 private constant LEAF_PIECE_WORDS = 8;
    uint256 private constant LEAF_PIECES_DEPTH = 3;

    /// @notice Reads the witness of part `part.index` into `part`; sets `p.opening` to what it leads to.
    /// @param p As the move says, without an opening.
    /// @param width Levels that an opening shows at most.
    function read(Position memory p, Part memory part, Cursor memory cursor, uint256 width) internal pure {
        Level level = p.level;
        if (level == Level.NODES || level == Level.LEAVES || level == Level.STATE) {
            _child(p, part, cursor, OpeningSize.of_(p.height, width));
        } else if (level == Level.LEAF) {
            _word(p, part, cursor);
        } else if (level == Level.BODY) {
            _result(p, part, cursor);
        } else if (level == Level.TERMS) {
            _range(p, part, cursor, TERMS_WIDTH);
        } else {
            _range(p, part, cursor, width);
        }
    }

    /// @notice Leaves of the tree that the position's subtree belongs to.
    function leavesOf(Position memory p) internal pure returns (uint256) {
        return p.level == Level.LEAVES ? Descriptor.leaves(p.count) : p.count;
    }

    /// @dev `child || branch`. Padding cannot be picked. `part.lo` is the child's first leaf.
    function _child(Position memory p, Part memory part, Cursor memory cursor, uint256 share) private pure {
        unchecked {
            // Numbers of leaves, and an index of 8 bits.
            part.lo = p.lo + (part.index << (p.height - share));
        }
        if (part.index >> share != 0 || part.lo >= leavesOf(p)) revert NoSuchPart(part.index);
        part.claimed = cursor.hash();
        p.opening = MerkleBranch.climb(part.claimed, part.index, cursor.hashes(share));
    }

    /// @dev `piece || branch`; `part.lo` is the element of the tensor.
    function _word(Position memory p, Part memory part, Cursor memory cursor) private pure {
        unchecked {
            // `lo` has 64 bits.
            part.lo = LEAF_WORDS * p.lo + part.index;
        }
        if (part.index >= LEAF_WORDS || part.lo >= p.count) revert NoSuchPart(part.index);
        bytes calldata piece = cursor.slice(32);
        part.claimed = bytes32(uint256(Openings.word(piece, part.index % LEAF_PIECE_WORDS)));
        p.opening = MerkleBranch.climb(bytes32(piece), part.index / LEAF_PIECE_WORDS, cursor.hashes(LEAF_PIECES_DEPTH));
    }

    /// @dev All results; those before the picked one are agreed.
    function _result(Position memory p, Part memory part, Cursor memory cursor) private pure {
        if (part.index >= p.count) revert NoSuchPart(part.index);
        bytes calldata values = cursor.slice(WORD_BYTES * p.count);
        part.claimed = bytes32(uint256(Descriptor.u32(values, WORD_BYTES * part.index)));
        p.opening = keccak256(values);
    }

    /// @dev Values at the ends of the part, or its sum.
    function _range(Position memory p, Part memory part, Cursor memory cursor, uint256 width) private pure {
        uint256 parts = OpeningSize.parts(p.hi - p.lo, width);
        if (part.index >= parts) revert NoSuchPart(part.index);
        unchecked {
            // A range of 64 bits, at most 64 times.
            uint256 scaled = part.index * (p.hi - p.lo);
            part.lo = p.lo + scaled / parts;
            part.hi = p.lo + (scaled + p.hi - p.lo) / parts;
        }
        (bytes32 leaf, uint256 place, uint256 leaves) = (bytes32(0), part.index, parts);
        if (p.level == Level.TERMS) {
            bytes calldata piece = cursor.slice(WORD_BYTES * (PIECE_WORDS + 1));
            unchecked {
                // Both values lie in the piece; parts are 64 at most.
                uint256 word = part.index % PIECE_WORDS;
                part.agreed = bytes32(uint256(Descriptor.u32(piece, WORD_BYTES * word)));
                part.claimed = bytes32(uint256(Descriptor.u32(piece, WORD_BYTES * (word + 1))));
                place = part.index / PIECE_WORDS;
                leaves = (parts + PIECE_WORDS - 1) / PIECE_WORDS;
            }
            leaf = MerkleBranch.tagged(TAG_LEAF, piece);
        } else {
            part.claimed = cursor.hash();
            leaf = part.claimed;
        }
        p.opening = MerkleBranch.climb(leaf, place, cursor.hashes(MerkleBranch.depth(leaves)));
    }
}
