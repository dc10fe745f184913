// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "../commitments/CheckpointLog.sol";
import {IStakeVault} from "../incentives/IStakeVault.sol";
import {BoundInputs, RuleProof, SourceProof} from "./BoundInputs.sol";
import {IWorkerBonds, Standing, WorkerBond} from "./IWorkerBonds.sol";
import {PhaseProof, PlanTerms} from "./PlanTypes.sol";
import {RosterMembers, SignedRoster} from "./RosterMembers.sol";
import {RoundSignatures} from "./RoundSignatures.sol";
import {Delivery, Roster, RoundClaim, SignedClaim, SignedDelivery, SignedHead} from "./RoundTypes.sol";
import {SignedText} from "./SignedText.sol";
import {LoggedEntry, RoundDemand, TimedDemands} from "./TimedDemands.sol";

/// @notice Where a bound input comes from: all that its author has to have seen.
struct SourceAnswer {
    PhaseProof phase; // of the claim
    SourceProof source;
    RuleProof rule;
    bytes32[] startBranch; // of the tensor in the claim's start
    SignedClaim named; // the claim that gives it; not looked at if that is an initial value
    PhaseProof namedPhase;
    bytes32[] givenBranch; // of the tensor in the end of that claim, or among the initial values
    SignedRoster member; // its author in a roster of its round; not looked at if that has a stake
}

/// @notice A source of the claim that a receipt is of.
struct CoveredSource {
    RoundClaim claim;
    uint32 slots; // of its program
    SourceProof source;
}

/// @title RoundDemands
/// @notice What only its author, or the keeper of the log, can show: the claim behind a bound input, the roster that a
/// claim names, the entry behind a receipt, the way from one head of the log to another (docs/spec/rounds.md, "On a
/// chain").
contract RoundDemands is TimedDemands {
    using RoundSignatures for RoundClaim;
    using RoundSignatures for Delivery;
    using RoundSignatures for Roster;
    using RoundSignatures for SignedClaim;
    using RoundSignatures for SignedHead;

    /// @notice The claim behind a slot of the start of `signed` is demanded from its author.
    event SourceDemanded(bytes32 indexed id, bytes32 indexed content, uint32 slot, SignedClaim signed);
    /// @notice The roster that `signed` names is demanded from its author.
    event RosterDemanded(bytes32 indexed id, bytes32 indexed content, SignedClaim signed);
    /// @notice The entry of a claim that the keeper has acknowledged is demanded from it.
    event EntryDemanded(bytes32 indexed id, bytes32 indexed content, address worker, SignedClaim signed);
    /// @notice The entry of a roster that the keeper has signed is demanded from it.
    event RosterEntryDemanded(bytes32 indexed id, bytes32 indexed content, uint64 round, bytes32 document);
    /// @notice A consistency path between two of its heads is demanded from the keeper.
    event PathDemanded(bytes32 indexed id, bytes32 indexed content, SignedHead older, SignedHead newer);
    /// @notice The length of its log is demanded from the keeper: `worker` has gone.
    event LengthDemanded(bytes32 indexed id, bytes32 indexed content, address worker);
    /// @notice The answer to a demand for an entry, of a claim or of a roster's document: whoever has asked shows it
    /// again, also if its keeper publishes no head that holds it.
    event EntryShown(bytes32 indexed id, bytes32 indexed claim, LoggedEntry logged);
    /// @notice The answer to a demand for the length of the log.
    event LengthShown(bytes32 indexed id, address indexed worker, SignedHead head);

    /// @notice No worker of the plan has signed the claim: its author has no stake, and no roster is shown that has it.
    error NoWorker(address signer);
    /// @notice The source isn't what the plan's rule gives.
    error OtherRule(uint32 slot);
    /// @notice The claim's phase has no such slot: nobody could show where it comes from.
    error NoSuchSlot(uint32 slot);
    /// @notice The second head isn't longer than the first, or no extension of it.
    error NotAnExtension(uint64 older, uint64 newer);

    constructor(IStakeVault vault_) TimedDemands(vault_) {}

    /// @notice The bond of a demand now.
    function bondOf(bytes32 id) external view returns (uint256) {
        return _priceOf(bonds.terms(id), ANSWER_GAS);
    }

    /// @notice Demands the claim behind a slot of a claim's start. Claims of a phase that the plan doesn't have are
    /// shown (`RoundEvidence.showOtherPhase`).
    function demandSource(
        bytes32 id,
        SignedClaim calldata signed,
        PhaseProof calldata phase,
        uint32 slot,
        uint256 mostBond
    ) external returns (bytes32 key) {
        PlanTerms memory t = _termsFor(id, signed.claim.plan);
        BoundInputs.requirePhase(t, signed.claim.phase, phase);
        if (slot >= phase.phase.slots) revert NoSuchSlot(slot);
        bytes32 content = _sourceContent(signed.claim, slot);
        emit SourceDemanded(id, content, slot, signed);
        return _demand(t, id, signed.author(), content, mostBond, ROSTER_ANSWER_GAS);
    }

    /// @notice Shows it: all that can be false by roots is right. Anybody, for the author.
    function answerSource(RoundDemand calldata d, RoundClaim calldata claim, SourceAnswer calldata a) external {
        PlanTerms memory t = bonds.terms(d.id);
        BoundInputs.requirePhase(t, claim.phase, a.phase);
        BoundInputs.requireSource(claim, a.phase.phase.slots, a.source);
        BoundInputs.requireRule(a.phase.phase, a.source.slot, a.rule);
        BoundInputs.requireTensor(claim.start, a.phase.phase.slots, a.source.slot, a.source.source.root, a.startBranch);
        _answer(d, _sourceContent(claim, a.source.slot), _owed(t, d, _requireGiven(t, d, claim, a)));
    }

    /// @notice Demands the roster that a claim names.
    function demandRoster(bytes32 id, SignedClaim calldata signed, uint256 mostBond) external returns (bytes32 key) {
        PlanTerms memory t = _termsFor(id, signed.claim.plan);
        bytes32 content = _rosterContent(signed.claim);
        emit RosterDemanded(id, content, signed);
        return _demand(t, id, signed.author(), content, mostBond, ROSTER_ANSWER_GAS);
    }

    /// @notice Shows it, to all: the coordinator has signed it for the claim's round, and the claim's author is a
    /// member. Anybody, for the author.
    function answerRoster(RoundDemand calldata d, RoundClaim calldata claim, SignedRoster calldata member) external {
        PlanTerms memory t = bonds.terms(d.id);
        _showRoster(d.id, t, claim, member);
        _answer(d, _rosterContent(claim), _owed(t, d, member.text));
    }

    /// @notice Demands the entry of a claim whose receipt the keeper has signed, or of a source of that claim. The
    /// claim comes with it, so a keeper that has lost it can still enter it.
    /// @param covered Not looked at if the receipt is of `signed` itself.
    function demandEntry(
        bytes32 id,
        SignedDelivery calldata receipt,
        CoveredSource calldata covered,
        SignedClaim calldata signed,
        uint256 mostBond
    ) external returns (bytes32 key) {
        PlanTerms memory t = _termsFor(id, receipt.delivery.plan);
        _requireSigner(RoundSignatures.signer(receipt.delivery.digest(), receipt.signature), t.coordinator);
        bytes32 claim = signed.claim.digest();
        if (signed.claim.plan != id) revert OtherClaim(claim);
        if (claim != receipt.delivery.claim) _requireCovered(receipt.delivery.claim, covered, claim);
        // What a stranger has signed nobody has to enter.
        address worker = signed.author();
        if (bonds.bond(id, worker).standing == Standing.None) revert NoWorker(worker);
        bytes32 content = _entryContent(claim, worker);
        emit EntryDemanded(id, content, worker, signed);
        return _demand(t, id, t.coordinator, content, mostBond, ANSWER_GAS);
    }

    /// @notice Shows it under a head of the keeper. Anybody, for the keeper.
    function answerEntry(RoundDemand calldata d, bytes32 claim, address worker, LoggedEntry calldata logged) external {
        _requireLogged(d.id, logged, claim, worker);
        emit EntryShown(d.id, claim, logged);
        _answer(d, _entryContent(claim, worker), d.bond);
    }

    /// @notice Demands the entry of a roster that the keeper has signed, wherever it was shown. In one that the log
    /// doesn't have, who has gone would sign on, and nobody would answer for it (`RoundEvidence.showUnstakedMember`).
    function demandRosterEntry(
        bytes32 id,
        uint64 round,
        bytes32 document,
        bytes calldata signature,
        uint256 mostBond
    ) external returns (bytes32 key) {
        PlanTerms memory t = bonds.terms(id);
        bytes32 roster = Roster(id, round, document).digest();
        _requireSigner(RoundSignatures.signer(roster, signature), t.coordinator);
        bytes32 content = _entryContent(roster, t.coordinator);
        emit RosterEntryDemanded(id, content, round, document);
        return _demand(t, id, t.coordinator, content, mostBond, ANSWER_GAS);
    }

    /// @notice Shows it under a head of the keeper. Anybody, for the keeper.
    function answerRosterEntry(RoundDemand calldata d, uint64 round, bytes32 document, LoggedEntry calldata logged)
        external
    {
        // An entry that hides it would be no evidence.
        if (SignedText.documentOf(logged.entry) != document) revert RosterMembers.OtherRoster(document);
        bytes32 roster = Roster(d.id, round, document).digest();
        _requireLogged(d.id, logged, roster, d.accused);
        emit EntryShown(d.id, document, logged);
        _answer(d, _entryContent(roster, d.accused), d.bond);
    }

    /// @notice Demands that a head is shown to extend another one.
    function demandPath(bytes32 id, SignedHead calldata older, SignedHead calldata newer, uint256 mostBond)
        external
        returns (bytes32 key)
    {
        PlanTerms memory t = _termsFor(id, older.head.plan);
        if (newer.head.plan != id) revert OtherPlan(newer.head.plan);
        if (older.head.size >= newer.head.size) revert NotAnExtension(older.head.size, newer.head.size);
        _requireSigner(older.keeper(), t.coordinator);
        _requireSigner(newer.keeper(), t.coordinator);
        bytes32 content = _pathContent(older, newer);
        emit PathDemanded(id, content, older, newer);
        return _demand(t, id, t.coordinator, content, mostBond, ANSWER_GAS);
    }

    /// @notice Shows it. Anybody, for the keeper.
    function answerPath(
        RoundDemand calldata d,
        SignedHead calldata older,
        SignedHead calldata newer,
        bytes32[] calldata path
    ) external {
        _answer(d, _pathContent(older, newer), d.bond);
        if (!CheckpointLog.isConsistent(older.head.size, older.head.root, newer.head.size, newer.head.root, path)) {
            revert NotAnExtension(older.head.size, newer.head.size);
        }
    }

    /// @notice Demands the length of the keeper's log, when a worker that has left or was slashed is in none of its
    /// rosters any more: who signs another one with it, behind that, answers for it
    /// (`RoundEvidence.showUnstakedMember`).
    function demandLength(bytes32 id, address worker, uint256 mostBond) external returns (bytes32 key) {
        WorkerBond memory b = bonds.bond(id, worker);
        bool isGone = b.standing == Standing.Left || b.standing == Standing.Slashed;
        if (!isGone || b.entries != 0) revert IWorkerBonds.WrongStanding(worker, b.standing);
        PlanTerms memory t = bonds.terms(id);
        emit LengthDemanded(id, _lengthContent(worker), worker);
        return _demand(t, id, t.coordinator, _lengthContent(worker), mostBond, ANSWER_GAS);
    }

    /// @notice Says it, by a head. The keeper alone: anybody else could show one from before its last roster.
    function answerLength(RoundDemand calldata d, address worker, SignedHead calldata head) external {
        _requireSigner(_party(), d.accused);
        if (head.head.plan != d.id) revert OtherPlan(head.head.plan);
        _requireSigner(head.keeper(), d.accused);
        emit LengthShown(d.id, worker, head);
        bonds.tell(d.id, worker, head.head.size);
        _answer(d, _lengthContent(worker), d.bond);
    }

    /// @dev However many slots are said: no inner hash of the tree over the sources is a leaf.
    function _requireCovered(bytes32 acknowledged, CoveredSource calldata covered, bytes32 claim) private pure {
        if (covered.claim.digest() != acknowledged || covered.source.source.claim != claim) revert OtherClaim(claim);
        BoundInputs.requireSource(covered.claim, covered.slots, covered.source);
    }

    /// @dev Gives the roster that was looked at: what else is shown is cheaper than what a byte earns.
    function _requireGiven(
        PlanTerms memory t,
        RoundDemand calldata d,
        RoundClaim calldata claim,
        SourceAnswer calldata a
    ) private view returns (bytes calldata shown) {
        shown = a.member.text[:0];
        if (a.source.source.claim == 0) {
            if (!BoundInputs.mayGiveInitial(a.rule.rule, claim, a.source.source)) {
                revert OtherRule(a.source.slot);
            }
            BoundInputs.requireInitial(t, a.source.source.slot, a.source.source.root, a.givenBranch);
            return shown;
        }
        RoundClaim calldata named = a.named.claim;
        bytes32 digest = named.digest();
        if (digest != a.source.source.claim) revert OtherClaim(digest);
        BoundInputs.requirePhase(t, named.phase, a.namedPhase);
        uint32 slots = a.namedPhase.phase.slots;
        if (!BoundInputs.mayGive(a.rule.rule, claim, a.source.source, named, a.namedPhase.phase)) {
            revert OtherRule(a.source.slot);
        }
        address author = a.named.author();
        // Who works for the coordinator without a stake is the coordinator's lie (`RoundEvidence.showUnstakedMember`),
        // not the one of those who go on from its claims. What anybody else has signed is no source.
        Standing standing = bonds.bond(d.id, author).standing;
        if (standing != Standing.Joined && standing != Standing.Leaving) {
            if (a.member.text.length == 0) revert NoWorker(author);
            // Which roster it is doesn't matter.
            // slither-disable-next-line unused-return
            RosterMembers.requireMember(d.id, t, named.round, author, a.member);
            shown = a.member.text;
        }
        BoundInputs.requireTensor(named.end, slots, a.source.source.slot, a.source.source.root, a.givenBranch);
    }

    function _sourceContent(RoundClaim calldata claim, uint32 slot) private pure returns (bytes32) {
        return keccak256(abi.encode("source", claim.digest(), slot));
    }

    function _rosterContent(RoundClaim calldata claim) private pure returns (bytes32) {
        return keccak256(abi.encode("roster", claim.digest()));
    }

    function _entryContent(bytes32 claim, address worker) private pure returns (bytes32) {
        return keccak256(abi.encode("entry", claim, worker));
    }

    function _lengthContent(address worker) private pure returns (bytes32) {
        return keccak256(abi.encode("length", worker));
    }

    function _pathContent(SignedHead calldata older, SignedHead calldata newer) private pure returns (bytes32) {
        return keccak256(abi.encode("path", older.head, newer.head));
    }
}
