// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch, TAG_LEAF} from "../commitments/MerkleBranch.sol";
import {IStakeVault} from "../incentives/IStakeVault.sol";
import {TermsRules} from "../market/TermsRules.sol";
import {BoundInputs} from "./BoundInputs.sol";
import {IWorkerBonds, Standing, WorkerBond} from "./IWorkerBonds.sol";
import {PhaseProof, PlanTerms} from "./PlanTypes.sol";
import {ISettlements} from "./RoundDesk.sol";
import {RoundSignatures} from "./RoundSignatures.sol";
import {RoundClaim, SignedHead} from "./RoundTypes.sol";
import {LoggedClaim, RoundDemand, TimedDemands} from "./TimedDemands.sol";

/// @notice One settlement of a plan.
struct Settlement {
    uint64 linesUntil; // last second in which workers count their claims
    uint64 closes; // last second in which that is disputed
    uint32 lines; // that are neither paid nor void
    bool paying; // the first was paid: the sum is fixed
    uint256 units; // sum of the lines that count
    uint256 left; // of the pay
}

/// @notice What a worker counts in a settlement.
struct Line {
    uint256 units;
    uint32 count; // of claims
    bool isOver; // paid or void
    bytes32 root; // tree over the claims that are counted
}

/// @notice What a worker owns of a training: its share is `units` of all of the plan.
struct Ownership {
    uint128 counted; // place behind the last claim that was counted
    uint128 units; // of proven work
}

/// @title RoundShares
/// @notice Pay and ownership by proven work (docs/spec/rounds.md, "Shares"). In a settlement each worker counts its own
/// claims; anybody may demand to see one; what nobody disputes is paid, and owned.
/// @dev A plan's pot in the vault holds what its settlements haven't paid. No loop over workers.
contract RoundShares is ISettlements, TimedDemands {
    using RoundSignatures for RoundClaim;

    /// @notice A settlement is open for lines.
    event SettlementOpened(bytes32 indexed id, uint32 indexed settlement, uint64 linesUntil, uint64 closes);
    /// @notice A worker counts its claims: for each `u64 round || u32 phase || u32 part || claim || u128 units`.
    event LinePosted(
        bytes32 indexed id, uint32 indexed settlement, address indexed worker, uint256 units, bytes claims
    );
    /// @notice The line of a slashed worker counts for nothing.
    event LineVoid(bytes32 indexed id, uint32 indexed settlement, address indexed worker);
    /// @notice A line is paid, and its units are owned.
    event LinePaid(
        bytes32 indexed id, uint32 indexed settlement, address indexed worker, uint256 amount, uint256 units
    );
    /// @notice What no line gets has returned to the submitter.
    event RemainderReturned(bytes32 indexed id, uint32 indexed settlement, address submitter, uint256 amount);
    /// @notice A claim that a line counts is demanded.
    event CountedDemanded(
        bytes32 indexed id, bytes32 indexed content, uint32 indexed settlement, address worker, uint32 index
    );

    /// @notice The answer: a head that holds the claim.
    event CountedShown(bytes32 indexed id, bytes32 indexed claim, uint64 index, SignedHead head);

    /// @notice It is too early, or all settlements have been.
    error NotOpenable(uint256 from);
    /// @notice The line is none: nothing in it, out of order, counted before, or posted already.
    error BadLine(uint256 index);
    /// @notice There is nothing to pay or to return, or no such line.
    error NothingToSettle();
    /// @notice What is shown is not what the line counts.
    error NotCounted(uint32 index);

    /// @notice Bytes of one claim in a line.
    uint256 public constant CLAIM_BYTES = 64;

    mapping(bytes32 id => Settlement[]) private _settlements;
    mapping(bytes32 id => mapping(uint32 settlement => mapping(address worker => Line))) private _lines;
    mapping(bytes32 id => mapping(address worker => Ownership)) private _owned;
    /// @notice Units of all workers of a plan together.
    mapping(bytes32 id => uint256) public totalUnits;
    /// @notice When the last settlement was opened.
    mapping(bytes32 id => uint256) public openedAt;

    constructor(IStakeVault vault_) TimedDemands(vault_) {}

    /// @notice Opens the next settlement: the coordinator when it likes, anybody a period after the last one.
    function open(bytes32 id) external {
        PlanTerms memory t = bonds.terms(id);
        uint32 number = uint32(_settlements[id].length);
        if (number >= t.settlements) revert NotOpenable(type(uint256).max);
        if (openedAt[id] == 0) openedAt[id] = bonds.registeredAt(id);
        uint256 from = openedAt[id] + t.period;
        if (block.timestamp < from && _party() != t.coordinator) revert NotOpenable(from);
        openedAt[id] = block.timestamp;
        uint64 linesUntil = uint64(block.timestamp) + t.lineWindow;
        uint64 closes = linesUntil + t.lineWindow;
        _settlements[id].push(Settlement(linesUntil, closes, 0, false, 0, t.pay));
        emit SettlementOpened(id, number, linesUntil, closes);
    }

    /// @notice The caller counts claims of its own that the log holds and no earlier line has counted, in order of
    /// round, phase and part. A false line loses its stake.
    function post(bytes32 id, uint32 number, bytes calldata claims) external {
        Settlement storage s = _existing(id, number);
        if (block.timestamp > s.linesUntil) revert DeadlinePassed(s.linesUntil);
        address worker = _party();
        _requireStaying(id, worker, s.closes);
        Line storage line = _lines[id][number][worker];
        uint256 count = claims.length / CLAIM_BYTES;
        if (line.count != 0 || count == 0 || claims.length % CLAIM_BYTES != 0 || count > type(uint32).max) {
            revert BadLine(count);
        }
        Ownership storage owned = _owned[id][worker];
        (bytes32 root, uint256 units, uint128 next) = _counted(claims, count, owned.counted);
        if (units >= TermsRules.MAX_AMOUNT) revert BadLine(count);
        (line.units, line.count, line.root) = (units, uint32(count), root);
        owned.counted = next;
        ++s.lines;
        s.units += units;
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
        return _demand(bonds.terms(id), id, worker, content, mostBond);
    }

    /// @notice Shows it: the worker has signed it, the log holds it, and it counts as the plan says. Anybody, for the
    /// worker.
    function answerCounted(
        RoundDemand calldata d,
        uint32 number,
        uint32 index,
        bytes32[] calldata branch,
        RoundClaim calldata claim,
        PhaseProof calldata phase,
        LoggedClaim calldata logged
    ) external {
        PlanTerms memory t = _termsFor(d.id, claim.plan);
        BoundInputs.requirePhase(t, claim.phase, phase);
        bytes32 digest = claim.digest();
        bytes32 leaf =
            keccak256(abi.encodePacked(TAG_LEAF, claim.round, claim.phase, claim.part, digest, phase.phase.units));
        Line storage line = _lines[d.id][number][d.accused];
        if (MerkleBranch.climbIn(leaf, index, branch, line.count) != line.root) revert NotCounted(index);
        if (claim.worker != d.accused) revert OtherSigner(claim.worker);
        _requireLogged(t, logged, digest, d.accused);
        emit CountedShown(d.id, digest, logged.index, logged.head);
        _answer(d, _content(number, index));
    }

    /// @notice Takes the line of a slashed worker out, while it counts. Anybody.
    function void(bytes32 id, uint32 number, address worker) external {
        Settlement storage s = _existing(id, number);
        Line storage line = _lines[id][number][worker];
        bool isSlashed = bonds.bond(id, worker).standing == Standing.Slashed;
        if (s.paying || line.count == 0 || line.isOver || !isSlashed) revert NothingToSettle();
        line.isOver = true;
        s.units -= line.units;
        emit LineVoid(id, number, worker);
        if (--s.lines == 0) _return(id, number, s);
    }

    /// @notice Pays a line that stands, and all that is left to the submitter behind the last. Anybody. A worker that
    /// was slashed behind the first payment gets nothing, and so does everybody else of its part.
    // Vault and desks are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-events
    function settle(bytes32 id, uint32 number, address worker) external {
        Settlement storage s = _existing(id, number);
        if (block.timestamp <= s.closes) revert DeadlineNotPassed(s.closes);
        Line storage line = _lines[id][number][worker];
        if (line.count == 0 || line.isOver) revert NothingToSettle();
        WorkerBond memory b = bonds.bond(id, worker);
        if (b.open != 0 && b.standing != Standing.Slashed) revert IWorkerBonds.AccusationsOpen(b.open);
        line.isOver = true;
        s.paying = true;
        if (b.standing == Standing.Slashed) {
            emit LineVoid(id, number, worker);
        } else {
            uint256 amount = payOf(bonds.terms(id).pay, line.units, s.units);
            s.left -= amount;
            _owned[id][worker].units += uint128(line.units);
            totalUnits[id] += line.units;
            emit LinePaid(id, number, worker, amount, line.units);
            vault.pay(id, worker, amount);
        }
        if (--s.lines == 0) _return(id, number, s);
    }

    /// @notice Returns the pay of a settlement in which nobody has counted anything. Anybody.
    function close(bytes32 id, uint32 number) external {
        Settlement storage s = _existing(id, number);
        if (block.timestamp <= s.closes) revert DeadlineNotPassed(s.closes);
        if (s.lines != 0 || s.left == 0) revert NothingToSettle();
        _return(id, number, s);
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

    /// @dev Root, units and end of a line whose claims stand in order, from place `next` on.
    function _counted(bytes calldata claims, uint256 count, uint128 next)
        private
        pure
        returns (bytes32 root, uint256 units, uint128 end)
    {
        for (uint256 i = 0; i < count; ++i) {
            bytes calldata claim = claims[CLAIM_BYTES * i:CLAIM_BYTES * (i + 1)];
            uint128 place = uint128(bytes16(claim));
            if (place < next) revert BadLine(i);
            next = place + 1;
            units += uint128(bytes16(claim[48:]));
        }
        return (BoundInputs.leavesRoot(claims, CLAIM_BYTES), units, next);
    }

    function _return(bytes32 id, uint32 number, Settlement storage s) private {
        // As long as lines can still come the pay waits for them; `close` returns it.
        if (block.timestamp <= s.linesUntil) return;
        uint256 amount = s.left;
        s.left = 0;
        address submitter = bonds.submitterOf(id);
        emit RemainderReturned(id, number, submitter, amount);
        vault.pay(id, submitter, amount);
    }

    function _requireStaying(bytes32 id, address worker, uint64 closes) private view {
        bonds.requireAccusable(id, worker);
        // A log without a stake behind it shows nothing.
        address keeper = bonds.terms(id).coordinator;
        Standing standing = bonds.bond(id, keeper).standing;
        if (standing == Standing.Slashed || standing == Standing.Left) {
            revert IWorkerBonds.WrongStanding(keeper, standing);
        }
        WorkerBond memory b = bonds.bond(id, worker);
        if (b.standing == Standing.Leaving && b.until < closes) revert DeadlinePassed(b.until);
    }

    function _existing(bytes32 id, uint32 number) private view returns (Settlement storage) {
        if (number >= _settlements[id].length) revert NothingToSettle();
        return _settlements[id][number];
    }

    function _content(uint32 number, uint32 index) private pure returns (bytes32) {
        return keccak256(abi.encode("counted", number, index));
    }
}
