// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice How far the walk has come down (docs/spec/dispute.md). Zero means nothing.
enum Level {
    NONE,
    STEPS,
    TRACE,
    NODES,
    NODE,
    LEAVES,
    LEAF,
    TERMS,
    BODY,
    ONE_STEP,
    STATE,
    SLOTS,
    SLOT,
    SUM_SLOTS,
    SUM_SLOT,
    SUM_LEAVES,
    SUM_LEAF
}

/// @notice Where a dispute stands. The chain keeps its hash only; every move carries it.
/// @dev All fields are static, so that in memory the struct is its own ABI encoding.
struct Position {
    Level level;
    uint8 height; // of the disputed subtree
    uint32 count; // leaves of the tree that the subtree belongs to; of the trace's from the start on
    uint64 lo; // disputed range, or first leaf of the disputed subtree
    uint64 hi; // end of the range; from LEAVES on the elements of the tensor
    bytes32 agreed; // state root or accumulator before the disputed range
    bytes32 claimed; // what the asserter says: state root, subtree root, word or sum
    bytes32 opening; // keccak256 of what the asserter opened
    bytes32 pre; // state root before the step; X of a sum
    bytes32 trace; // trace root of the step; Y of a sum
    bytes32 descriptor; // keccak256 of the descriptor of the disputed node or slot; before, the program's tree of nodes
    uint64 step;
    uint32 node; // disputed node; component of a sum
    uint64 element; // disputed element of the node's output, or slot
    uint64 term; // disputed term of the fold
    uint64 terms; // length of the fold
    uint32 init; // accumulator before the first term
    uint8 instructions; // length of the node's scalar program
    uint8 instruction; // the disputed one
}

/// @dev Fields of `Position`, one word each.
uint256 constant POSITION_BYTES = 19 * 32;

/// @notice `keccak256(abi.encode(position))`.
function hashPosition(Position memory position) pure returns (bytes32 result) {
    assembly ("memory-safe") {
        result := keccak256(position, POSITION_BYTES)
    }
}

/// @notice Fills `copy` with the position as it came, bit by bit.
/// @dev Its fields mean something only if it hashes to what is stored: that vouches for them, and none has to be decoded.
function copyPosition(Position calldata position, Position memory copy) pure {
    assembly ("memory-safe") {
        calldatacopy(copy, position, POSITION_BYTES)
    }
}
