// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title IDisputeResolver
/// @notice Whoever starts disputes and has to know how they ended.
interface IDisputeResolver {
    /// @notice Called once by the game when a dispute has a winner. Must not fail for a number that the resolver got
    /// from `start`: the dispute could never end. Whoever moves pays for it: let it note the result, and move what it
    /// is worth elsewhere.
    /// @param number The number that `IDisputeGame.start` returned.
    /// @param asserterWon True if the claim stood, false if the challenger won.
    function onResolved(uint256 number, bool asserterWon) external;
}
