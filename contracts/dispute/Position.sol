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
        uint256 clock = (uint256(p.level) << 88) | (p.height << 80);
        return headOf(p.frame, p.opening, turn, clock, (p.count << 224) | (p.lo << 160) | (p.hi << 96));
    }

    /// @notice The same, of level and height as a clock has them, and of `u32 count || u64 lo || u64 hi` in the highest
    /// bits of a word.
    function headOf(bytes32 frame, bytes32 opening, address turn, uint256 clock, uint256 range)
        internal
        pure
        returns (bytes32 result)
    {
        assembly ("memory-safe") {
            let preimage := mload(0x40)
            mstore(preimage, frame)
            mstore(add(preimage, 32), opening)
            // Each word overwrites what is too much of the one before it: address, level and height, range.
            mstore(add(preimage, 64), shl(96, turn))
            mstore(add(preimage, 84), shl(160, clock))
            mstore(add(preimage, 86), range)
            result := keccak256(preimage, 106)
        }
    }
}
