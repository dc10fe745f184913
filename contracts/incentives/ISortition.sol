// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title ISortition
/// @notice The tickets of enrolled verifiers over time, and which of them are drawn (docs/spec/incentives.md, "Weights
/// and draws").
/// @dev Assumption: the seeds that are passed in are those of rounds fixed at `t`, and callers take them from a desk,
/// not from parties.
interface ISortition {
    /// @notice `account` has `tickets` from the next second on, `added` more than before.
    event Enrolled(address indexed account, uint32 added, uint32 tickets);
    /// @notice `account` has `tickets` from now on, `removed` less than before; their bond is leaving.
    event Resigned(address indexed account, uint32 removed, uint32 tickets);

    /// @notice A ticket costs something, and somebody watches.
    error BadDeployment();
    /// @notice More than none, and with those that `account` has fewer than 2^32.
    error BadCount(address account, uint256 count);
    /// @notice `account` has only `available` tickets.
    error TooFewTickets(address account, uint256 available, uint256 wanted);
    /// @notice Weights are known for the times from 1 to now.
    error NoSuchTime(uint64 t);

    /// @notice What a ticket locks.
    function unit() external view returns (uint256);

    /// @notice Tickets that watch a seating, on average.
    function watchers() external view returns (uint32);

    /// @notice Tickets of `account` that count in a draw whose round was fixed at `t`: those that it had at the end of
    /// the second before and still has, the smaller number.
    function tickets(address account, uint64 t) external view returns (uint32);

    /// @notice Tickets of all at the end of the second before `t`.
    function total(uint64 t) external view returns (uint256);

    /// @notice Tickets of `account` as of now. What it has enrolled in this second doesn't count yet.
    function ticketsNow(address account) external view returns (uint32);

    /// @notice Tickets of all as of now.
    function totalNow() external view returns (uint256);

    /// @notice Rank of one ticket for the seat of a task; the smallest gets it. Reverts if the ticket doesn't count at
    /// `t`.
    function seatRank(address account, uint32 ticket, bytes32 taskId, uint32 seating, uint64 t, bytes32 seed)
        external
        view
        returns (uint256);

    /// @notice Whether one ticket is drawn to watch a seating.
    function isWatcher(address account, uint32 ticket, bytes32 taskId, uint32 seating, uint64 t, bytes32 seed)
        external
        view
        returns (bool);

    /// @notice Party: locks the bond of `count` tickets more.
    function enrol(uint32 count) external;

    /// @notice Party: gives `count` tickets up. Their bond leaves the vault's slow way.
    function resign(uint32 count) external;
}
