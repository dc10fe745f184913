// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title IDisputeResolver
/// @notice Whoever starts disputes and has to know how they ended.
interface IDisputeResolver {
    /// @notice Called once by the game when dispute `id` has a winner.
    /// @param id The identifier that `IDisputeGame.start` returned.
    /// @param context The context given to `IDisputeGame.start`.
    /// @param asserterWon True if the claim stood, false if the challenger won.
    function onResolved(uint256 id, bytes32 context, bool asserterWon) external;
}
