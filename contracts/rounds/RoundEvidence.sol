// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "../commitments/CheckpointLog.sol";
import {MerkleBranch} from "../commitments/MerkleBranch.sol";
import {IStakeVault} from "../incentives/IStakeVault.sol";
import {Announcements} from "../market/Announcements.sol";
import {BoundInputs, RuleProof, SourceProof, TensorProof} from "./BoundInputs.sol";
import {Standing, WorkerBond} from "./IWorkerBonds.sol";
import {Giver, Phase, PhaseProof, PlanTerms, SourceRule} from "./PlanTypes.sol";
import {RosterFact, RosterMembers, RosterPlaces, SignedRoster} from "./RosterMembers.sol";
import {RoundDesk} from "./RoundDesk.sol";
import {RoundSignatures} from "./RoundSignatures.sol";
import {SignedText} from "./SignedText.sol";
import {Roster, RoundClaim, SignedClaim, SignedHead} from "./RoundTypes.sol";
import {LoggedEntry} from "./TimedDemands.sol";

/// @notice What was shown to be wrong. Zero means nothing.
enum Falsehood {
    None,
    OtherPhase, // program, constants, steps, round or part aren't the plan's
    OtherSeat, // the constants aren't those of the author's seat
    OtherStart, // the start isn't the state over the roots of the sources
    OtherSource, // a source has another root than the end of the claim that it names
    OtherInitial, // or than the initial value
    OtherRule, // a source isn't the one that the plan's rule gives, whatever the rosters
    OtherMember, // a source is of another worker than the roster gives
    TwoClaims, // for one place
    TwoRosters, // for one round: both final or both provisional, or a provisional one that the final one doesn't name
    ForkedLog, // two heads, of which none extends the other
    UnstakedMember, // a roster has a member that has never joined, or had gone
    SharedSeat, // of one round, by one roster or by two
    OtherAuthor, // the roster gives the place of the claim to another member
    LateMember // the final roster has a member that the provisional one hasn't
}

/// @notice A roster's document, and the bytes at which its lists stand.
struct RosterDocument {
    bytes text;
    uint256 members; // of `"members":[`
    uint256 partners; // of `"partners":[`
    uint256 routes; // of `"routes":[[`
    uint256 arrivals; // of `"arrivals":[`
}

/// @notice An entry of a log.
struct EntryProof {
    bytes32 entry;
    bytes32[] path;
}

/// @title RoundEvidence
/// @notice What signatures and branches show at once: claims that are false by their roots, and equivocations
/// (docs/spec/rounds.md, "On a chain"). Whoever shows it wins the smaller share of the stake, and has announced it in
/// an earlier block: `evidence` of the announcement is the hash of the call's data.
contract RoundEvidence is RoundDesk, Announcements {
    using RoundSignatures for RoundClaim;
    using RoundSignatures for Roster;
    using RoundSignatures for SignedClaim;
    using RoundSignatures for SignedHead;

    /// @notice What `worker` has signed was shown to be false.
    /// @param evidence Digest of what it has signed; of two, the first.
    event Shown(
        bytes32 indexed id, address indexed worker, address indexed prover, Falsehood falsehood, bytes32 evidence
    );

    /// @notice The evidence shows nothing wrong.
    error NothingWrong();
    /// @notice The caller hasn't noted what the first roster says, behind its announcement and in an earlier block.
    error NotNoted(bytes32 key);

    /// @notice The block in which a party has noted something: by the hash of party, plan, round and `RosterFact`.
    mapping(bytes32 key => uint256 number) public notedAt;

    constructor(IStakeVault vault_) RoundDesk(vault_) {}

    /// @notice A claim that isn't one of its phase.
    /// @param constants Roots of the constants of all seats, joined.
    function showOtherPhase(
        bytes32 id,
        SignedClaim calldata signed,
        PhaseProof calldata phase,
        bytes calldata constants
    ) external {
        RoundClaim calldata c = signed.claim;
        PlanTerms memory t = _termsFor(id, c.plan);
        bool isPlaced = c.phase < t.phaseCount && c.round < t.rounds && c.start != 0 && c.end != 0;
        if (isPlaced) {
            BoundInputs.requirePhase(t, c.phase, phase);
            if (_isOfPhase(c, phase.phase, constants)) revert NothingWrong();
        }
        _show(id, signed, Falsehood.OtherPhase);
    }

    /// @notice A claim that the plan leaves to another member, by the roster that it names, or that names a provisional
    /// one for it: who computes nothing could sign what others have computed.
    function showOtherAuthor(
        bytes32 id,
        SignedClaim calldata signed,
        PhaseProof calldata phase,
        bytes calldata roster,
        RosterPlaces calldata places
    ) external {
        RoundClaim calldata c = signed.claim;
        BoundInputs.requirePhase(_termsFor(id, c.plan), c.phase, phase);
        _requireRoster(c, roster);
        if (RosterMembers.isAuthor(phase.phase, c, roster, places)) revert NothingWrong();
        _show(id, signed, Falsehood.OtherAuthor);
    }

    /// @notice A claim with the constants of another seat than its roster gives its author.
    /// @param roster The document that the claim names.
    /// @param offset Byte of the document at which the seat of the author stands (`SignedText.seatOf`).
    /// @param constants Of that seat; not looked at if the plan has no such seat.
    function showOtherSeat(
        bytes32 id,
        SignedClaim calldata signed,
        PhaseProof calldata phase,
        bytes calldata roster,
        uint256 offset,
        TensorProof calldata constants
    ) external {
        RoundClaim calldata c = signed.claim;
        BoundInputs.requirePhase(_termsFor(id, c.plan), c.phase, phase);
        _requireRoster(c, roster);
        uint256 seat = SignedText.seatOf(roster, offset, c.worker);
        uint256 seats = phase.phase.seats;
        // One for all is everybody's; of several, a seat has one or none.
        if (seats == 1) seat = 0;
        if (seat < seats) {
            if (MerkleBranch.climbIn(constants.root, seat, constants.branch, seats) != phase.phase.constants) {
                revert BoundInputs.NotInPlan(c.phase);
            }
            if (constants.root == c.constants) revert NothingWrong();
        }
        _show(id, signed, Falsehood.OtherSeat);
    }

    /// @notice A start that isn't the state over the roots of the sources.
    /// @param sources All of them, of 68 bytes each.
    function showOtherStart(bytes32 id, SignedClaim calldata signed, PhaseProof calldata phase, bytes calldata sources)
        external
    {
        RoundClaim calldata c = signed.claim;
        BoundInputs.requirePhase(_termsFor(id, c.plan), c.phase, phase);
        uint32 slots = phase.phase.slots;
        bool isWhole = sources.length == slots * BoundInputs.SOURCE_BYTES;
        if (!isWhole || BoundInputs.leavesRoot(sources, BoundInputs.SOURCE_BYTES) != c.sources) {
            revert BoundInputs.NotInSources(slots);
        }
        if (BoundInputs.startOf(sources) == c.start) revert NothingWrong();
        _show(id, signed, Falsehood.OtherStart);
    }

    /// @notice A source with another root than the claim that it names has in its end, whoever has signed that.
    function showOtherSource(
        bytes32 id,
        SignedClaim calldata signed,
        PhaseProof calldata phase,
        SourceProof calldata source,
        RoundClaim calldata named,
        PhaseProof calldata namedPhase,
        TensorProof calldata tensor
    ) external {
        PlanTerms memory t = _requireSource(id, signed.claim, phase, source);
        _requireNamed(t, source, named, namedPhase);
        // There is no such slot, or it holds something else.
        uint32 slots = namedPhase.phase.slots;
        if (source.source.slot < slots) {
            BoundInputs.requireTensor(named.end, slots, source.source.slot, tensor.root, tensor.branch);
            if (tensor.root == source.source.root) revert NothingWrong();
        }
        _show(id, signed, Falsehood.OtherSource);
    }

    /// @notice A source that is said to be an initial value, and isn't.
    function showOtherInitial(
        bytes32 id,
        SignedClaim calldata signed,
        PhaseProof calldata phase,
        SourceProof calldata source,
        TensorProof calldata tensor
    ) external {
        PlanTerms memory t = _requireSource(id, signed.claim, phase, source);
        if (source.source.claim != 0) revert OtherClaim(source.source.claim);
        if (source.source.slot < t.initialCount) {
            BoundInputs.requireInitial(t, source.source.slot, tensor.root, tensor.branch);
            if (tensor.root == source.source.root) revert NothingWrong();
        }
        _show(id, signed, Falsehood.OtherInitial);
    }

    /// @notice A source that no roster makes the one of the plan's rule.
    /// @param named The claim that it names; not looked at if that is an initial value.
    function showOtherRule(
        bytes32 id,
        SignedClaim calldata signed,
        PhaseProof calldata phase,
        SourceProof calldata source,
        RuleProof calldata rule,
        RoundClaim calldata named,
        PhaseProof calldata namedPhase
    ) external {
        PlanTerms memory t = _requireSource(id, signed.claim, phase, source);
        BoundInputs.requireRule(phase.phase, source.slot, rule);
        bool isPossible;
        if (source.source.claim == 0) {
            isPossible = BoundInputs.mayGiveInitial(rule.rule, signed.claim, source.source);
        } else {
            _requireNamed(t, source, named, namedPhase);
            isPossible = BoundInputs.mayGive(rule.rule, signed.claim, source.source, named, namedPhase.phase);
        }
        if (isPossible) revert NothingWrong();
        _show(id, signed, Falsehood.OtherRule);
    }

    /// @notice A source of another member, partner or route than the claim's own roster gives. What the roster of the
    /// round before decides can't be shown: no claim names it.
    /// @param named The claim that the source names.
    function showOtherMember(
        bytes32 id,
        SignedClaim calldata signed,
        PhaseProof calldata phase,
        SourceProof calldata source,
        RuleProof calldata rule,
        RoundClaim calldata named,
        RosterDocument calldata roster
    ) external {
        RoundClaim calldata c = signed.claim;
        _requireSource(id, c, phase, source);
        BoundInputs.requireRule(phase.phase, source.slot, rule);
        _requireClaim(source, named);
        _requireRoster(c, roster.text);
        if (_isGiven(rule.rule, c, named, roster)) revert NothingWrong();
        _show(id, signed, Falsehood.OtherMember);
    }

    /// @notice Two claims of one worker for one round, phase and part.
    function showTwoClaims(bytes32 id, SignedClaim calldata one, SignedClaim calldata other) external {
        RoundClaim calldata a = one.claim;
        RoundClaim calldata b = other.claim;
        _termsFor(id, a.plan);
        bool isOnePlace = a.plan == b.plan && a.round == b.round && a.phase == b.phase && a.part == b.part;
        address worker = one.author();
        if (!isOnePlace || a.digest() == b.digest() || worker != other.author()) revert NothingWrong();
        _slash(id, worker, Falsehood.TwoClaims, a.digest());
    }

    /// @notice A roster with a member that has no stake: nobody answers for what it signs. It has never put up one; or
    /// it had left, or was slashed, and the roster stands in the log behind the entries that the keeper has named since
    /// (`RoundDemands.answerLength`).
    /// @param logged The entry of the roster; not looked at if the worker has never joined.
    function showUnstakedMember(
        bytes32 id,
        uint64 round,
        address worker,
        SignedRoster calldata member,
        LoggedEntry calldata logged
    ) external {
        PlanTerms memory t = bonds.terms(id);
        bytes32 document = RosterMembers.requireMember(id, t, round, worker, member);
        WorkerBond memory b = bonds.bond(id, worker);
        if (b.standing != Standing.None) {
            // Its word is about who has gone alone.
            bool isLate = b.entries != 0 && logged.index >= b.entries && logged.head.head.plan == id;
            if (!isLate) revert NothingWrong();
            _requireSigner(logged.head.keeper(), t.coordinator);
            if (SignedText.documentOf(logged.entry) != document) revert RosterMembers.OtherRoster(document);
            _requireEntry(logged.head, logged.index, keccak256(logged.entry), logged.path);
        }
        _slash(id, t.coordinator, Falsehood.UnstakedMember, Roster(id, round, document).digest());
    }

    /// @notice Notes what a roster says of a worker, for evidence of the caller's: nodes take no transaction with two
    /// of the longest rosters.
    function noteRoster(bytes32 id, uint64 round, address worker, SignedRoster calldata signed) external {
        notedAt[_keyOf(id, round, RosterMembers.factOf(id, bonds.terms(id), round, worker, signed))] = block.number;
    }

    /// @notice What rosters of a round, or one of them, say and may not: two final or two provisional ones; a
    /// provisional one that the final one doesn't name; a list that stands twice; one seat of two members, who would
    /// both be paid for the work of one; a member of the final roster that isn't one of the provisional one: what it
    /// says to have done in the round is another one's work.
    /// @param noted Of one roster, by the caller, behind the announcement and a block before: copies are too late.
    /// @param worker Of whom the other one says something.
    function showRosters(
        bytes32 id,
        uint64 round,
        RosterFact calldata noted,
        address worker,
        SignedRoster calldata signed
    ) external {
        PlanTerms memory t = bonds.terms(id);
        Falsehood falsehood = _contradiction(noted, RosterMembers.factOf(id, t, round, worker, signed));
        _slash(id, t.coordinator, falsehood, Roster(id, round, noted.document).digest());
        // Last: who asks for it learns first to announce it.
        bytes32 key = _keyOf(id, round, noted);
        uint256 announced = announcedAt[keccak256(abi.encode(_party(), id, keccak256(_msgData())))];
        if (notedAt[key] <= announced || notedAt[key] >= block.number) revert NotNoted(key);
    }

    /// @notice Two heads of the log that have different entries at one index; of heads of one size the roots are
    /// enough.
    function showForkedLog(
        bytes32 id,
        SignedHead calldata one,
        SignedHead calldata other,
        uint64 index,
        EntryProof calldata entry,
        EntryProof calldata otherEntry
    ) external {
        PlanTerms memory t = _termsFor(id, one.head.plan);
        if (other.head.plan != one.head.plan || one.head.root == other.head.root) revert NothingWrong();
        _requireSigner(one.keeper(), t.coordinator);
        _requireSigner(other.keeper(), t.coordinator);
        if (one.head.size != other.head.size) {
            if (entry.entry == otherEntry.entry) revert NothingWrong();
            _requireEntry(one, index, entry.entry, entry.path);
            _requireEntry(other, index, otherEntry.entry, otherEntry.path);
        }
        _slash(id, t.coordinator, Falsehood.ForkedLog, one.head.root);
    }

    /// @dev Is `named` of the member that a rule gives, by the roster of `c`? A holder, and a member of the round
    /// before, isn't decided.
    function _isGiven(
        SourceRule calldata rule,
        RoundClaim calldata c,
        RoundClaim calldata named,
        RosterDocument calldata roster
    ) private pure returns (bool) {
        bytes calldata text = roster.text;
        uint256 place = rule.index;
        if (rule.giver == Giver.Route) {
            place = SignedText.routeOf(text, roster.routes, BoundInputs.partOf(rule, c), rule.index);
        } else if (rule.giver == Giver.Partner) {
            place = SignedText.partnerOf(text, roster.partners, SignedText.placeOf(text, roster.members, c.worker));
        } else if (rule.giver == Giver.Arrival && c.round != 0) {
            uint256 round = 0;
            (place, round) = SignedText.arrivalOf(text, roster.arrivals, rule.index);
            if (round != named.round) return false;
        } else if (rule.giver != Giver.Member || rule.lag != 0) {
            return true;
        }
        return SignedText.isMember(text, roster.members, place, named.worker);
    }

    function _isOfPhase(RoundClaim calldata c, Phase calldata p, bytes calldata constants) private pure returns (bool) {
        if (c.program != p.program || c.steps != p.steps || c.part >= p.parts) return false;
        if (c.firstStep != (uint256(c.round) * p.parts + c.part) * p.steps) return false;
        bool isWhole = constants.length == uint256(p.seats) * 32;
        if (!isWhole || MerkleBranch.root(constants, MerkleBranch.depth(p.seats), 0) != p.constants) {
            revert BoundInputs.NotInPlan(c.phase);
        }
        for (uint256 i = 0; i < constants.length; i += 32) {
            if (bytes32(constants[i:i + 32]) == c.constants) return true;
        }
        return false;
    }

    function _contradiction(RosterFact memory one, RosterFact memory other) private pure returns (Falsehood) {
        if (_areTwo(one, other) || _areTwo(other, one)) return Falsehood.TwoRosters;
        if (one.worker == other.worker) {
            if (_isLate(one, other) || _isLate(other, one)) return Falsehood.LateMember;
        } else if (one.seat == other.seat && one.seat != 0) {
            return Falsehood.SharedSeat;
        }
        revert NothingWrong();
    }

    /// @dev Both of a kind; one that begins the round, and another one that doesn't name it; one with two lists.
    function _areTwo(RosterFact memory one, RosterFact memory other) private pure returns (bool) {
        if (one.document == other.document) {
            return keccak256(abi.encode(one.places)) != keccak256(abi.encode(other.places));
        }
        bool areOfKind = (one.begun == SignedText.ITSELF) == (other.begun == SignedText.ITSELF);
        return areOfKind || (one.begun == SignedText.ITSELF && other.begun != one.document);
    }

    function _isLate(RosterFact memory last, RosterFact memory begun) private pure returns (bool) {
        return last.begun == begun.document && last.seat != 0 && begun.seat == 0;
    }

    function _keyOf(bytes32 id, uint64 round, RosterFact memory fact) private view returns (bytes32) {
        return keccak256(abi.encode(_party(), id, round, fact));
    }

    function _requireSource(
        bytes32 id,
        RoundClaim calldata claim,
        PhaseProof calldata phase,
        SourceProof calldata source
    ) private view returns (PlanTerms memory t) {
        t = _termsFor(id, claim.plan);
        BoundInputs.requirePhase(t, claim.phase, phase);
        BoundInputs.requireSource(claim, phase.phase.slots, source);
    }

    function _requireNamed(
        PlanTerms memory t,
        SourceProof calldata source,
        RoundClaim calldata named,
        PhaseProof calldata namedPhase
    ) private pure {
        _requireClaim(source, named);
        BoundInputs.requirePhase(t, named.phase, namedPhase);
    }

    function _requireClaim(SourceProof calldata source, RoundClaim calldata named) private pure {
        bytes32 digest = named.digest();
        if (digest != source.source.claim) revert OtherClaim(digest);
    }

    function _requireRoster(RoundClaim calldata claim, bytes calldata text) private pure {
        bytes32 document = keccak256(text);
        if (document != claim.roster) revert RosterMembers.OtherRoster(document);
    }

    function _requireEntry(SignedHead calldata signed, uint64 index, bytes32 entry, bytes32[] calldata path)
        private
        pure
    {
        if (!CheckpointLog.isIncluded(entry, index, signed.head.size, signed.head.root, path)) {
            revert NothingWrong();
        }
    }

    function _show(bytes32 id, SignedClaim calldata signed, Falsehood falsehood) private {
        _slash(id, signed.author(), falsehood, signed.claim.digest());
    }

    function _slash(bytes32 id, address worker, Falsehood falsehood, bytes32 evidence) private {
        address prover = _party();
        bonds.requireAccusable(id, worker);
        // Last: who asks for it without an announcement learns first that nothing is wrong.
        _requireAnnounced(id, keccak256(_msgData()));
        emit Shown(id, worker, prover, falsehood, evidence);
        if (!bonds.slash(id, worker, prover, 0)) revert NothingWrong();
    }
}
