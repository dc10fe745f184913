// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice What a dispute is about. Fields that a kind does not use are zero.
/// @dev REPLAY uses program, constants, firstStep, steps, start, end; PUBLISHED also x. RECEIPT uses program,
/// constants, firstStep, steps (one), start, x, y. DISTANCE and REFERENCE use program, component, x, y, sum.
struct StartParams {
    address asserter; // posted the claim
    address challenger; // disagrees with it, and opens first
    bytes32 program; // hash of the step program
    bytes32 constants; // root of the constants
    uint8 kind; // see DisputeKinds.sol
    uint8 component; // 1 parameter, 2 buffer, 3 optimizer; 0 for a replay
    uint64 firstStep; // index of the first step of the segment
    uint64 steps; // steps in the segment
    bytes32 start; // state root before firstStep (agreed)
    bytes32 end; // state root claimed after the last step
    bytes32 x; // state root, first operand of the distance; PUBLISHED: root of the traces; RECEIPT: the receipt
    bytes32 y; // state root, second operand of the distance; RECEIPT: the seed that draws nodes
    uint256 sum; // distance claimed between x and y
    uint32 clock; // budget of each side in seconds, below 2^24
}

/// @title IDisputeGame
/// @notice Two players, one claim: the walk ends in one scalar instruction that the chain executes.
interface IDisputeGame {
    /// @notice Opens a dispute. The caller is the resolver: `IDisputeResolver.onResolved` is called on it exactly once,
    /// and never inside `start`.
    /// @param params What is disputed, by whom, against whom.
    /// @param header The 112-byte program header, which must hash to `params.program`.
    /// @param payload What the challenger opens: state roots along the segment, or sums of the slots; where traces were
    /// published what it shows of them, and its own version of that.
    /// @return number Of the dispute; never zero.
    function start(StartParams calldata params, bytes calldata header, bytes calldata payload)
        external
        returns (uint256 number);

    /// @notice No dispute lasts longer than so many seconds.
    /// @param clock Budget of each side in seconds.
    function longest(uint32 clock) external view returns (uint256);
}
