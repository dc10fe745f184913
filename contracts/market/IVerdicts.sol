// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISeatings} from "../incentives/ISeatings.sol";
import {Rerun} from "./ProfileTypes.sol";
import {Claim, LogProof} from "./TaskTypes.sol";

/// @notice The verdict of a seating.
struct Verdict {
    uint32 seating; // zero: none is posted
    address verifier; // whose stake answers for it
    uint32 rejecting; // claims that do not accept
    uint8 differing; // of those, the ones whose replay does not end where the solver did
    uint8 looks; // second looks that it has, each paid by the solver
    bool disclosed;
    bool leaked; // its secret was shown: the verifier is gone, watchers go on until their time is over
    uint64 watchRound; // of the beacon, that draws watchers
    uint64 watchFixedAt; // when it was fixed
    uint64 watchUntil; // last second of the watch; zero while the round has no seed
    bytes32 claims; // H of the entries, one after the other: H(abi.encode(H(abi.encode(claim)), look)), H is keccak256
    bytes32 sealedClaim; // what the verifier may put in the place of a planted error
}

/// @notice A claim among the entries of its verdict.
struct Placed {
    Claim claim;
    bytes32 look; // hash of the second look at it, zero if there is none
    bytes32[] entries;
}

/// @notice How a verifier shows whether it had to err. Salt, claim and the rest are empty if it hadn't.
struct Disclosure {
    bytes32 secret;
    bytes32 salt;
    Claim claim; // the true one
    bytes32 look; // of the posted one, and of this
    bytes32[] entries; // of all claims of the verdict
}

/// @notice The second look at the claim of a segment that the thresholds reject.
struct Look {
    uint32 segment;
    Rerun[] reruns; // all of them, by number
}

/// @title IVerdicts
/// @notice Verdicts: posted, watched, disclosed, challenged (docs/spec/verdict.md, docs/spec/incentives.md "Forced
/// errors").
///
/// Assumptions and known limits:
/// - A segment that begins or ends in a zero state is rejected whatever its claim says, so that claim can't be
///   challenged.
interface IVerdicts is ISeatings {
    /// @notice Claim `index` of the verdict of a seating, as posted or, once disclosed, in the place of a planted
    /// error.
    event ClaimPosted(bytes32 indexed taskId, uint32 indexed seating, uint32 index, Claim claim);
    /// @notice The second look at claim `index`.
    event LookPosted(bytes32 indexed taskId, uint32 indexed seating, uint32 index, Rerun[] reruns);
    /// @notice All claims are posted; `rejecting` of them do not accept, and in `differing` of those the roots differ.
    event VerdictPosted(
        bytes32 indexed taskId,
        uint32 indexed seating,
        address indexed verifier,
        uint32 rejecting,
        uint32 differing,
        bytes32 sealedClaim
    );
    /// @notice `round` of the beacon draws watchers among those who were enrolled at `fixedAt`.
    event WatchFixed(bytes32 indexed taskId, uint32 indexed seating, uint64 round, uint64 fixedAt);
    /// @notice The watchers are drawn; they look until `until`.
    event WatchOpened(bytes32 indexed taskId, uint32 indexed seating, bytes32 seed, uint64 until);
    /// @notice The verifier had to err, or not; these claims can be challenged until `deadline`.
    event Disclosed(
        bytes32 indexed taskId,
        uint32 indexed seating,
        bytes32 secret,
        bool forced,
        uint32 index,
        uint32 rejecting,
        uint32 differing,
        uint64 deadline
    );
    /// @notice The verifier has not disclosed, or its secret was shown by `reporter`: it lost its stake and its seat.
    event DutyBroken(bytes32 indexed taskId, uint32 indexed seating, address indexed verifier, address reporter);
    /// @notice A verdict has one claim and one log proof for each drawn segment.
    error WrongClaimCount(uint256 expected);
    /// @notice Claim `index` is not about the segment drawn there.
    error WrongSegment(uint256 index, uint32 expected);
    /// @notice The state root is not proved to be this entry of the log.
    error NotInLog(uint64 entry);
    /// @notice The verdict has no such claim at this index, or other claims.
    error UnknownClaim(uint32 index);
    /// @notice In exact mode a claim has the state before its last step and a receipt of it, else neither.
    error WrongReceipt(uint256 index);
    /// @notice A claim that the thresholds reject has a second look of as many reruns as the terms say, unless it has
    /// no distance; others have none.
    error WrongLook(uint256 index);
    /// @notice The beacon has not given the round that says whether the verifier has to err.
    error DutyUnknown(uint64 round);
    /// @notice The wait has had its other round: it ends by `ISettlement.abandon`.
    error AlreadyReplaced(bytes32 taskId);
    /// @notice The beacon has given the round.
    error RoundStands(uint64 round);
    /// @notice The secret isn't the one of this seating.
    error WrongSecret();
    /// @notice The planted error isn't there, or what is shown isn't what was sealed: the duty can't be done any more.
    error WrongDisclosure(uint32 index);
    /// @notice The claim said what stands there, or isn't shown, or the task isn't closed.
    error NotRefuted(bytes32 taskId, uint32 seating, uint32 index);

    /// @notice The verifier answers for every drawn segment, in the order of the draw. The chain compares.
    /// @param looks Second looks, in the order of the claims that need one.
    /// @param sealedClaim Of the true claim in the place of a planted error; anything but zero if there is none.
    function post(
        bytes32 taskId,
        Claim[] calldata claims,
        LogProof[] calldata logProofs,
        Look[] calldata looks,
        bytes32 sealedClaim
    ) external;

    /// @notice Anybody: takes the seed that draws the watchers, recording the round if nobody did. The watch begins.
    function openWatch(bytes32 taskId) external;

    /// @notice Anybody: a round that the beacon has not given in `PATIENCE` is replaced by one that nobody knows yet.
    function replaceRound(bytes32 taskId) external;

    /// @notice The verifier shows whether it had to err, and what is true then. The challenge window begins.
    function disclose(bytes32 taskId, Disclosure calldata d) external;

    /// @notice Anybody: a verifier that has not disclosed in time loses its stake and its seat.
    function claimUndisclosed(bytes32 taskId) external;

    /// @notice Anybody who knows the secret of a verifier before it may be disclosed: that verifier loses its stake and
    /// its seat. Announced in an earlier block (`Announcements`), with `keccak256(abi.encode(secret))` as evidence.
    function reportLeak(bytes32 taskId, bytes32 secret) external;

    /// @notice Challenges: a dispute about the verdict is lost, its verifier gone. Another one is drawn.
    function void(bytes32 taskId) external;

    /// @notice Settlement: the proof that seatings up to now were about is gone. Nothing in them can be refuted any
    /// more.
    function forget(bytes32 taskId) external;

    /// @notice Whether the verdict accepts, and if not, whether it only rejects what the solver has done bit for bit;
    /// and how many second looks it has.
    function conclude(bytes32 taskId) external view returns (bool accepted, bool repeated, uint256 looks);

    /// @notice Whether these are the entries of the current verdict, and `claim` with `look` the one at `index`.
    function holds(bytes32 taskId, uint32 index, Claim calldata claim, bytes32 look, bytes32[] calldata entries)
        external
        view
        returns (bool);

    /// @notice Last second that a verdict waits for a round that the beacon hasn't given; zero if it waits for none.
    function patientUntil(bytes32 taskId) external view returns (uint64);

    /// @notice The verdict of the current seating of a task.
    function verdict(bytes32 taskId) external view returns (Verdict memory);
}
