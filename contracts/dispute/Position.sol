// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice What lies open (docs/spec/dispute.md). Zero means nothing.
enum Level {
    NONE,
    STEPS,
    NODES,
    LEAVES,
    LEAF,
    TERMS,
    BODY,
    STATE,
    SUM_SLOTS,
    SUM_LEAVES
}

/// @dev Bytes of a move before its witness: u32 number, bytes32 frame, u32 count, u64 lo, u64 hi, u8 index.
uint256 constant WITNESS_AT = 57;

/// @notice Where a dispute stands. The chain keeps a hash of it only; every move carries what it cannot compute.
struct Position {
    Level level;
    uint256 height; // of the disputed subtree; 0 if there is none
    uint256 count; // size of the list that the subtree belongs to; instructions in BODY; 0 for sums and TERMS
    uint256 lo; // disputed range, or first leaf of the disputed subtree
    uint256 hi; // end of the range, or 0
    bytes32 frame; // hash over everything that is agreed
    bytes32 opening; // commitment to what the side that is not on turn has opened
}

/// @notice The part of an opening that a move picks.
struct Part {
    uint256 index;
    bytes32 agreed; // state root or accumulator before the part
    bytes32 claimed; // hash, root, word or sum that the other side has opened
    uint256 lo; // of a range
    uint256 hi;
}

/// @title Positions
/// @notice Heads: hashes of positions and of the side on turn.
library Positions {
    /// @notice What the chain keeps of a position at which `turn` has to move.
    function head(Position memory p, address turn) internal pure returns (bytes32) {
        return keccak256(
            abi.encodePacked(
                p.frame, p.opening, turn, uint8(p.level), uint8(p.height), uint32(p.count), uint64(p.lo), uint64(p.hi)
            )
        );
    }
}
