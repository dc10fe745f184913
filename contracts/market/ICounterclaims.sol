// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ClaimCharge} from "./IChallenges.sol";
import {Opening, Reordered, Rerun} from "./ProfileTypes.sol";
import {Claim, Ending, LogProof} from "./TaskTypes.sol";

/// @notice What an objector says about one segment: a claim that the rule of the task rejects.
struct Counterclaim {
    bytes32 taskId;
    address objector;
    uint64 began; // of the solver whose log it is about
    bytes32 entry; // of claim and second look, as a verdict would have it
    uint64 until; // last second in which it can be contested
    uint32 open; // contests that are not settled
    bool fell; // it has lost one of them
    bool concluded; // its bond is free or lost
    uint128 bond;
    bool answered; // its solver has contested it: no place in the queue is kept any more
}

/// @notice One dispute about a counterclaim.
struct Contest {
    uint64 counterclaim;
    address challenger;
    Ending ending;
    uint128 bond;
}

/// @title ICounterclaims
/// @notice Objections where segments are compared by thresholds (docs/spec/market.md, "Objections"): the objector
/// asserts what a verdict would have said of a segment, and anybody disputes it as the claim of a verdict.
///
/// Assumptions and known limits:
/// - A counterclaim that nobody contests in its window stands, true or not. The solver watches its own log: each
///   counterclaim that is open at the same time gives it another window, and the time of the longest contest.
/// - The first dispute that the objector loses decides; all others about the same counterclaim are moot from then on.
interface ICounterclaims {
    /// @notice Counterclaim `number` can be contested until `until`; `bond` is locked.
    event Counterclaimed(
        bytes32 indexed taskId,
        uint256 indexed number,
        address indexed objector,
        uint64 began,
        Claim claim,
        Rerun[] look,
        uint64 until,
        uint256 bond
    );
    /// @notice Counterclaim `number` is in dispute `dispute` of the game; `bond` is locked.
    event Contested(
        bytes32 indexed taskId,
        uint256 indexed number,
        address indexed challenger,
        uint256 dispute,
        uint8 kind,
        uint8 component,
        uint32 rerun,
        uint256 bond
    );
    /// @notice The counterclaim stood in the dispute, or it has fallen and all other disputes about it are moot.
    event ContestSettled(bytes32 indexed taskId, uint256 indexed number, uint256 indexed dispute, bool asserterWon);
    /// @notice The challenger has its bond back: the counterclaim fell in another dispute, or the proof did.
    event ContestMoot(bytes32 indexed taskId, uint256 indexed number, uint256 indexed dispute);
    /// @notice Nothing waits for the counterclaim any more; if it `stood` the proof is rejected.
    event CounterclaimConcluded(bytes32 indexed taskId, uint256 indexed number, bool stood);

    /// @notice Roots have to be equal in this task: object to the segment itself.
    error NotTolerant(bytes32 taskId);
    /// @notice The rule of the task does not reject this claim, or only because nothing in it is finite.
    error NotRejected(uint32 segment);
    /// @notice The rule asks for a second look of this many reruns at this segment, for none, or each needs an end.
    error WrongLook(uint256 reruns);
    /// @notice There is no such counterclaim, or it is another claim.
    error UnknownCounterclaim(uint256 number);
    /// @notice It has fallen, or has been concluded.
    error Decided(uint256 number);
    /// @notice It waits for so many disputes.
    error ContestsOpen(uint32 open);
    /// @notice No contest led to a dispute of this number.
    error UnknownDispute(uint256 number);
    /// @notice The game has not ended the dispute, or it is settled.
    error NothingToSettle(uint256 number);

    /// @notice Anybody but the solver asserts that the rule rejects a segment of the committed log;
    /// `IObjections.bondOf(taskId)` is locked. Announced in an earlier block (`Announcements`), with
    /// `keccak256(abi.encode(entry))` as evidence, `entry` being that of `docs/spec/market.md` ("Identifiers").
    /// @param look Reruns of the second look at it, if one is due.
    function counterclaim(
        bytes32 taskId,
        Claim calldata claim,
        LogProof calldata logProof,
        Rerun[] calldata look,
        uint128 mostBond
    ) external returns (uint256 number);

    /// @notice Anybody but the objector disputes one part of a counterclaim. The n-th contest that is open has n
    /// clocks; its bond is that of the objector, doubled for each before it (`Split.objectionBond`). The first place is
    /// the solver's, whenever it comes. Announced in an earlier block, with
    /// `keccak256(abi.encode(number, kind, component, rerun, keccak256(payload)))` as evidence.
    /// @param charge As in `IChallenges.challenge`; `index` and `entries` are not looked at.
    /// @param look Reruns of the second look that is charged; empty for any other charge.
    /// @param reordered The program that the charged rerun executes, zero for a distance.
    function contest(
        uint256 number,
        ClaimCharge calldata charge,
        Rerun[] calldata look,
        Reordered calldata reordered,
        Opening calldata opening
    ) external returns (uint256 dispute);

    /// @notice Anybody, once the game has ended a dispute: splits the bond of who lost. If the counterclaim, or the
    /// proof, fell otherwise, the bond is free at once.
    function settleDispute(uint256 dispute) external;

    /// @notice Anybody, once nothing more can happen to it: a counterclaim that stood rejects the proof and pays the
    /// objector; one that fell is over; if the proof fell otherwise, the bond is free at once.
    function conclude(uint256 number) external;

    /// @notice A counterclaim; zeros if there is none.
    function counterclaimed(uint256 number) external view returns (Counterclaim memory);

    /// @notice What is known about a dispute of the game; zeros if no contest led to it.
    function contests(uint256 dispute) external view returns (Contest memory);

    /// @notice The last counterclaim.
    function last() external view returns (uint256 number);
}
