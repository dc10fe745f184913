// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Charge, Opening, Portion, Profile, ProfileDispute, Reordered, Witness} from "./ProfileTypes.sol";

/// @title IProfiles
/// @notice Where the thresholds of a task come from: its profiler says how far honest executions part, and anybody
/// disputes it before a solver agrees (docs/spec/profile.md). Its stake lies with `Seats`, the bonds of challengers
/// here.
///
/// - A profile is contestable through the window of the terms. It is final once no dispute about it is open and
///   somebody has concluded it.
/// - While it is contestable nobody bids for the task, nobody cancels it, and its profiler stays.
/// - The first challenger that is right makes it void: the profiler loses seat and stake as for a verdict, and the next
///   one posts
///   a profile of its own. Disputes about a void profile are moot: bonds go back in full.
/// - A challenger that is wrong loses its bond to profiler and fund, as for a verdict. Bonds grow in the same way, and
/// the n-th challenge that is open has n clocks: the profiler answers one after the other.
///
/// Assumptions and known limits:
/// - The terms name the reordered programs, and no contract can tell whether they are reordered programs. Every party
///   recomputes
///   `Terms.reruns` before it stakes.
/// - Portions and witnesses are on chain; all other reruns are known by their root. Thresholds that are too high are
///   refuted by what
///   is on chain. Who posts a root of reruns that it shows to nobody can keep thresholds too low: no solver agrees to a
/// profile that
///   it has not repeated, so fee and time are all that is lost, and the submitter cancels.
interface IProfiles {
    /// @notice Profile `profile` of the task, contestable until `deadline`; `digest` is the content address of its
    /// document.
    event ProfilePosted(
        bytes32 indexed taskId,
        uint32 indexed profile,
        address indexed verifier,
        Portion[] portions,
        bytes32 rerunRoot,
        Witness[3] witnesses,
        uint64[3] thresholds,
        bytes32 digest,
        uint64 deadline
    );
    /// @notice A part of profile `profile` is in dispute `dispute` of the game; `bond` is locked.
    event ProfileChallenged(
        bytes32 indexed taskId,
        uint32 indexed profile,
        address indexed challenger,
        uint256 dispute,
        Charge charge,
        uint32 index,
        uint8 component,
        uint256 bond
    );
    /// @notice The rerun of this index is in the posted root and demands a higher threshold, or admits none.
    event ProfileUnderstated(bytes32 indexed taskId, uint32 indexed profile, uint32 index, uint8 component);
    /// @notice The profile stood in this dispute, or is void, and every other dispute about it moot.
    event ProfileDisputeSettled(
        bytes32 indexed taskId, uint32 indexed profile, uint256 indexed dispute, bool asserterWon
    );
    /// @notice The challenger has its bond back, because the profile fell otherwise.
    event ProfileDisputeMoot(bytes32 indexed taskId, uint32 indexed profile, uint256 indexed dispute);
    /// @notice The profile is final: its verifier has its stake back and the fee of the terms, and the auction begins.
    event ProfileConcluded(bytes32 indexed taskId, uint32 indexed profile, address indexed verifier);
    /// @notice There is no profile any more: its verifier left, or it is void.
    event ProfileGone(bytes32 indexed taskId, uint32 indexed profile);

    /// @notice The task has no profile now.
    error NoProfile(bytes32 taskId);
    /// @notice The verifier has posted a profile already.
    error ProfileAlreadyPosted();
    /// @notice The terms ask for another number of portions.
    error WrongPortionCount(uint256 expected);
    /// @notice These are not the portions of the posted profile.
    error WrongPortions();
    /// @notice The rerun is not proved to be the one of this index.
    error NotInReruns(uint32 index);
    /// @notice The program is not proved to be this one of the terms.
    error NotInPrograms(uint32 rerun);
    /// @notice No threshold follows from the witness of this component: such a task can't be profiled.
    error NoThreshold(uint8 component);
    /// @notice The posted threshold covers this rerun.
    error NotUnderstated(uint64 threshold);
    /// @notice There is no such portion or component.
    error InvalidCharge(uint32 index, uint8 component);
    /// @notice The profile can be challenged until `deadline`.
    error Contestable(uint64 deadline);
    /// @notice The profile waits for so many disputes.
    error DisputesOpen(uint32 open);
    /// @notice No challenge led to a dispute of this number.
    error UnknownDispute(uint256 number);
    /// @notice The game has not ended the dispute, or it is settled.
    error NothingToSettle(uint256 number);
    /// @notice The profile has fallen in a dispute that waits for `settleDispute`.
    error ProfileFell(bytes32 taskId);
    /// @notice Another challenge came first: the bond is `bond` now.
    error BondTooHigh(uint128 bond);

    /// @notice The seated verifier of an open task states what it measured, once. The window starts.
    /// @param portions One for each profiled segment.
    /// @param rerunRoot Log root of all reruns.
    /// @param witnesses By component, the rerun from which the threshold follows.
    /// @param digest Content address of the profile document.
    function post(
        bytes32 taskId,
        Portion[] calldata portions,
        bytes32 rerunRoot,
        Witness[3] calldata witnesses,
        bytes32 digest
    ) external;

    /// @notice Disputes the state after the canonical execution of a segment, from the end of the one before. As every
    /// dispute about a profile it is announced in an earlier block (`Announcements`), with
    /// `keccak256(abi.encode(charge, index, component, keccak256(payload)))` as evidence, where `index` is that of the
    /// segment or rerun, and `component` is zero for a state.
    /// @param portions Of the posted profile: one posted meanwhile by somebody else does not bind the challenger.
    /// @param segment Which of them.
    /// @param opening Its header is that of the task's program.
    function challengePortion(bytes32 taskId, Portion[] calldata portions, uint32 segment, Opening calldata opening)
        external;

    /// @notice Disputes the state after a rerun.
    /// @param rerun Of the posted root.
    /// @param reordered The program that it executes, whose header the opening has.
    function challengeRerun(
        bytes32 taskId,
        Portion[] calldata portions,
        Witness calldata rerun,
        Reordered calldata reordered,
        Opening calldata opening
    ) external;

    /// @notice Disputes the distance of a rerun from the canonical execution.
    /// @param component 1 parameter, 2 buffer, 3 optimizer.
    function challengeDistance(
        bytes32 taskId,
        Portion[] calldata portions,
        Witness calldata rerun,
        uint8 component,
        Opening calldata opening
    ) external;

    /// @notice Disputes how far the canonical execution of a segment went.
    function challengeReference(
        bytes32 taskId,
        Portion[] calldata portions,
        uint32 segment,
        uint8 component,
        Opening calldata opening
    ) external;

    /// @notice Shows a rerun of the posted root from which a higher threshold follows than the posted one, or none. The
    /// profile is void at once; no bond is needed. Announced in an earlier block (`Announcements`), with
    /// `keccak256(abi.encode(rerun, component))` as evidence.
    function convict(bytes32 taskId, Portion[] calldata portions, Witness calldata rerun, uint8 component) external;

    /// @notice Anybody, once the game has ended a dispute: splits the bond if the profile stood, else pays the
    /// challenger, and another profiler is drawn. If the profile fell otherwise, the bond is free at once.
    function settleDispute(uint256 number) external;

    /// @notice Anybody: a profile that can't be challenged any more is final. Its profiler is paid, and the auction
    /// begins.
    function conclude(bytes32 taskId) external;

    /// @notice Registry: the task is cancelled; refused once a profile is posted.
    function cancel(bytes32 taskId) external;

    /// @notice The thresholds of a final profile; reverts while there is none.
    function thresholds(bytes32 taskId) external view returns (uint64[3] memory);

    /// @notice Whose profile it is, final or not, which must not bid; zero if there is none.
    function profiler(bytes32 taskId) external view returns (address);

    /// @notice The profile of a task; all but its number is zero if there is none.
    function profile(bytes32 taskId) external view returns (Profile memory);

    /// @notice What is known about a dispute of the game; zeros if no challenge led to it.
    function dispute(uint256 number) external view returns (ProfileDispute memory);

    /// @notice What the next challenger of the profile puts up (`Split.bondOf`).
    function bondOf(bytes32 taskId) external view returns (uint128);
}
