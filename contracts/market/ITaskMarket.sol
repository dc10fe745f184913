// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Claim, Dispute, LogProof, Outcome, Task, Terms} from "./TaskTypes.sol";

/// @title ITaskMarket
/// @notice Holds escrows, stakes and the bonds of verdicts: one task from its fee to its settlement, one function per verb. The profile
/// of a task, from which its thresholds follow, and the disputes about it are in `IProfiles`.
///
/// Open -> Training -> Committed -> Drawn -> Verdict -> Closed, with Verdict -> Drawn when a challenger was right (verdict void).
///
/// Who gets what when a task ends or somebody loses a stake (shares: `Settlement`; T is the treasury):
/// | outcome | solver | verifier | challenger | submitter |
/// | accepted | price + stake | fee + stake | - | rest of the escrow |
/// | rejected | - | fee + stake | - | rest of the escrow + share of the solver's stake, rest T |
/// | challenger right | - | loses its stake and its seat | bond + share of that stake, rest T | - |
/// | challenger wrong | - | share of the bond, rest T | loses its bond | - |
/// | another challenger was right | - | - | bond | - |
/// | profile void | - | loses its stake and its seat | share of that stake, rest T | - |
/// | solver defaults | - | stake | - | whole escrow + share of the solver's stake, rest T |
/// | verifier defaults | - | loses its stake and its seat | - | share of that stake, rest T |
/// | cancelled | - | stake | - | whole escrow |
///
/// Assumptions and known limits:
/// - Nobody administers this contract. The deployer names game and profiles once and the beacon and treasury for ever; a task can't
///   begin before.
/// - Times are block timestamps in whole seconds; what a deadline allows is allowed in its last second too.
/// - A program, constants or document that nobody can fetch makes a task that nobody should join. The contract knows hashes only.
/// - `TermsRules` bounds windows, clock and bond so that no terms are a trap for everybody. Whether they leave a party the time that its
///   own machines need is for that party to judge before it stakes.
/// - First come, first served: one verifier seat and one solver seat. Whoever has many addresses can take both and lie; only a
///   whistleblower stops it. Sortition among staked verifiers and auctions replace these seats later.
/// - A seat in Drawn may stay empty for ever if the fee attracts nobody; the escrow waits.
/// - There is no availability challenge yet. A solver that withholds a checkpoint, or publishes a file that is not what its log
///   commits to, can't be replayed; nobody leaves the seat after Open, so its verifier loses its stake by default. Stake only where that
///   is bearable. The availability challenge, forced errors and the jackpot (fed by the treasury's share) come later behind the same
///   seams.
/// - A segment that begins or ends in a zero state is rejected whatever its claim says, so that claim can't be challenged.
/// - Everybody challenges for itself, at the same time and within the one window that starts with the verdict. Who waits for a challenge
///   of somebody else may wait for a liar's friend. Open disputes delay settlement, all together by the longest duration of one.
/// - The first challenger that wins takes the whole reward, the others get their bonds back. A verifier that lied and is caught can still
///   lose to a friend first: it saves half of its stake, and who caught it goes away with the bond alone.
/// - A verifier defends all its disputes at the same time. Half of the bond of each comes back to it, at the end: let it take no seat
///   where that is less than what its moves cost.
/// - A verdict that falls, or is not posted, costs its verifier a stake and everybody else time; the next verifier starts afresh.
interface ITaskMarket {
    // Events: together they rebuild every field of every task.

    /// @notice The game and the contract of the profiles are named, once and for ever.
    event GameSet(address game, address profiles);
    /// @notice A task is open. `fee` wei are in escrow.
    event TaskSubmitted(bytes32 indexed taskId, address indexed submitter, uint256 nonce, Terms terms, uint256 fee);
    /// @notice `verifier` took the seat. `deadline` is zero unless segments are drawn already.
    event VerifierJoined(bytes32 indexed taskId, address indexed verifier, uint64 deadline);
    /// @notice `verifier` left before a solver accepted; its profile left with it.
    event VerifierLeft(bytes32 indexed taskId, address indexed verifier);
    /// @notice `challenger` was right about the profile: `verifier` lost its seat and its stake, and the task is profiled anew.
    event ProfileVoided(bytes32 indexed taskId, address indexed verifier, address indexed challenger);
    /// @notice `solver` trains for `price` until `deadline` and agrees to these thresholds: zeros in exact mode.
    event TaskAccepted(
        bytes32 indexed taskId, address indexed solver, uint128 price, uint64[3] thresholds, uint64 deadline
    );
    /// @notice The checkpoint log has grown.
    event ProgressPosted(bytes32 indexed taskId, uint64 size, bytes32 logRoot);
    /// @notice The log is complete; `round` of the beacon draws the segments.
    event ProofCommitted(bytes32 indexed taskId, uint64 size, bytes32 logRoot, bytes32 proofDigest, uint64 round);
    /// @notice These segments are verified until `deadline`.
    event SegmentsDrawn(bytes32 indexed taskId, bytes32 seed, uint32[] segments, uint64 deadline);
    /// @notice Claim `index` of verdict `verdict`.
    event ClaimPosted(bytes32 indexed taskId, uint32 indexed verdict, uint32 index, Claim claim);
    /// @notice All claims of verdict `verdict` are posted; they can be challenged until `deadline`.
    event VerdictPosted(
        bytes32 indexed taskId, uint32 indexed verdict, address indexed verifier, bool accepted, uint64 deadline
    );
    /// @notice Claim `claimIndex` of verdict `verdict` is in dispute `dispute` of the game; `bond` wei are in escrow.
    event Challenged(
        bytes32 indexed taskId,
        uint32 indexed verdict,
        address indexed challenger,
        uint256 dispute,
        uint32 claimIndex,
        uint8 kind,
        uint8 component,
        uint256 bond
    );
    /// @notice The claim stood, or the verdict is void, its verifier gone and every other dispute about it moot.
    event DisputeResolved(bytes32 indexed taskId, uint32 indexed verdict, uint256 indexed dispute, bool asserterWon);
    /// @notice The challenger has its bond back, because the verdict fell in another dispute.
    event DisputeMoot(bytes32 indexed taskId, uint32 indexed verdict, uint256 indexed dispute);
    /// @notice `verifier` missed its deadline and lost its seat and stake.
    event VerifierDefaulted(bytes32 indexed taskId, address indexed verifier);
    /// @notice The task is over and everything it held is credited.
    event TaskClosed(bytes32 indexed taskId, Outcome outcome);

    // Errors

    /// @notice Only the deployer names game and profiles, and only once.
    error GameAlreadySet();
    /// @notice There is no game or no profiles yet, or no contract at the address.
    error GameNotSet();
    /// @notice The caller does not have the role that this needs.
    error NotAllowed(address caller);
    /// @notice The terms break a rule; `field` names the first that does.
    error InvalidTerms(string field);
    /// @notice The payment is not what this needs, or the fee leaves no price.
    error WrongPayment(uint256 paid, uint256 expected);
    /// @notice The task is somewhere else in its life. Read it again: perhaps somebody made your move.
    error WrongStatus(bytes32 taskId, uint8 status);
    /// @notice The time for this is over.
    error DeadlinePassed(uint64 deadline);
    /// @notice It is too early: others may still act until `deadline`.
    error DeadlineNotPassed(uint64 deadline);
    /// @notice Nobody has the verifier's seat.
    error NoVerifier();
    /// @notice Somebody has the verifier's seat.
    error SeatTaken(address verifier);
    /// @notice The thresholds are not those that the solver agrees to.
    error ProfileMismatch();
    /// @notice `price + verifierFee` exceeds the escrow.
    error PriceTooHigh(uint256 maximum);
    /// @notice The log does not have the size that this needs.
    error WrongLogSize(uint64 size);
    /// @notice The new root is not proved to extend the old one.
    error InconsistentLog();
    /// @notice The state root is not proved to be this entry of the log.
    error NotInLog(uint64 entry);
    /// @notice A verdict has one claim and one log proof for each drawn segment.
    error WrongClaimCount(uint256 expected);
    /// @notice Claim `index` is not about the segment drawn there.
    error WrongSegment(uint256 index, uint32 expected);
    /// @notice The current verdict has no such claim at this index.
    error UnknownClaim(uint32 index);
    /// @notice The kind does not exist or does not go with the component, or the claim is about a zero state and so rejects anyhow.
    error InvalidChallenge(uint8 kind, uint8 component);
    /// @notice The verdict waits for so many disputes.
    error DisputesOpen(uint32 open);
    /// @notice No challenge led to a dispute of this number.
    error UnknownDispute(uint256 number);
    /// @notice The verdict of this dispute stands, or its bond is paid out.
    error NotMoot(uint256 number);
    /// @notice A hash is zero, which means nothing.
    error ZeroHash();

    // Verbs, in the order of a task's life

    /// @notice Opens a task. The value sent is the escrow: maximum price and verifier's fee.
    /// @return taskId `keccak256(abi.encode(chainid, market, submitter, nonce, terms))`, the nonce counting the submitter's tasks from 0.
    function submitTask(Terms calldata terms_) external payable returns (bytes32 taskId);

    /// @notice The submitter withdraws an open task: escrow and verifier's stake go back. Not while a profile can be challenged or a
    /// dispute about it is open: a cancelled task would be the exit of a verifier that lied.
    function cancelTask(bytes32 taskId) external;

    /// @notice Takes the empty verifier's seat with exactly `verifierStake`, in Open or in Drawn (then its clock starts now).
    function joinAsVerifier(bytes32 taskId) external payable;

    /// @notice The verifier of an open task takes its stake and leaves, and its profile with it: not while that can be challenged or
    /// a dispute about it is open, or who lies would leave in front of every challenge.
    function leaveAsVerifier(bytes32 taskId) external;

    /// @notice The contract of the profiles says that a dispute about the profile of an open task is lost, or that the profile refutes
    /// itself: the verifier's stake is split, its seat is empty.
    /// @param challenger Who was right.
    function voidProfile(bytes32 taskId, address challenger) external;

    /// @notice Becomes the solver with exactly `solverStake`. The training window starts.
    /// @param price What the solver wants; `price + verifierFee` must fit the escrow.
    /// @param thresholds Those of the profile that the solver has checked, final now: one posted meanwhile by somebody else does not
    /// bind it. Zeros in exact mode.
    function acceptTask(bytes32 taskId, uint128 price, uint64[3] calldata thresholds) external payable;

    /// @notice The solver publishes a longer checkpoint log.
    /// @param size Its entries, more than before, at most segments + 1.
    /// @param consistencyPath RFC 9162 proof that it extends the log published before; empty for the first.
    function postProgress(bytes32 taskId, uint64 size, bytes32 logRoot, bytes32[] calldata consistencyPath) external;

    /// @notice The solver commits its learning proof: the complete log, whose entry 0 is the task's initial state.
    /// @param proofDigest Content address of the learning proof.
    function commitProof(
        bytes32 taskId,
        uint64 size,
        bytes32 logRoot,
        bytes32[] calldata consistencyPath,
        bytes32 proofDigest,
        bytes32[] calldata inclusionPath
    ) external;

    /// @notice Anybody takes the seed of the task's round, recording the round if nobody did. The verification window starts.
    function draw(bytes32 taskId) external;

    /// @notice The verifier answers for every drawn segment, in the order of the draw. The chain compares; the challenge window starts.
    function postVerdict(bytes32 taskId, Claim[] calldata claims, LogProof[] calldata proofs) external;

    /// @notice Disputes one claim of the current verdict, with at least `bondOf(taskId)`. Disputes of others don't matter, except that
    /// each raises the bond up to a bound; what is paid too much is credited, so that nobody can come in between.
    /// @param claimIndex Position of the claim in the verdict.
    /// @param claim The claim itself: one posted meanwhile by somebody else does not bind the challenger.
    /// @param kind 1 replay, 2 distance, 3 reference.
    /// @param component 1 parameter, 2 buffer, 3 optimizer; 0 for a replay.
    /// @param header Program header that the game starts from.
    /// @param payload What the challenger opens, by which its version of the claim differs.
    function challenge(
        bytes32 taskId,
        uint32 claimIndex,
        Claim calldata claim,
        uint8 kind,
        uint8 component,
        bytes calldata header,
        bytes calldata payload
    ) external payable;

    /// @notice Anybody credits a challenger its bond of a dispute about a void verdict, without waiting for the game to end it.
    function releaseBond(uint256 number) external;

    /// @notice Anybody closes a task whose verdict stood through its challenge window and all disputes.
    function settle(bytes32 taskId) external;

    /// @notice Anybody closes a task whose solver missed its deadline.
    function claimSolverDefault(bytes32 taskId) external;

    /// @notice Anybody removes a verifier that missed its deadline; the seat is free for the next.
    function claimVerifierDefault(bytes32 taskId) external;

    // Views

    /// @notice The id that a task of this submitter would get with this nonce.
    function computeTaskId(address submitter, uint256 nonce, Terms calldata terms_) external view returns (bytes32);

    /// @notice The state of a task.
    function task(bytes32 taskId) external view returns (Task memory);

    /// @notice The terms of a task.
    function terms(bytes32 taskId) external view returns (Terms memory);

    /// @notice What the next challenger of the current verdict puts up: the bond of the terms, doubled for every challenge that the verdict
    /// has seen, at most what a challenger wins.
    function bondOf(bytes32 taskId) external view returns (uint256);

    /// @notice What is known about a dispute of the game; zeros if no challenge led to it.
    function dispute(uint256 number) external view returns (Dispute memory);

    /// @notice The drawn segments of a task in the order of the draw. Reverts before the draw.
    function drawnSegments(bytes32 taskId) external view returns (uint32[] memory);

    /// @notice `keccak256(abi.encode(claim))` of a claim that was posted; zero if there is none.
    function claimHash(bytes32 taskId, uint32 verdict, uint32 index) external view returns (bytes32);
}
