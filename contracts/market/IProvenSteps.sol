// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStepVerifier} from "../zk/IStepVerifier.sol";
import {Terms} from "./TaskTypes.sol";

/// @notice Which proofs a task takes, said by its submitter before the task exists.
struct Pin {
    IStepVerifier verifier; // of the circuit that does the same as the task's program
    bytes32 batches; // log root over the hashes of each step's data: of step i `keccak256(abi.encode(bytes32[]))`
    bytes32 layout; // keccak-256 of the types of the state's tensors
    uint8 scale; // numbers are multiples of 2^-scale
}

/// @notice A proof of one step.
struct StepProof {
    bytes32[] data; // hashes of what the step reads besides the vector
    bytes32[] path; // inclusion path of the step's data in the pinned log
    bytes32 afterStep; // hash of the vector after the step
    bytes proof;
}

/// @notice How far the proofs of a segment have come that begin with one vector.
struct Chain {
    uint32 steps; // proved, from the segment's first on
    bytes32 last; // hash of the vector after them
}

/// @title IProvenSteps
/// @notice Segments of which every step is proved in zero knowledge (docs/spec/zk.md, "On the chain"). What is proved
/// settles a dispute about a replay at once; what is not goes through the game.
///
/// Assumptions and known limits:
/// - The submitter pins a verifier before its task exists, so whoever joins has seen it. A verifier whose setup isn't
///   trusted, or whose
///   circuit doesn't do what the program does, is a reason not to join.
/// - Proofs are bound to the task and the step; who submits them gains nothing, so nobody is robbed by a copy.
/// - Proofs hide vectors; a tie shows one. Whoever wants neither lets the game decide.
interface IProvenSteps {
    /// @notice The task that will have this id takes these proofs.
    event Pinned(bytes32 indexed taskId, address indexed submitter, Pin pin);
    /// @notice Step `step` leads from one vector to the next.
    event StepProven(bytes32 indexed taskId, uint64 indexed step, bytes32 beforeStep, bytes32 afterStep);
    /// @notice The state with this root holds the vector with this hash.
    event Tied(bytes32 indexed taskId, bytes32 indexed root, bytes32 vector);

    /// @notice The task exists: it takes the proofs it takes.
    error TaskExists(bytes32 taskId);
    /// @notice There is no verifier at this address, or a hash of the pin is zero.
    error InvalidPin();
    /// @notice Nothing is pinned for this task.
    error NotPinned(bytes32 taskId);
    /// @notice The task has no such segment, the segment no such step, or one before it isn't proved.
    error NoSuchStep(uint64 step);
    /// @notice The data aren't those of the step.
    error WrongData(uint64 step);
    /// @notice The proof of the step does not hold.
    error InvalidProof(uint64 step);
    /// @notice The layout isn't the pinned one.
    error WrongLayout(bytes32 layout);
    /// @notice The segment isn't proved from this start, its states aren't tied, or the proofs aren't exact.
    error NotProven(bytes32 taskId, uint32 segment);

    /// @notice The submitter of a task that doesn't exist yet says which proofs it will take.
    /// @return taskId The id that the task will have.
    function pin(uint256 nonce, Terms calldata terms, Pin calldata pin_) external returns (bytes32 taskId);

    /// @notice Anybody: the next steps of a segment, from the vector with hash `first` at its start. Those that are
    /// proved already are passed over, so nobody spoils a batch by proving its first step before it.
    /// @param from How many steps of the segment lie before these.
    function prove(bytes32 taskId, uint32 segment, bytes32 first, uint32 from, StepProof[] calldata steps) external;

    /// @notice Anybody: shows the vector of a state. From now on its root and its hash are one thing.
    /// @param types Types of the tensors.
    /// @param words All float32 of the state, little-endian.
    function tie(bytes32 taskId, bytes calldata types, bytes calldata words)
        external
        returns (bytes32 root, bytes32 vector);

    /// @notice Whether `end` is where the segment leads from `start`. Reverts unless that is proved.
    /// @param shown The root of the state that the segment leads to, which is tied.
    function leadsTo(bytes32 taskId, uint32 segment, bytes32 start, bytes32 end, bytes32 shown)
        external
        view
        returns (bool);

    /// @notice What is pinned for a task; zeros if nothing is.
    function pinned(bytes32 taskId) external view returns (Pin memory);

    /// @notice How far the proofs of a segment have come.
    function chain(bytes32 taskId, uint32 segment, bytes32 first) external view returns (Chain memory);

    /// @notice Hash of the vector of a state; zero if it isn't tied.
    function tied(bytes32 taskId, bytes32 root) external view returns (bytes32);

    /// @notice What the proof of a step is bound to.
    function contextOf(bytes32 taskId, uint64 step) external view returns (bytes32);
}
