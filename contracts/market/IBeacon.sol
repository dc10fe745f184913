// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @dev A beacon that is silent for so many seconds has stopped. Until then whoever has seen a round can record it.
uint64 constant PATIENCE = 7 days;

/// @title IBeacon
/// @notice A public source of randomness in numbered rounds. The market knows nothing else about it: a drand or
/// prevrandao beacon stands behind the same four functions.
interface IBeacon {
    /// @notice A round was recorded for ever.
    /// @param round The round.
    /// @param seed Its seed; never zero.
    event Recorded(uint64 indexed round, bytes32 seed);

    /// @notice The round has no seed yet.
    error RoundNotRecorded(uint64 round);
    /// @notice The round lies in the future.
    error RoundNotReached(uint64 round);

    /// @notice The first round whose seed nobody can know when this is called.
    function nextRound() external view returns (uint64);

    /// @notice Whether the seed of `round` is recorded.
    function recorded(uint64 round) external view returns (bool);

    /// @notice The seed of `round`. Reverts if it is not recorded.
    function seed(uint64 round) external view returns (bytes32);

    /// @notice Records the seed of `round`, for anybody. A round that is already recorded keeps its seed, and that is a
    /// success.
    function record(uint64 round) external;
}
