// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Opening, Reordered, Rerun} from "./ProfileTypes.sol";
import {Claim, Ending} from "./TaskTypes.sol";

/// @dev The end of a rerun of a second look: a replay of another program. Kinds 1 to 4 are those of the game
/// (`DisputeKinds.sol`).
uint8 constant KIND_LOOK_RERUN = 5;
/// @dev A distance of a rerun of a second look.
uint8 constant KIND_LOOK_DISTANCE = 6;
/// @dev The state before the last step of a segment in exact mode: a replay of all steps but one. Its receipt is kind
/// 7, of the game.
uint8 constant KIND_BEFORE = 8;

/// @notice What is disputed of a verdict.
struct ClaimCharge {
    uint32 index; // of the claim
    Claim claim; // itself: one posted meanwhile by somebody else does not bind the challenger
    bytes32 look; // keccak256(abi.encode(reruns)) of the second look at it; zero if there is none
    bytes32[] entries; // of all claims of the verdict
    uint8 kind; // KIND_REPLAY, _DISTANCE, _REFERENCE, _LOOK_RERUN, _LOOK_DISTANCE, _BEFORE or _RECEIPT
    uint8 component; // 1 parameter, 2 buffer, 3 optimizer; 0 where the kind is no distance
    uint32 rerun; // of the second look
}

/// @notice One challenge of one verdict.
struct Dispute {
    bytes32 taskId;
    address challenger;
    uint32 seating; // whose verdict it is about
    uint32 index; // of the claim
    Ending ending;
    bool ofReplay; // about the state that the claim's segment leads to, which a proof may settle
    uint128 bond;
}

/// @notice Challenges of the current verdict of a task.
struct Contested {
    uint32 seating;
    uint32 challenges; // whatever became of them
    uint32 open; // of them, those whose dispute is not settled
    bool fell; // the verifier has lost one of them, which is not settled
}

/// @title IChallenges
/// @notice Disputes about claims of verdicts (docs/spec/market.md, "Challenges").
///
/// Assumptions and known limits:
/// - Everybody challenges for itself, at the same time and within the one window that starts with the disclosure. Open
///   disputes delay the
///   settlement, all together by the longest duration of one.
/// - The game's report of a result is only noted. The first loss of the verifier decides, whoever settles it and when:
///   from then on
///   all other disputes about the verdict are moot. Until somebody settles it the task waits.
/// - A verifier defends all its disputes at the same time. Half of the bond of each comes back to it, at the end: let
///   it take no seat
///   where that is less than what its moves cost.
interface IChallenges {
    /// @notice Claim `index` is in dispute `number` of the game; `bond` is locked.
    event Challenged(
        bytes32 indexed taskId,
        uint32 indexed seating,
        address indexed challenger,
        uint256 number,
        uint32 index,
        uint8 kind,
        uint8 component,
        uint256 bond
    );
    /// @notice The claim stood, or the verdict is void, its verifier gone and every other dispute about it moot.
    event DisputeSettled(bytes32 indexed taskId, uint32 indexed seating, uint256 indexed number, bool asserterWon);
    /// @notice A proof has ended the dispute; `settleDispute` pays it out.
    event SettledByProof(bytes32 indexed taskId, uint32 indexed seating, uint256 indexed number, bool asserterWon);
    /// @notice The challenger has its bond back, because the verdict fell in another dispute.
    event DisputeMoot(bytes32 indexed taskId, uint32 indexed seating, uint256 indexed number);

    /// @notice The program is not proved to be this one of the terms.
    error NotInPrograms(uint32 rerun);
    /// @notice The kind does not exist or does not go with the component, or the claim is about a zero state and so
    /// rejects anyhow.
    error InvalidChallenge(uint8 kind, uint8 component);
    /// @notice The verdict has no such claim at this index, or other claims.
    error UnknownClaim(uint32 index);
    /// @notice The verdict waits for so many disputes.
    error DisputesOpen(uint32 open);
    /// @notice Another challenge came first: the bond is `bond` now.
    error BondTooHigh(uint128 bond);
    /// @notice No challenge led to a dispute of this number.
    error UnknownDispute(uint256 number);
    /// @notice The game has not ended the dispute, or it is settled.
    error NothingToSettle(uint256 number);
    /// @notice The verdict has fallen in a dispute that waits for `settleDispute`.
    error VerdictFell(bytes32 taskId);

    /// @notice Disputes one claim of the current verdict; `bondOf(taskId)` is locked. Announced in an earlier block
    /// (`Announcements`), with `keccak256(abi.encode(index, kind, component, rerun, keccak256(payload)))` of charge and
    /// opening as evidence.
    function challenge(bytes32 taskId, ClaimCharge calldata charge, Opening calldata opening)
        external
        returns (uint256 number);

    /// @notice The same for one rerun of a second look: `reordered` is the program that it executes, zero for its
    /// distance.
    function challengeLook(
        bytes32 taskId,
        ClaimCharge calldata charge,
        Rerun[] calldata reruns,
        Reordered calldata reordered,
        Opening calldata opening
    ) external returns (uint256 number);

    /// @notice Anybody, once the game has ended a dispute: splits the bond if the claim stood, else pays the
    /// challenger, and another verifier is drawn. If the verdict fell in another dispute, the bond is free at once.
    function settleDispute(uint256 number) external;

    /// @notice Anybody: ends a dispute about a replay whose segment is proved (`IProvenSteps`), at once and whatever
    /// the game says later.
    /// @param charge As in `challenge`.
    /// @param shown Root of the state that the proofs lead to.
    function settleByProof(uint256 number, ClaimCharge calldata charge, bytes32 shown) external;

    /// @notice What is known about a dispute of the game; zeros if no challenge led to it.
    function dispute(uint256 number) external view returns (Dispute memory);

    /// @notice Challenges of the verdict of the current seating.
    function contested(bytes32 taskId) external view returns (Contested memory);

    /// @notice What the next challenger of the current verdict puts up, see `Split.bondOf`.
    function bondOf(bytes32 taskId) external view returns (uint128);
}
