// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice The checkpoint log of a task's solver, as far as it is on chain.
struct ProofOfTask {
    uint64 size; // entries
    uint64 round; // of the beacon, that draws segments; zero until the log is complete
    uint64 committed; // when the round was fixed
    uint64 began; // of the solver whose log it is
    bytes32 root; // of the log
}

/// @title IProofRegistry
/// @notice Progress and the learning proof of a task's solver, and the draw of segments.
interface IProofRegistry {
    /// @notice The checkpoint log has grown.
    event ProgressPosted(bytes32 indexed taskId, uint64 size, bytes32 logRoot);
    /// @notice The log is complete; `round` of the beacon draws the segments.
    event ProofCommitted(bytes32 indexed taskId, uint64 size, bytes32 logRoot, bytes32 proofDigest, uint64 round);
    /// @notice The beacon hasn't given the round for long; `round` draws the segments.
    event RoundReplaced(bytes32 indexed taskId, uint64 round);

    /// @notice The log does not have the size that this needs.
    error WrongLogSize(uint64 size);
    /// @notice The new root is not proved to extend the old one.
    error InconsistentLog();
    /// @notice The state root is not proved to be this entry of the log.
    error NotInLog(uint64 entry);
    /// @notice The wait has had its other round: it ends by `ISettlement.abandon`.
    error AlreadyReplaced(bytes32 taskId);
    /// @notice No round is fixed, or the beacon has given it.
    error RoundStands(uint64 round);

    /// @notice The solver publishes a longer checkpoint log.
    /// @param size Its entries, more than before, at most segments + 1.
    /// @param consistencyPath RFC 9162 proof that it extends the log published before; empty for the first.
    function post(bytes32 taskId, uint64 size, bytes32 logRoot, bytes32[] calldata consistencyPath) external;

    /// @notice The solver commits its learning proof: the complete log, whose entry 0 is the task's initial state.
    /// @param proofDigest Content address of the learning proof.
    function commit(
        bytes32 taskId,
        uint64 size,
        bytes32 logRoot,
        bytes32[] calldata consistencyPath,
        bytes32 proofDigest,
        bytes32[] calldata inclusionPath
    ) external;

    /// @notice Anybody: a round that the beacon has not given in `PATIENCE` is replaced by one that nobody knows yet,
    /// once.
    function replaceRound(bytes32 taskId) external;

    /// @notice The log of a task.
    function proof(bytes32 taskId) external view returns (ProofOfTask memory);

    /// @notice Whether the beacon has given the round that draws segments.
    function isDrawn(bytes32 taskId) external view returns (bool);

    /// @notice Last second that a proof waits for a round that the beacon hasn't given; zero if it waits for none.
    function patientUntil(bytes32 taskId) external view returns (uint64);

    /// @notice What draws the nodes of a segment's receipt. Reverts while the round has no seed.
    function receiptSeed(bytes32 taskId, uint32 segment) external view returns (bytes32);

    /// @notice The drawn segments, in the order of the draw. Reverts while the round has no seed.
    function drawnSegments(bytes32 taskId) external view returns (uint32[] memory);
}
