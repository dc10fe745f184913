// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Opening} from "./ProfileTypes.sol";
import {Ending, LogProof} from "./TaskTypes.sol";

/// @notice What a solver says by two neighboring entries of its log: the program leads from `start` to `end`.
struct Segment {
    uint32 index;
    bytes32 start; // entry `index` of the log
    bytes32 end; // entry `index + 1`
    LogProof logProof;
}

/// @notice One objection to a segment, which the solver answers for in a dispute of the game.
struct Objection {
    bytes32 taskId;
    address objector;
    uint64 began; // of the solver whose log it is about
    uint32 segment;
    Ending ending;
    uint128 bond;
}

/// @notice Objections to the log of the current solver of a task.
struct ObjectionCount {
    uint64 began; // of that solver
    uint32 objections; // whatever became of them
    uint32 open; // of them, those that are not settled
    bool fell; // a segment is false: the proof is rejected, whatever its verdict says
}

/// @title IObjections
/// @notice Disputes about any segment of a solver's log, drawn or not, where bits have to be equal
/// (docs/spec/market.md, "Objections"). The solver is the asserter: it has committed to both ends of each segment.
///
/// Assumptions and known limits:
/// - Everybody objects for itself, at the same time. The first dispute that the solver loses decides; all others are
///   moot from then on.
/// - An objection to a true segment costs its objector at least twice what the solver spends on it, and half of that
///   is the solver's. A solver that many object to at once gets the clock of the terms for each of them.
interface IObjections {
    /// @notice Segment `segment` is in dispute `number` of the game; `bond` is locked.
    event Objected(
        bytes32 indexed taskId,
        uint64 indexed began,
        address indexed objector,
        uint256 number,
        uint32 segment,
        uint256 bond
    );
    /// @notice The segment stood, or the proof is rejected and every other objection to it moot.
    event ObjectionSettled(bytes32 indexed taskId, uint64 indexed began, uint256 indexed number, bool asserterWon);
    /// @notice The objector has its bond back, because the proof fell by another objection.
    event ObjectionMoot(bytes32 indexed taskId, uint64 indexed began, uint256 indexed number);
    /// @notice Proofs in zero knowledge have ended the dispute; `settleDispute` pays it out.
    event ObjectionProven(bytes32 indexed taskId, uint64 indexed began, uint256 indexed number, bool asserterWon);
    /// @notice Entry `entry` of the log is zero, and so no state: the proof is rejected.
    event ZeroShown(bytes32 indexed taskId, uint64 indexed began, address indexed objector, uint64 entry);

    /// @notice Segments are compared by thresholds in this task: what a verdict does not draw is not disputed.
    error NotExact(bytes32 taskId);
    /// @notice The log has no such segment.
    error NoSuchSegment(uint32 segment);
    /// @notice The segment is drawn: until whoever verifies it has disclosed, it is the verdict's.
    error LeftToVerdict(uint32 segment);
    /// @notice Another objection came first: the bond is `bond` now.
    error BondTooHigh(uint128 bond);
    /// @notice An end of the segment is zero: `objectToZero` needs no dispute.
    error ZeroState(uint64 entry);
    /// @notice The entry is a root.
    error NotZero(uint64 entry);
    /// @notice No objection led to a dispute of this number.
    error UnknownDispute(uint256 number);
    /// @notice The objection is about another segment.
    error OtherSegment(uint32 segment);
    /// @notice The game has not ended the dispute, or it is settled.
    error NothingToSettle(uint256 number);
    /// @notice A segment of this proof is known to be false, or two have said that its solver doesn't serve.
    error ProofFell(bytes32 taskId);

    /// @notice Anybody but the solver disputes one segment of the committed log; `bondOf(taskId)` is locked. Announced
    /// in an earlier block (`Announcements`), with `keccak256(abi.encode(uint32 segment, keccak256(payload)))` as
    /// evidence. The solver loses the dispute by its clock if it does not answer.
    function object(bytes32 taskId, Segment calldata segment, Opening calldata opening)
        external
        returns (uint256 number);

    /// @notice Anybody but the solver shows that an entry of the log is zero: the proof is rejected at once, without a
    /// dispute. Announced in an earlier block, with `keccak256(abi.encode(uint64 entry))` as evidence.
    /// @param path Inclusion proof of the entry.
    function objectToZero(bytes32 taskId, uint64 entry, bytes32[] calldata path) external;

    /// @notice Counterclaims: another objection, to a segment of a task that compares by thresholds.
    /// @return bond What the objector has to lock.
    /// @return began Of the solver whose log it is about.
    /// @return until Last second of the window for contests: that of challenges in the terms, and as much again and the
    /// longest contest for each other objection that is open.
    function admit(bytes32 taskId, address objector, Segment calldata segment, uint128 mostBond)
        external
        returns (uint128 bond, uint64 began, uint64 until);

    /// @notice Counterclaims: that objection is over; it has rejected the proof if `objector` is somebody.
    function conclude(bytes32 taskId, address objector, uint256 bond) external;

    /// @notice Anybody, once the game has ended a dispute: splits the bond if the segment stood, else pays the objector
    /// out of the solver's stake. If the proof fell by another objection, the bond is free at once.
    function settleDispute(uint256 number) external;

    /// @notice Anybody: ends a dispute whose segment is proved (`IProvenSteps`), at once and whatever the game says
    /// later.
    /// @param segment As in `object`.
    /// @param shown Root of the state that the proofs lead to.
    function settleByProof(uint256 number, Segment calldata segment, bytes32 shown) external;

    /// @notice What is known about a dispute of the game; zeros if no objection led to it.
    function objection(uint256 number) external view returns (Objection memory);

    /// @notice Objections to the log of the current solver.
    function objected(bytes32 taskId) external view returns (ObjectionCount memory);

    /// @notice What the next objector puts up: twice what a segment, and each rerun of a second look, costs the solver
    /// to defend, at the base fee of the block, doubled for each objection before, up to the least that an objector
    /// wins (`Split.objectionBond`).
    function bondOf(bytes32 taskId) external view returns (uint128);
}
