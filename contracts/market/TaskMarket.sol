// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "../commitments/CheckpointLog.sol";
import {IDisputeGame, KIND_DISTANCE, KIND_REFERENCE, KIND_REPLAY, StartParams} from "../interfaces/IDisputeGame.sol";
import {IDisputeResolver} from "../interfaces/IDisputeResolver.sol";
import {Acceptance} from "./Acceptance.sol";
import {IBeacon} from "./IBeacon.sol";
import {IProfiles} from "./IProfiles.sol";
import {ITaskMarket} from "./ITaskMarket.sol";
import {Ledger} from "./Ledger.sol";
import {SegmentDraw} from "./SegmentDraw.sol";
import {Settlement} from "./Settlement.sol";
import {Claim, Dispute, LogProof, Outcome, Status, Task, Terms} from "./TaskTypes.sol";
import {TermsRules} from "./TermsRules.sol";

/// @title TaskMarket
/// @notice See `ITaskMarket` for the protocol and its assumptions.
/// @dev Every function checks, then writes, then calls. The only foreign code that runs is the beacon, the game and the profiles,
/// all fixed for ever, and the receiver in `withdraw`. Wei held = wei credited + wei locked in tasks, after every call.
contract TaskMarket is ITaskMarket, IDisputeResolver, Ledger {
    /// @notice Draws the segments.
    IBeacon public immutable beacon;
    /// @notice Is credited what no party gets; jackpot and forced errors will be paid from there.
    address public immutable treasury;
    /// @notice Arbitrates challenges.
    IDisputeGame public game;
    /// @notice Knows the thresholds of open tasks.
    IProfiles public profiles;
    /// @notice How many tasks a submitter has opened.
    mapping(address submitter => uint256) public nonces;

    address private immutable _deployer;
    mapping(bytes32 taskId => Task) private _tasks;
    mapping(bytes32 taskId => Terms) private _terms;
    mapping(uint256 number => Dispute) private _disputes;
    mapping(bytes32 taskId => mapping(uint32 verdict => mapping(uint256 index => bytes32))) private _claimHashes;

    /// @param beacon_ Source of randomness.
    /// @param treasury_ Gets what slashing and lost bonds leave; must be able to call `withdraw`.
    constructor(IBeacon beacon_, address treasury_) {
        if (treasury_ == address(0)) revert NotAllowed(treasury_);
        beacon = beacon_;
        treasury = treasury_;
        _deployer = msg.sender;
    }

    /// @notice Names the game and the profiles, by the deployer and once. No task begins before.
    function setGame(address game_, address profiles_) external {
        if (msg.sender != _deployer) revert NotAllowed(msg.sender);
        if (address(game) != address(0)) revert GameAlreadySet();
        if (game_.code.length == 0 || profiles_.code.length == 0) revert GameNotSet();
        game = IDisputeGame(game_);
        profiles = IProfiles(profiles_);
        emit GameSet(game_, profiles_);
    }

    /// @inheritdoc ITaskMarket
    function submitTask(Terms calldata terms_) external payable returns (bytes32 taskId) {
        if (address(game) == address(0)) revert GameNotSet();
        TermsRules.check(terms_);
        if (msg.value <= terms_.verifierFee || msg.value > type(uint128).max) {
            revert WrongPayment(msg.value, uint256(terms_.verifierFee) + 1);
        }
        uint256 nonce = nonces[msg.sender]++;
        taskId = computeTaskId(msg.sender, nonce, terms_);
        _terms[taskId] = terms_;
        Task storage t = _tasks[taskId];
        t.submitter = msg.sender;
        t.status = Status.Open;
        t.fee = uint128(msg.value);
        emit TaskSubmitted(taskId, msg.sender, nonce, terms_, msg.value);
    }

    /// @inheritdoc ITaskMarket
    function cancelTask(bytes32 taskId) external {
        Task storage t = _expect(taskId, Status.Open);
        _onlyCaller(t.submitter);
        _close(taskId, t, Outcome.Cancelled);
        _credit(taskId, t.submitter, t.fee);
        if (t.verifier != address(0)) _releaseVerifier(taskId, t.verifier);
    }

    /// @inheritdoc ITaskMarket
    function joinAsVerifier(bytes32 taskId) external payable {
        Task storage t = _tasks[taskId];
        if (t.status != Status.Open) _expect(taskId, Status.Drawn);
        if (t.verifier != address(0)) revert SeatTaken(t.verifier);
        if (msg.sender == t.submitter || msg.sender == t.solver) revert NotAllowed(msg.sender);
        _expectPayment(_terms[taskId].verifierStake);
        t.verifier = msg.sender;
        if (t.status == Status.Drawn) t.deadline = _from(_terms[taskId].verificationWindow);
        emit VerifierJoined(taskId, msg.sender, t.deadline);
    }

    /// @inheritdoc ITaskMarket
    function leaveAsVerifier(bytes32 taskId) external {
        Task storage t = _expect(taskId, Status.Open);
        _onlyCaller(t.verifier);
        t.verifier = address(0);
        emit VerifierLeft(taskId, msg.sender);
        _releaseVerifier(taskId, msg.sender);
    }

    /// @inheritdoc ITaskMarket
    function voidProfile(bytes32 taskId, address challenger) external {
        _onlyCaller(address(profiles));
        Task storage t = _expect(taskId, Status.Open);
        emit ProfileVoided(taskId, t.verifier, challenger);
        t.verifier = address(0);
        _slash(taskId, _terms[taskId].verifierStake, challenger, Settlement.CHALLENGER_OF_VERIFIER_STAKE);
    }

    /// @inheritdoc ITaskMarket
    function acceptTask(bytes32 taskId, uint128 price, uint64[3] calldata thresholds) external payable {
        Task storage t = _expect(taskId, Status.Open);
        Terms storage s = _terms[taskId];
        if (t.verifier == address(0)) revert NoVerifier();
        uint64[3] memory agreed;
        if (s.margin > 0) agreed = profiles.thresholds(taskId);
        if (keccak256(abi.encode(agreed)) != keccak256(abi.encode(thresholds))) revert ProfileMismatch();
        if (msg.sender == t.verifier) revert NotAllowed(msg.sender);
        uint128 maximum = t.fee - s.verifierFee;
        if (price > maximum) revert PriceTooHigh(maximum);
        _expectPayment(s.solverStake);
        t.solver = msg.sender;
        t.price = price;
        t.thresholds = agreed;
        t.status = Status.Training;
        t.deadline = _from(s.trainingWindow);
        emit TaskAccepted(taskId, msg.sender, price, agreed, t.deadline);
    }

    /// @inheritdoc ITaskMarket
    function postProgress(bytes32 taskId, uint64 size, bytes32 logRoot, bytes32[] calldata consistencyPath) external {
        Task storage t = _expect(taskId, Status.Training);
        if (size <= t.logSize || size > _segments(taskId) + 1) revert WrongLogSize(size);
        _extendLog(t, size, logRoot, consistencyPath);
        emit ProgressPosted(taskId, size, logRoot);
    }

    /// @inheritdoc ITaskMarket
    function commitProof(
        bytes32 taskId,
        uint64 size,
        bytes32 logRoot,
        bytes32[] calldata consistencyPath,
        bytes32 proofDigest,
        bytes32[] calldata inclusionPath
    ) external {
        Task storage t = _expect(taskId, Status.Training);
        if (size != _segments(taskId) + 1) revert WrongLogSize(size);
        if (proofDigest == 0) revert ZeroHash();
        _extendLog(t, size, logRoot, consistencyPath);
        if (!CheckpointLog.isIncluded(_terms[taskId].initialState, 0, size, logRoot, inclusionPath)) {
            revert NotInLog(0);
        }
        t.status = Status.Committed;
        t.deadline = 0;
        t.round = beacon.nextRound();
        emit ProofCommitted(taskId, size, logRoot, proofDigest, t.round);
    }

    /// @inheritdoc ITaskMarket
    // The contract called is part of the deployment and calls nobody: events keep their order.
    // slither-disable-next-line reentrancy-events
    function draw(bytes32 taskId) external {
        Task storage t = _expect(taskId, Status.Committed);
        if (!beacon.recorded(t.round)) beacon.record(t.round);
        t.seed = beacon.seed(t.round);
        t.status = Status.Drawn;
        t.deadline = _from(_terms[taskId].verificationWindow);
        emit SegmentsDrawn(taskId, t.seed, drawnSegments(taskId), t.deadline);
    }

    /// @inheritdoc ITaskMarket
    function postVerdict(bytes32 taskId, Claim[] calldata claims, LogProof[] calldata proofs) external {
        Task storage t = _expect(taskId, Status.Drawn);
        _onlyCaller(t.verifier);
        _notAfter(t.deadline);
        uint32[] memory segments = drawnSegments(taskId);
        if (claims.length != segments.length || proofs.length != segments.length) {
            revert WrongClaimCount(segments.length);
        }
        uint32 verdict = ++t.verdicts;
        bool accepted = true;
        bool exact = _terms[taskId].margin == 0;
        for (uint256 i = 0; i < segments.length; ++i) {
            if (claims[i].segment != segments[i]) revert WrongSegment(i, segments[i]);
            _requireInLog(t, claims[i], proofs[i]);
            if (!Acceptance.accepts(exact, t.thresholds, claims[i])) accepted = false;
            _claimHashes[taskId][verdict][i] = keccak256(abi.encode(claims[i]));
            emit ClaimPosted(taskId, verdict, uint32(i), claims[i]);
        }
        t.accepted = accepted;
        t.status = Status.Verdict;
        t.deadline = _from(_terms[taskId].challengeWindow);
        emit VerdictPosted(taskId, verdict, msg.sender, accepted, t.deadline);
    }

    /// @inheritdoc ITaskMarket
    // The contract called is part of the deployment and calls nobody: nothing moves the task before its number is known.
    // slither-disable-next-line reentrancy-events,reentrancy-benign
    function challenge(
        bytes32 taskId,
        uint32 claimIndex,
        Claim calldata claim,
        uint8 kind,
        uint8 component,
        bytes calldata header,
        bytes calldata payload
    ) external payable {
        Task storage t = _expect(taskId, Status.Verdict);
        _notAfter(t.deadline);
        if (msg.sender == t.verifier) revert NotAllowed(msg.sender);
        if (_claimHashes[taskId][t.verdicts][claimIndex] != keccak256(abi.encode(claim))) {
            revert UnknownClaim(claimIndex);
        }
        if (claim.start == 0 || claim.end == 0) revert InvalidChallenge(kind, component);
        uint256 bond = _takeBond(taskId);
        // The game is fixed, numbers every dispute anew and does not call back here: nothing can move the task in between.
        uint256 number = game.start(_startParams(taskId, t.verifier, claim, kind, component), header, payload);
        _disputes[number] = Dispute(taskId, msg.sender, t.verdicts, t.challenges++, false);
        ++t.open;
        emit Challenged(taskId, t.verdicts, msg.sender, number, claimIndex, kind, component, bond);
    }

    /// @inheritdoc IDisputeResolver
    function onResolved(uint256 number, bool asserterWon) external {
        _onlyCaller(address(game));
        Dispute storage d = _disputes[number];
        if (d.taskId == 0) revert UnknownDispute(number);
        // Nothing below may fail for a dispute that there is: the game could never end it.
        if (d.released) return;
        if (!_isLive(d)) return _releaseMoot(number, d);
        (bytes32 taskId, address challenger) = (d.taskId, d.challenger);
        (Task storage t, Terms storage s) = (_tasks[taskId], _terms[taskId]);
        (address verifier, uint256 bond) = (t.verifier, _bondOf(d));
        d.released = true;
        emit DisputeResolved(taskId, d.verdict, number, asserterWon);
        if (asserterWon) {
            --t.open;
            _slash(taskId, bond, verifier, Settlement.VERIFIER_OF_BOND);
        } else {
            t.status = Status.Drawn;
            t.deadline = 0;
            t.verifier = address(0);
            t.accepted = false;
            t.challenges = 0;
            t.open = 0;
            _credit(taskId, challenger, bond);
            _slash(taskId, s.verifierStake, challenger, Settlement.CHALLENGER_OF_VERIFIER_STAKE);
        }
    }

    /// @inheritdoc ITaskMarket
    function releaseBond(uint256 number) external {
        Dispute storage d = _disputes[number];
        if (d.taskId == 0) revert UnknownDispute(number);
        if (d.released || _isLive(d)) revert NotMoot(number);
        _releaseMoot(number, d);
    }

    /// @inheritdoc ITaskMarket
    function settle(bytes32 taskId) external {
        Task storage t = _expect(taskId, Status.Verdict);
        _after(t.deadline);
        if (t.open > 0) revert DisputesOpen(t.open);
        Terms storage s = _terms[taskId];
        _close(taskId, t, t.accepted ? Outcome.Accepted : Outcome.Rejected);
        _credit(taskId, t.verifier, uint256(s.verifierFee) + s.verifierStake);
        if (t.accepted) {
            _credit(taskId, t.solver, uint256(t.price) + s.solverStake);
            _credit(taskId, t.submitter, t.fee - t.price - s.verifierFee);
        } else {
            _credit(taskId, t.submitter, t.fee - s.verifierFee);
            _slash(taskId, s.solverStake, t.submitter, Settlement.SUBMITTER_OF_SOLVER_STAKE);
        }
    }

    /// @inheritdoc ITaskMarket
    function claimSolverDefault(bytes32 taskId) external {
        Task storage t = _expect(taskId, Status.Training);
        _after(t.deadline);
        Terms storage s = _terms[taskId];
        _close(taskId, t, Outcome.SolverDefaulted);
        _credit(taskId, t.verifier, s.verifierStake);
        _credit(taskId, t.submitter, t.fee);
        _slash(taskId, s.solverStake, t.submitter, Settlement.SUBMITTER_OF_SOLVER_STAKE);
    }

    /// @inheritdoc ITaskMarket
    function claimVerifierDefault(bytes32 taskId) external {
        Task storage t = _expect(taskId, Status.Drawn);
        if (t.verifier == address(0)) revert NoVerifier();
        _after(t.deadline);
        emit VerifierDefaulted(taskId, t.verifier);
        t.verifier = address(0);
        t.deadline = 0;
        _slash(taskId, _terms[taskId].verifierStake, t.submitter, Settlement.SUBMITTER_OF_VERIFIER_STAKE);
    }

    /// @inheritdoc ITaskMarket
    function computeTaskId(address submitter, uint256 nonce, Terms calldata terms_) public view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, address(this), submitter, nonce, terms_));
    }

    /// @inheritdoc ITaskMarket
    function task(bytes32 taskId) external view returns (Task memory) {
        return _tasks[taskId];
    }

    /// @inheritdoc ITaskMarket
    function terms(bytes32 taskId) external view returns (Terms memory) {
        return _terms[taskId];
    }

    /// @inheritdoc ITaskMarket
    function bondOf(bytes32 taskId) public view returns (uint256) {
        Terms storage s = _terms[taskId];
        return Settlement.bondOf(s.bond, s.verifierStake, _tasks[taskId].challenges);
    }

    /// @inheritdoc ITaskMarket
    function dispute(uint256 number) external view returns (Dispute memory) {
        return _disputes[number];
    }

    /// @inheritdoc ITaskMarket
    function drawnSegments(bytes32 taskId) public view returns (uint32[] memory) {
        bytes32 seed = _tasks[taskId].seed;
        if (seed == 0) revert WrongStatus(taskId, uint8(_tasks[taskId].status));
        return SegmentDraw.draw(seed, _segments(taskId), _terms[taskId].draws);
    }

    /// @inheritdoc ITaskMarket
    function claimHash(bytes32 taskId, uint32 verdict, uint32 index) external view returns (bytes32) {
        return _claimHashes[taskId][verdict][index];
    }

    /// @dev Both log functions end here: the solver, in time, with a root that extends the one before.
    function _extendLog(Task storage t, uint64 size, bytes32 logRoot, bytes32[] calldata consistencyPath) private {
        _onlyCaller(t.solver);
        _notAfter(t.deadline);
        if (logRoot == 0) revert ZeroHash();
        if (!CheckpointLog.isConsistent(t.logSize, t.logRoot, size, logRoot, consistencyPath)) {
            revert InconsistentLog();
        }
        t.logSize = size;
        t.logRoot = logRoot;
    }

    function _requireInLog(Task storage t, Claim calldata claim, LogProof calldata proof) private view {
        if (claim.replay == 0) revert ZeroHash();
        (uint64 size, bytes32 root, uint64 entry) = (t.logSize, t.logRoot, claim.segment);
        if (!CheckpointLog.isIncluded(claim.start, entry, size, root, proof.start)) revert NotInLog(entry);
        if (!CheckpointLog.isIncluded(claim.end, entry + 1, size, root, proof.end)) revert NotInLog(entry + 1);
    }

    function _startParams(bytes32 taskId, address verifier, Claim calldata claim, uint8 kind, uint8 component)
        private
        view
        returns (StartParams memory params)
    {
        Terms storage s = _terms[taskId];
        params.asserter = verifier;
        params.challenger = msg.sender;
        params.program = s.program;
        params.constants = s.constants;
        params.kind = kind;
        params.component = component;
        params.clock = s.clock;
        if (kind == KIND_REPLAY && component == 0) {
            params.firstStep = uint64(claim.segment) * s.interval;
            params.steps = s.interval;
            params.start = claim.start;
            params.end = claim.replay;
        } else if (kind == KIND_DISTANCE && component >= 1 && component <= 3) {
            params.x = claim.replay;
            params.y = claim.end;
            params.sum = claim.distances[component - 1];
        } else if (kind == KIND_REFERENCE && component >= 1 && component <= 3) {
            params.x = claim.replay;
            params.y = claim.start;
            params.sum = claim.references[component - 1];
        } else {
            revert InvalidChallenge(kind, component);
        }
    }

    function _close(bytes32 taskId, Task storage t, Outcome outcome) private {
        t.status = Status.Closed;
        t.outcome = outcome;
        t.deadline = 0;
        emit TaskClosed(taskId, outcome);
    }

    /// @dev Refused while the profile can be challenged.
    function _releaseVerifier(bytes32 taskId, address verifier) private {
        profiles.release(taskId);
        _credit(taskId, verifier, _terms[taskId].verifierStake);
    }

    /// @dev Who pays more than the bond gets the rest back: the bond may have grown since it looked.
    function _takeBond(bytes32 taskId) private returns (uint256 bond) {
        bond = bondOf(taskId);
        if (msg.value < bond) revert WrongPayment(msg.value, bond);
        if (msg.value > bond) _credit(taskId, msg.sender, msg.value - bond);
    }

    /// @dev The verdict stands unless a dispute about it was lost, and is not settled before all are resolved.
    function _isLive(Dispute storage d) private view returns (bool) {
        Task storage t = _tasks[d.taskId];
        return t.status == Status.Verdict && t.verdicts == d.verdict;
    }

    function _bondOf(Dispute storage d) private view returns (uint256) {
        Terms storage s = _terms[d.taskId];
        return Settlement.bondOf(s.bond, s.verifierStake, d.earlier);
    }

    /// @dev Another dispute has made the verdict void: whoever is right in this one, the challenger loses nothing.
    function _releaseMoot(uint256 number, Dispute storage d) private {
        d.released = true;
        emit DisputeMoot(d.taskId, d.verdict, number);
        _credit(d.taskId, d.challenger, _bondOf(d));
    }

    /// @dev Splits lost money between one party and the treasury.
    function _slash(bytes32 taskId, uint256 amount, address party, uint256 points) private {
        uint256 share = Settlement.shareDown(amount, points);
        _credit(taskId, party, share);
        _credit(taskId, treasury, amount - share);
    }

    function _expect(bytes32 taskId, Status status) private view returns (Task storage t) {
        t = _tasks[taskId];
        if (t.status != status) revert WrongStatus(taskId, uint8(t.status));
    }

    function _segments(bytes32 taskId) private view returns (uint64) {
        return _terms[taskId].steps / _terms[taskId].interval;
    }

    function _from(uint32 window) private view returns (uint64) {
        return uint64(block.timestamp) + window;
    }

    function _onlyCaller(address account) private view {
        if (msg.sender != account) revert NotAllowed(msg.sender);
    }

    function _expectPayment(uint256 expected) private view {
        if (msg.value != expected) revert WrongPayment(msg.value, expected);
    }

    function _notAfter(uint64 deadline) private view {
        if (block.timestamp > deadline) revert DeadlinePassed(deadline);
    }

    function _after(uint64 deadline) private view {
        if (block.timestamp <= deadline) revert DeadlineNotPassed(deadline);
    }
}
