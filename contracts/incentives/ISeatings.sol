// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title ISeatings
/// @notice What the jackpot has to know about verifiers in their seats; the desk of verdicts answers.
interface ISeatings {
    /// @notice The seating whose verdict stands.
    /// @return number Counts all seats of the task from 1; zero while no verdict is posted.
    /// @return since When its verdict was posted and the round of its watchers was fixed, or when that was replaced:
    /// tickets count as they were then.
    /// @return seed Of that round; zero while the beacon hasn't given it.
    /// @return watchUntil Last second in which the verdict is watched; zero while there is none, or the round isn't
    /// recorded.
    function seating(bytes32 taskId)
        external
        view
        returns (uint32 number, uint64 since, bytes32 seed, uint64 watchUntil);

    /// @notice Whether `account` is submitter, solver or the current verifier of the task, or has posted the verdict
    /// and left its seat since.
    function isParty(bytes32 taskId, address account) external view returns (bool);

    /// @notice When the task was closed with a verdict; zero if it wasn't.
    function closedAt(bytes32 taskId) external view returns (uint64);

    /// @notice Reverts unless entry `index` of the verdict of seating `number` was another than the one that stands
    /// there now that the task is closed: it was planted, or a lie, disclosed or not, in a root, a sum or a second
    /// look.
    /// @param evidence What the desk needs to be shown, in its own form: both claims and what they stand among.
    /// @return entry The hash of what stands there.
    function refuted(bytes32 taskId, uint32 number, uint32 index, bytes calldata evidence)
        external
        view
        returns (bytes32 entry);
}
