// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch, TAG_LEAF} from "../commitments/MerkleBranch.sol";
import {IStakeVault} from "../incentives/IStakeVault.sol";
import {TermsRules} from "../market/TermsRules.sol";
import {BoundInputs} from "./BoundInputs.sol";
import {IWorkerBonds, Standing, WorkerBond} from "./IWorkerBonds.sol";
import {Phase, PhaseProof, PlanTerms} from "./PlanTypes.sol";
import {ISettlements} from "./RoundDesk.sol";
import {RosterMembers, SignedRoster} from "./RosterMembers.sol";
import {RoundSignatures} from "./RoundSignatures.sol";
import {RoundClaim, SignedHead} from "./RoundTypes.sol";
import {LoggedEntry, RoundDemand, TimedDemands} from "./TimedDemands.sol";

/// @notice One settlement of a plan.
struct Settlement {
    uint64 linesUntil; // last second in which workers count their claims
    uint64 closes; // last second in which that is disputed
    uint128 units; // sum of the lines that count: it only falls when lines are closed
    uint128 returned; // of the pay, as no work was counted for it
}

/// @notice What a worker counts in a settlement.
struct Line {
    uint128 units; // zero if it is void
    uint128 paid;
    uint32 count; // of claims
    bool isOwned; // the first payment was made: the units are owned, and stay in the sum
    bytes32 root; // tree over the claims that are counted
}

/// @notice A phase of which a line counts claims, by its index.
struct CountedPhase {
    uint32 index;
    PhaseProof proof;
}

/// @notice What shows that a line counts a claim by right.
struct CountedProof {
    bytes32[] branch; // of the claim in the line
    PhaseProof phase; // of the claim
    SignedRoster member; // its author in the roster that it names
    LoggedEntry logged;
}

/// @notice What a worker owns of a training: its share is `units` of all of the plan.
struct Ownership {
    uint128 counted; // place behind the last claim that was counted
    uint128 units; // of proven work
}

/// @title RoundShares
/// @notice Pay and ownership by proven work (docs/spec/rounds.md, "Shares"). In a settlement each worker counts its own
/// claims; anybody may demand to see one; what nobody disputes is paid, and owned.
/// @dev A plan's pot in the vault holds what its settlements haven't paid, rounding included. No loop over workers.
contract RoundShares is ISettlements, TimedDemands {
    using RoundSignatures for RoundClaim;

    /// @notice A settlement is open for lines.
    event SettlementOpened(bytes32 indexed id, uint32 indexed settlement, uint64 linesUntil, uint64 closes);
    /// @notice A worker counts its claims: for each `u64 round || u32 phase || u32 part || claim`.
    event LinePosted(
        bytes32 indexed id, uint32 indexed settlement, address indexed worker, uint256 units, bytes claims
    );
    /// @notice The line of a slashed worker counts for nothing.
    event LineVoid(bytes32 indexed id, uint32 indexed settlement, address indexed worker);
    /// @notice A line is paid what it is due by now; by the first payment its units are owned.
    event LinePaid(
        bytes32 indexed id, uint32 indexed settlement, address indexed worker, uint256 amount, uint256 units
    );
    /// @notice What no work was counted for: to the submitter, or to the treasury if the coordinator has fallen.
    event RemainderPaid(bytes32 indexed id, uint32 indexed settlement, address receiver, uint256 amount);
    /// @notice A claim that a line counts is demanded.
    event CountedDemanded(
        bytes32 indexed id, bytes32 indexed content, uint32 indexed settlement, address worker, uint32 index
    );

    /// @notice The answer: a head that holds the claim.
    event CountedShown(bytes32 indexed id, bytes32 indexed claim, uint64 index, SignedHead head);

    /// @notice It is too early, or all settlements have been.
    error NotOpenable(uint256 from);
    /// @notice The line is none: nothing in it, out of order, no place of the plan, counted before, or posted already.
    error BadLine(uint256 index);
    /// @notice There is nothing to pay or to return, or no such line.
    error NothingToSettle();
    /// @notice What is shown is not what the line counts.
    error NotCounted(uint32 index);

    /// @dev Bytes of one claim in a line.
    uint256 private constant CLAIM_BYTES = 48;
    /// @dev When the settlement behind the last one is opened.
    uint256 private constant NEVER = type(uint64).max;

    mapping(bytes32 id => Settlement[]) private _settlements;
    mapping(bytes32 id => mapping(uint32 settlement => mapping(address worker => Line))) private _lines;
    mapping(bytes32 id => mapping(address worker => Ownership)) private _owned;
    /// @notice Units of all workers of a plan together.
    mapping(bytes32 id => uint256) public totalUnits;
    /// @notice When the last settlement was opened.
    mapping(bytes32 id => uint256) public openedAt;

    constructor(IStakeVault vault_) TimedDemands(vault_) {}

    /// @notice Opens the next settlement, a period after the one before. Anybody. The first one behind a coordinator's
    /// fall is the last: it pays the work that was done, and the treasury gets what the others would have paid.
    function open(bytes32 id) external {
        PlanTerms memory t = bonds.terms(id);
        uint32 number = uint32(_settlements[id].length);
        if (openedAt[id] == 0) openedAt[id] = bonds.registeredAt(id);
        uint256 from = number < t.settlements ? openedAt[id] + t.period : NEVER;
        if (block.timestamp < from) revert NotOpenable(from);
        bool fell = _hasFallen(id, t);
        openedAt[id] = fell ? NEVER : block.timestamp;
        uint64 linesUntil = uint64(block.timestamp) + t.lineWindow;
        uint64 closes = linesUntil + t.lineWindow;
        _settlements[id].push(Settlement(linesUntil, closes, 0, 0));
        emit SettlementOpened(id, number, linesUntil, closes);
        if (fell) _payRemainder(id, number, bonds.treasury(), uint256(t.pay) * (t.settlements - number - 1));
    }

    /// @notice The caller counts claims of its own that the log holds and no earlier line has counted, in order of
    /// round, phase and part. A false line loses its stake.
    /// @param phases Those that the claims are of: what a claim counts for is the plan's word, not the worker's.
    function post(bytes32 id, uint32 number, bytes calldata claims, CountedPhase[] calldata phases) external {
        Settlement storage s = _existing(id, number);
        if (block.timestamp > s.linesUntil) revert DeadlinePassed(s.linesUntil);
        address worker = _party();
        PlanTerms memory t = bonds.terms(id);
        bonds.requireStaying(id, worker, s.closes + t.answerWindow + t.lineWindow);
        Line storage line = _lines[id][number][worker];
        if (line.count != 0) revert BadLine(line.count);
        Ownership storage owned = _owned[id][worker];
        uint256 units;
        (units, owned.counted) = _counted(t, claims, phases, owned.counted);
        (line.units, line.count) = (uint128(units), uint32(claims.length / CLAIM_BYTES));
        line.root = BoundInputs.leavesRoot(claims, CLAIM_BYTES);
        s.units += uint128(units);
        emit LinePosted(id, number, worker, units, claims);
    }

    /// @notice Demands to see a claim that a line counts.
    function demandCounted(bytes32 id, uint32 number, address worker, uint32 index, uint256 mostBond)
        external
        returns (bytes32 key)
    {
        Settlement storage s = _existing(id, number);
        if (block.timestamp > s.closes) revert DeadlinePassed(s.closes);
        if (index >= _lines[id][number][worker].count) revert NotCounted(index);
        bytes32 content = _content(number, index);
        emit CountedDemanded(id, content, number, worker, index);
        return _demand(bonds.terms(id), id, worker, content, mostBond, ROSTER_ANSWER_GAS);
    }

    /// @notice Shows it: the worker has signed it, the plan leaves it to this worker by a roster that the coordinator
    /// has signed, and the log holds it. Anybody, for the worker.
    function answerCounted(
        RoundDemand calldata d,
        uint32 number,
        uint32 index,
        RoundClaim calldata claim,
        CountedProof calldata proof
    ) external {
        bytes32 digest = claim.digest();
        bytes32 leaf = keccak256(abi.encodePacked(TAG_LEAF, claim.round, claim.phase, claim.part, digest));
        Line storage line = _lines[d.id][number][d.accused];
        if (MerkleBranch.climbIn(leaf, index, proof.branch, line.count) != line.root) revert NotCounted(index);
        _requireSigner(claim.worker, d.accused);
        PlanTerms memory t = _termsFor(d.id, claim.plan);
        BoundInputs.requirePhase(t, claim.phase, proof.phase);
        // A copy of another member's claim is true: no dispute would take what it counts for.
        _showRoster(d.id, t, claim, proof.member);
        if (!RosterMembers.isAuthor(proof.phase.phase, claim, proof.member.text, proof.member.places)) {
            revert NotCounted(index);
        }
        _requireLogged(d.id, proof.logged, digest, d.accused);
        emit CountedShown(d.id, digest, proof.logged.index, proof.logged.head);
        _answer(d, _content(number, index), _owed(t, d, proof.member.text));
    }

    /// @notice Takes the line of a slashed worker out; or pays a line what it is due by now, which grows when others
    /// are taken out: call it again then. Anybody. A line waits for the accusations of its worker, and for no others;
    /// and so that what its worker has shown can be refuted.
    /// @dev What a worker that was slashed behind its first payment would get besides, the treasury gets.
    // Vault and desks are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-events
    function settle(bytes32 id, uint32 number, address worker) external {
        Settlement storage s = _existing(id, number);
        Line storage line = _lines[id][number][worker];
        WorkerBond memory b = bonds.bond(id, worker);
        bool isSlashed = b.standing == Standing.Slashed;
        if (line.units == 0) revert NothingToSettle();
        if (isSlashed && !line.isOwned) {
            s.units -= line.units;
            line.units = 0;
            emit LineVoid(id, number, worker);
            return;
        }
        PlanTerms memory t = bonds.terms(id);
        // What is demanded of what the last answer about the line has shown can be answered, and refuted; else a demand
        // in each window would delay it for ever.
        uint64 closes = s.closes + 2 * (t.answerWindow + t.lineWindow);
        if (b.quiet < closes) closes = s.closes > b.quiet ? s.closes : b.quiet;
        if (block.timestamp <= closes) revert DeadlineNotPassed(closes);
        if (b.open != 0 && !isSlashed) revert IWorkerBonds.AccusationsOpen(b.open);
        uint256 amount = payOf(t.pay, line.units, s.units > t.work ? s.units : t.work) - line.paid;
        if (amount == 0 && line.isOwned) revert NothingToSettle();
        if (!line.isOwned) {
            line.isOwned = true;
            _owned[id][worker].units += line.units;
            totalUnits[id] += line.units;
        }
        line.paid += uint128(amount);
        emit LinePaid(id, number, worker, amount, line.units);
        vault.pay(id, isSlashed ? bonds.treasury() : worker, amount);
    }

    /// @notice Pays back the part of a settlement for which no work was counted; again, when lines were taken out.
    /// Anybody. The submitter gets it, but for that of a coordinator that has fallen: both may be one.
    function close(bytes32 id, uint32 number) external {
        Settlement storage s = _existing(id, number);
        if (block.timestamp <= s.closes) revert DeadlineNotPassed(s.closes);
        PlanTerms memory t = bonds.terms(id);
        uint256 amount = s.units < t.work ? payOf(t.pay, t.work - s.units, t.work) - s.returned : 0;
        if (amount == 0) revert NothingToSettle();
        s.returned += uint128(amount);
        _payRemainder(id, number, _hasFallen(id, t) ? bonds.treasury() : bonds.submitterOf(id), amount);
    }

    /// @notice What a line is paid: `pay * units / total`, rounded down. So whoever splits its work among several keys
    /// gets no more.
    function payOf(uint256 pay, uint256 units, uint256 total) public pure returns (uint256) {
        // No product of two amounts below 2^112 and 2^128 overflows.
        return total == 0 ? 0 : pay * units / total;
    }

    /// @notice A settlement; all of them are numbered from 0.
    function settlementOf(bytes32 id, uint32 number) external view returns (Settlement memory) {
        return _existing(id, number);
    }

    /// @inheritdoc ISettlements
    function settlements(bytes32 id) external view returns (uint256) {
        return _settlements[id].length;
    }

    /// @notice A worker's line; zeros if there is none.
    function lineOf(bytes32 id, uint32 number, address worker) external view returns (Line memory) {
        return _lines[id][number][worker];
    }

    /// @notice What a worker owns of a training.
    function ownershipOf(bytes32 id, address worker) external view returns (Ownership memory) {
        return _owned[id][worker];
    }

    /// @dev Units and end of a line whose claims are places of the plan, in order from place `next` on.
    function _counted(PlanTerms memory t, bytes calldata claims, CountedPhase[] calldata phases, uint128 next)
        private
        pure
        returns (uint256 units, uint128 end)
    {
        // By phase, its units above its parts. One that isn't shown has none, and neither has one with claims behind
        // the last step that a game decides about.
        uint256[] memory known = new uint256[](t.phaseCount);
        for (uint256 i = 0; i < phases.length; ++i) {
            Phase calldata phase = phases[i].proof.phase;
            BoundInputs.requirePhase(t, phases[i].index, phases[i].proof);
            if (uint256(t.rounds) * phase.parts * phase.steps > 2 ** 32) continue;
            known[phases[i].index] = uint256(phase.units) << 32 | phase.parts;
        }
        if (claims.length == 0 || claims.length % CLAIM_BYTES != 0) revert BadLine(claims.length);
        for (uint256 i = 0; i < claims.length; i += CLAIM_BYTES) {
            uint128 place = uint128(bytes16(claims[i:i + 16]));
            uint256 phase = uint32(place >> 32);
            if (place < next || place >> 64 >= t.rounds || phase >= known.length) revert BadLine(i / CLAIM_BYTES);
            if (uint32(place) >= uint32(known[phase])) revert BadLine(i / CLAIM_BYTES);
            next = place + 1;
            units += known[phase] >> 32;
        }
        if (units >= TermsRules.MAX_AMOUNT) revert BadLine(claims.length);
        return (units, next);
    }

    function _payRemainder(bytes32 id, uint32 number, address receiver, uint256 amount) private {
        emit RemainderPaid(id, number, receiver, amount);
        vault.pay(id, receiver, amount);
    }

    function _hasFallen(bytes32 id, PlanTerms memory t) private view returns (bool) {
        return bonds.bond(id, t.coordinator).standing == Standing.Slashed;
    }

    function _existing(bytes32 id, uint32 number) private view returns (Settlement storage) {
        if (number >= _settlements[id].length) revert NothingToSettle();
        return _settlements[id][number];
    }

    function _content(uint32 number, uint32 index) private pure returns (bytes32) {
        return keccak256(abi.encode("counted", number, index));
    }
}
