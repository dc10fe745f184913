// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ForcedErrors} from "../incentives/ForcedErrors.sol";
import {ISeatings} from "../incentives/ISeatings.sol";
import {IStakeVault} from "../incentives/IStakeVault.sol";
import {Acceptance} from "./Acceptance.sol";
import {Announcements} from "./Announcements.sol";
import {IBeacon, PATIENCE} from "./IBeacon.sol";
import {Seating} from "./ISeats.sol";
import {ITaskRegistry} from "./ITaskRegistry.sol";
import {Disclosure, IVerdicts, Look, Placed, Verdict} from "./IVerdicts.sol";
import {ClaimJudgement, Rule} from "./ClaimJudgement.sol";
import {MarketDesk} from "./MarketDesk.sol";
import {Split} from "./Split.sol";
import {Claim, LogProof, Outcome, Status, Task, Terms} from "./TaskTypes.sol";

/// @title Verdicts
/// @notice See `IVerdicts`.
/// @dev Claims are kept as one hash of their hashes.
contract Verdicts is ClaimJudgement, Announcements {
    /// @notice The replay in a true claim about a segment that begins or ends in a zero root.
    bytes32 public constant NO_REPLAY = bytes32(type(uint256).max);

    /// @notice Draws watchers.
    IBeacon public immutable beacon;
    /// @notice How often verdicts are wrong on purpose, times 2^32.
    uint32 public immutable rate;

    mapping(bytes32 taskId => Verdict) private _verdicts;
    mapping(bytes32 taskId => mapping(uint32 seating => bytes32 entries)) private _posted;
    /// @dev The round that draws watchers is the second of this seating.
    mapping(bytes32 taskId => mapping(uint32 seating => bool)) private _replaced;
    /// @dev The last seating of a proof that is gone: what was said of it says nothing about the one that stands.
    mapping(bytes32 taskId => uint32 seating) private _forgotten;

    /// @param rate_ Within the bounds of `ForcedErrors`.
    constructor(IStakeVault vault_, IBeacon beacon_, uint32 rate_) MarketDesk(vault_) {
        ForcedErrors.checkRate(rate_);
        (beacon, rate) = (beacon_, rate_);
    }

    /// @inheritdoc IVerdicts
    function post(
        bytes32 taskId,
        Claim[] calldata claims,
        LogProof[] calldata logProofs,
        Look[] calldata looks,
        bytes32 sealedClaim
    ) external {
        Task memory t = _expect(taskId, Status.Verifying);
        _requireParty(t.holder);
        _notAfter(t.deadline);
        if (sealedClaim == 0) revert ITaskRegistry.ZeroHash();
        if (seats.dutySeed(taskId) == 0) revert DutyUnknown(seats.seating(taskId).dutyRound);
        (Rule memory rule, bytes32 hash) = _judge(taskId, t.seating, claims, logProofs, looks);
        Verdict storage v = _verdicts[taskId];
        delete _verdicts[taskId];
        (v.seating, v.verifier, v.claims, v.sealedClaim) = (t.seating, t.holder, hash, sealedClaim);
        (v.rejecting, v.differing, v.looks) = (rule.rejecting, uint8(rule.differing), uint8(rule.looked));
        _posted[taskId][t.seating] = hash;
        emit VerdictPosted(taskId, t.seating, t.holder, rule.rejecting, rule.differing, sealedClaim);
        _fixRound(taskId, v);
        registry.advance(taskId, Status.Verifying, Status.Watched, 0);
    }

    /// @inheritdoc IVerdicts
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-no-eth,reentrancy-events
    function openWatch(bytes32 taskId) external {
        _expect(taskId, Status.Watched);
        Verdict storage v = _verdicts[taskId];
        if (v.watchUntil != 0) revert ITaskRegistry.WrongStatus(taskId, Status.Watched);
        if (!beacon.recorded(v.watchRound)) beacon.record(v.watchRound);
        v.watchUntil = _from(registry.terms(taskId).watchWindow);
        emit WatchOpened(taskId, v.seating, beacon.seed(v.watchRound), v.watchUntil);
        registry.advance(taskId, Status.Watched, Status.Watched, v.watchUntil);
    }

    /// @inheritdoc IVerdicts
    function replaceRound(bytes32 taskId) external {
        _expect(taskId, Status.Watched);
        Verdict storage v = _verdicts[taskId];
        if (beacon.recorded(v.watchRound)) revert RoundStands(v.watchRound);
        if (_replaced[taskId][v.seating]) revert AlreadyReplaced(taskId);
        _after(v.watchFixedAt + PATIENCE);
        _replaced[taskId][v.seating] = true;
        _fixRound(taskId, v);
    }

    /// @inheritdoc IVerdicts
    function disclose(bytes32 taskId, Disclosure calldata d) external {
        Verdict storage v = _inDisclosure(taskId);
        if (v.leaked) revert WrongSecret();
        Terms memory s = registry.terms(taskId);
        _notAfter(v.watchUntil + s.disclosureWindow);
        _requireSecret(taskId, v.verifier, d.secret);
        bytes32 seed = seats.dutySeed(taskId);
        bool forced = ForcedErrors.isForced(rate, seed, taskId, v.seating, d.secret);
        uint32 index = 0;
        if (forced) {
            index = ForcedErrors.index(seed, taskId, v.seating, d.secret, s.draws);
            _replacePlanted(taskId, v, d, index, seed);
        }
        v.disclosed = true;
        uint64 deadline = _from(s.challengeWindow);
        emit Disclosed(taskId, v.seating, d.secret, forced, index, v.rejecting, v.differing, deadline);
        registry.advance(taskId, Status.Watched, Status.Contested, deadline);
    }

    /// @inheritdoc IVerdicts
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-no-eth
    function claimUndisclosed(bytes32 taskId) external {
        Verdict storage v = _inDisclosure(taskId);
        if (!v.leaked) {
            _after(v.watchUntil + registry.terms(taskId).disclosureWindow);
            // No party gains by it: whoever is to get a share could be the verifier.
            _breakDuty(taskId, address(0), 0);
        }
        _reopen(taskId, Status.Watched);
    }

    /// @inheritdoc IVerdicts
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-no-eth
    function reportLeak(bytes32 taskId, bytes32 secret) external {
        Task memory t = registry.task(taskId);
        Verdict storage v = _verdicts[taskId];
        bool watched = t.status == Status.Watched;
        if (!watched) t = _expect(taskId, Status.Verifying);
        else if (v.watchUntil != 0) _notAfter(v.watchUntil);
        if (watched && v.leaked) revert WrongSecret();
        _requireSecret(taskId, t.holder, secret);
        _requireAnnounced(taskId, keccak256(abi.encode(secret)));
        _breakDuty(taskId, _party(), Split.CHALLENGER_OF_VERIFIER_STAKE);
        // Watchers go on until their time is over: they have worked.
        if (watched) v.leaked = true;
        else _reopen(taskId, Status.Verifying);
    }

    /// @inheritdoc IVerdicts
    function void(bytes32 taskId) external only(address(challenges)) {
        _reopen(taskId, Status.Contested);
    }

    /// @inheritdoc IVerdicts
    function forget(bytes32 taskId) external only(address(settlement)) {
        delete _verdicts[taskId];
        _forgotten[taskId] = registry.task(taskId).seating;
    }

    /// @inheritdoc IVerdicts
    function conclude(bytes32 taskId) external view returns (bool accepted, bool repeated, uint256 looks) {
        Verdict storage v = _verdicts[taskId];
        return (v.rejecting == 0, v.differing == 0, v.looks);
    }

    /// @inheritdoc IVerdicts
    function patientUntil(bytes32 taskId) external view returns (uint64) {
        Verdict storage v = _verdicts[taskId];
        if (v.watchRound == 0 || beacon.recorded(v.watchRound)) return 0;
        return v.watchFixedAt + (_replaced[taskId][v.seating] ? PATIENCE : 2 * PATIENCE);
    }

    /// @inheritdoc IVerdicts
    function verdict(bytes32 taskId) external view returns (Verdict memory) {
        return _verdicts[taskId];
    }

    /// @inheritdoc IVerdicts
    function holds(bytes32 taskId, uint32 index, Claim calldata claim, bytes32 look, bytes32[] calldata entries)
        public
        view
        returns (bool)
    {
        return _isPlaced(_verdicts[taskId].claims, index, Placed(claim, look, entries));
    }

    /// @inheritdoc ISeatings
    function seating(bytes32 taskId)
        external
        view
        returns (uint32 number, uint64 since, bytes32 seed, uint64 watchUntil)
    {
        Verdict storage v = _verdicts[taskId];
        if (v.watchUntil != 0) seed = beacon.seed(v.watchRound);
        return (v.seating, v.watchFixedAt, seed, v.watchUntil);
    }

    /// @inheritdoc ISeatings
    function isParty(bytes32 taskId, address account) external view returns (bool) {
        Task memory t = registry.task(taskId);
        // Whose secret leaked has left its seat, but its verdict is still watched.
        return
            account == t.submitter || account == t.solver || account == t.holder
                || account == _verdicts[taskId].verifier;
    }

    /// @inheritdoc ISeatings
    function closedAt(bytes32 taskId) public view returns (uint64) {
        Task memory t = registry.task(taskId);
        return t.outcome == Outcome.Cancelled ? 0 : t.closed;
    }

    /// @inheritdoc ISeatings
    function refuted(bytes32 taskId, uint32 number, uint32 index, bytes calldata evidence)
        external
        view
        returns (bytes32 entry)
    {
        if (closedAt(taskId) == 0 || number <= _forgotten[taskId]) revert NotRefuted(taskId, number, index);
        (Placed memory said, Placed memory stands) = abi.decode(evidence, (Placed, Placed));
        entry = _entry(stands.claim, stands.look);
        if (
            !_isPlaced(_posted[taskId][number], index, said) || !_isPlaced(_verdicts[taskId].claims, index, stands)
                || _entry(said.claim, said.look) == entry
        ) revert NotRefuted(taskId, number, index);
    }

    /// @dev Nobody can enrol between the choice of the round and its seed and count in it.
    function _fixRound(bytes32 taskId, Verdict storage v) private {
        (v.watchRound, v.watchFixedAt) = (beacon.nextRound(), uint64(block.timestamp));
        emit WatchFixed(taskId, v.seating, v.watchRound, v.watchFixedAt);
    }

    function _isPlaced(bytes32 posted, uint32 index, Placed memory p) private pure returns (bool) {
        return posted != 0 && posted == keccak256(abi.encodePacked(p.entries)) && index < p.entries.length
            && p.entries[index] == _entry(p.claim, p.look);
    }

    /// @dev The true claim takes the place of the one with the planted error.
    function _replacePlanted(bytes32 taskId, Verdict storage v, Disclosure calldata d, uint32 index, bytes32 seed)
        private
    {
        if (v.claims != keccak256(abi.encodePacked(d.entries))) revert UnknownClaim(index);
        Claim memory wrong = d.claim;
        bytes32 planted = ForcedErrors.errorRoot(seed, taskId, v.seating, d.secret);
        // Claims of exact mode have a receipt. Ends are equal there: a wrong one would show itself, a receipt doesn't.
        bool exact = d.claim.receipt != 0;
        if (exact) wrong.receipt = planted;
        else wrong.replay = planted;
        if (
            v.sealedClaim != ForcedErrors.sealedClaim(taskId, v.seating, d.salt, d.claim)
                || d.entries[index] != _entry(wrong, d.look) || !_isReplay(d.claim)
        ) revert WrongDisclosure(index);
        if (!exact && d.look == 0 && Acceptance.isRepeated(d.claim)) _countRepeated(taskId, v, d.claim);
        bytes32[] memory entries = d.entries;
        entries[index] = _entry(d.claim, d.look);
        v.claims = keccak256(abi.encodePacked(entries));
        emit ClaimPosted(taskId, v.seating, index, d.claim);
    }

    /// @dev A true claim, in which roots are equal, takes the place of one that differs from it in its root alone: it
    /// goes on rejecting only by its sums.
    function _countRepeated(bytes32 taskId, Verdict storage v, Claim calldata claim) private {
        if (!Acceptance.accepts(false, _rule(taskId).thresholds, claim)) --v.differing;
    }

    /// @dev Nobody can replay what is no state: then one root stands for all, which nobody has to find out.
    function _isReplay(Claim calldata claim) private pure returns (bool) {
        if (claim.start != 0 && claim.end != 0) return claim.replay != 0;
        bool isReceipt = claim.receipt == 0 || (claim.before == NO_REPLAY && claim.receipt == NO_REPLAY);
        return claim.replay == NO_REPLAY && isReceipt;
    }

    /// @dev The verdict whose watch is over.
    function _inDisclosure(bytes32 taskId) private view returns (Verdict storage v) {
        _expect(taskId, Status.Watched);
        v = _verdicts[taskId];
        if (v.watchUntil == 0) revert DutyUnknown(v.watchRound);
        _after(v.watchUntil);
    }

    function _requireSecret(bytes32 taskId, address verifier, bytes32 secret) private view {
        Seating memory s = seats.seating(taskId);
        if (s.commitment != ForcedErrors.commitment(verifier, taskId, secret)) revert WrongSecret();
    }

    function _breakDuty(bytes32 taskId, address reporter, uint256 points) private {
        Task memory t = registry.task(taskId);
        emit DutyBroken(taskId, t.seating, t.holder, reporter);
        seats.slash(taskId, reporter, points);
    }

    /// @dev No verdict any more: another verifier is drawn.
    function _reopen(bytes32 taskId, Status status) private {
        delete _verdicts[taskId];
        registry.advance(taskId, status, Status.Committed, 0);
        seats.open(taskId, true);
    }
}
