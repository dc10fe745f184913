// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStakeVault} from "../incentives/IStakeVault.sol";
import {Split} from "../market/Split.sol";
import {TermsRules} from "../market/TermsRules.sol";
import {IWorkerBonds, Standing, WorkerBond} from "./IWorkerBonds.sol";
import {PlanTerms} from "./PlanTypes.sol";
import {ISettlements, RoundDesk, RoundDesks} from "./RoundDesk.sol";

/// @title WorkerBonds
/// @notice See `IWorkerBonds`.
contract WorkerBonds is IWorkerBonds, RoundDesk {
    /// @notice Settlements of one plan.
    uint32 public constant MAX_SETTLEMENTS = 2 ** 16;

    /// @inheritdoc IWorkerBonds
    address public immutable treasury;

    /// @notice Pays what was escrowed.
    ISettlements public shares;
    mapping(bytes32 id => PlanTerms) private _terms;
    /// @inheritdoc IWorkerBonds
    mapping(bytes32 id => address) public submitterOf;
    /// @inheritdoc IWorkerBonds
    mapping(bytes32 id => uint256) public registeredAt;
    mapping(bytes32 id => mapping(address worker => WorkerBond)) private _bonds;

    /// @param treasury_ Gets what slashed stakes and lost bonds leave; an address without a key burns it.
    constructor(IStakeVault vault_, address treasury_) RoundDesk(vault_) {
        if (treasury_ == address(0)) revert NotAllowed(treasury_);
        treasury = treasury_;
    }

    function _wired(RoundDesks calldata desks) internal override {
        shares = desks.shares;
    }

    /// @inheritdoc IWorkerBonds
    function register(PlanTerms calldata t) external returns (bytes32 id) {
        _check(t);
        address submitter = _party();
        id = idOf(submitter, t);
        if (submitterOf[id] != address(0)) revert AlreadyRegistered(id);
        (submitterOf[id], registeredAt[id]) = (submitter, block.timestamp);
        _terms[id] = t;
        emit Registered(id, t.plan, submitter, t);
        uint256 escrow = uint256(t.pay) * t.settlements;
        vault.lock(id, submitter, escrow);
        vault.forfeit(id, submitter, escrow);
        vault.move(id, address(shares), id, escrow);
    }

    /// @inheritdoc IWorkerBonds
    function join(bytes32 id) external {
        PlanTerms storage t = _existing(id);
        address worker = _party();
        WorkerBond storage b = _bonds[id][worker];
        if (b.standing != Standing.None && b.standing != Standing.Left) revert WrongStanding(worker, b.standing);
        // Nobody works for a keeper that doesn't answer for its log.
        Standing keeper = _bonds[id][t.coordinator].standing;
        if (worker != t.coordinator && keeper != Standing.Joined) revert WrongStanding(t.coordinator, keeper);
        (b.standing, b.until, b.entries) = (Standing.Joined, 0, 0);
        b.stake = worker == t.coordinator ? t.keeperStake : t.stake;
        emit Joined(id, worker, b.stake);
        vault.lock(id, worker, b.stake);
    }

    /// @inheritdoc IWorkerBonds
    function startLeaving(bytes32 id) external {
        PlanTerms storage t = _existing(id);
        address worker = _party();
        WorkerBond storage b = _bonds[id][worker];
        if (b.standing != Standing.Joined) revert WrongStanding(worker, b.standing);
        // The keeper answers for its log until everybody could count its work.
        if (worker == t.coordinator && shares.settlements(id) < t.settlements) revert SettlementsAhead(id);
        (b.standing, b.until) = (Standing.Leaving, uint64(block.timestamp) + t.leaveDelay);
        // What is demanded until then can be answered and refuted; demands behind that keep nobody.
        b.last = b.until + t.answerWindow + t.lineWindow;
        emit LeaveStarted(id, worker, b.until);
    }

    /// @inheritdoc IWorkerBonds
    function depart(bytes32 id, address worker) external {
        WorkerBond storage b = _bonds[id][worker];
        if (b.standing != Standing.Leaving) revert WrongStanding(worker, b.standing);
        if (block.timestamp <= b.until) revert TooEarly(b.until);
        if (b.open != 0) revert AccusationsOpen(b.open);
        b.standing = Standing.Left;
        emit Departed(id, worker);
        vault.unlock(id, worker, b.stake);
    }

    /// @inheritdoc IWorkerBonds
    function accuse(bytes32 id, address worker) external onlyDesk returns (uint32 earlier) {
        requireAccusable(id, worker);
        WorkerBond storage b = _bonds[id][worker];
        earlier = b.accusations++;
        emit Accused(id, worker, ++b.open);
    }

    /// @inheritdoc IWorkerBonds
    function conclude(bytes32 id, address worker, bool answered) external onlyDesk {
        WorkerBond storage b = _bonds[id][worker];
        emit Accused(id, worker, --b.open);
        if (!answered) return;
        b.quiet = uint64(block.timestamp) + _terms[id].lineWindow;
        if (b.standing == Standing.Leaving && b.until < b.quiet) b.until = b.quiet < b.last ? b.quiet : b.last;
    }

    /// @inheritdoc IWorkerBonds
    function tell(bytes32 id, address worker, uint64 entries) external onlyDesk {
        WorkerBond storage b = _bonds[id][worker];
        bool isGone = b.standing == Standing.Left || b.standing == Standing.Slashed;
        // Of an empty log, too: it isn't asked again.
        if (isGone && b.entries == 0) b.entries = entries == 0 ? 1 : entries;
    }

    /// @inheritdoc IWorkerBonds
    function slash(bytes32 id, address worker, address prover, uint256 risked) external onlyDesk returns (bool) {
        WorkerBond storage b = _bonds[id][worker];
        if (b.standing == Standing.Slashed) return false;
        // Nobody departs while an accusation is open, and what needs none has asked `requireAccusable`.
        if (b.standing != Standing.Joined && b.standing != Standing.Leaving) revert WrongStanding(worker, b.standing);
        b.standing = Standing.Slashed;
        uint256 reward = Split.objectorReward(b.stake, risked, 0);
        uint256 rest = b.stake - reward;
        emit Slashed(id, worker, prover, reward, rest);
        vault.forfeit(id, worker, b.stake);
        vault.pay(id, prover, reward);
        vault.pay(id, treasury, rest);
        return true;
    }

    /// @inheritdoc IWorkerBonds
    function requireAccusable(bytes32 id, address worker) public view {
        WorkerBond storage b = _bonds[id][worker];
        bool isLate = b.standing == Standing.Leaving && block.timestamp > b.until;
        if (isLate || (b.standing != Standing.Joined && b.standing != Standing.Leaving)) {
            revert WrongStanding(worker, b.standing);
        }
    }

    /// @inheritdoc IWorkerBonds
    function requireStaying(bytes32 id, address worker, uint64 until) external view {
        WorkerBond storage b = _bonds[id][worker];
        bool stays = b.standing == Standing.Joined || (b.standing == Standing.Leaving && b.until >= until);
        if (!stays) revert WrongStanding(worker, b.standing);
    }

    /// @inheritdoc IWorkerBonds
    function terms(bytes32 id) external view returns (PlanTerms memory) {
        return _existing(id);
    }

    /// @inheritdoc IWorkerBonds
    function bond(bytes32 id, address worker) external view returns (WorkerBond memory) {
        return _bonds[id][worker];
    }

    /// @notice The id of a plan. Whoever registers the same document with other terms registers another plan.
    function idOf(address submitter, PlanTerms calldata t) public view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, address(this), submitter, t));
    }

    function _existing(bytes32 id) private view returns (PlanTerms storage t) {
        t = _terms[id];
        if (t.plan == 0) revert UnknownPlan(id);
    }

    function _check(PlanTerms calldata t) private pure {
        _require(t.plan != 0, "plan");
        _require(t.phases != 0 && t.phaseCount > 0, "phases");
        _require((t.initial == 0) == (t.initialCount == 0), "initial");
        _require(t.rounds > 0, "rounds");
        _require(t.coordinator != address(0), "coordinator");
        _require(t.keeperStake >= t.stake && t.keeperStake <= TermsRules.MAX_AMOUNT, "keeperStake");
        // A keeper that has fallen still signs: for those that it favors, in the settlement that is open and in the
        // last one. What these pay is less than what it loses, even if a friend has brought it down.
        _require(t.keeperStake >= 3 * uint256(t.pay), "keeperStake");
        // Who is right about a claim wins no less than it puts up for a replay: `Split.objectionBond` is twice the
        // price.
        _require(t.stake > 0 && Split.down(t.stake, Split.OBJECTOR_OF_SOLVER_STAKE) >= 2 * uint256(t.price), "stake");
        _require(t.pay <= TermsRules.MAX_AMOUNT, "pay");
        _require(t.work > 0 && t.work <= TermsRules.MAX_AMOUNT, "work");
        _require(t.settlements <= MAX_SETTLEMENTS && (t.settlements > 0 || t.pay == 0), "settlements");
        _checkWindow(t.period, "period");
        _checkWindow(t.lineWindow, "lineWindow");
        _checkWindow(t.answerWindow, "answerWindow");
        // One settlement at a time: what is demanded about it is answered, or not, before the next one is open.
        _require(t.period >= 2 * uint256(t.lineWindow) + t.answerWindow, "period");
        // Who has counted its claims stays until that, and what was shown of them, can't be disputed any more.
        _require(t.leaveDelay >= 3 * uint256(t.lineWindow) + t.answerWindow, "leaveDelay");
        _require(t.leaveDelay <= 4 * TermsRules.MAX_WINDOW, "leaveDelay");
        _require(TermsRules.MIN_CLOCK <= t.clock && t.clock <= TermsRules.MAX_CLOCK, "clock");
    }

    function _checkWindow(uint32 window, string memory field) private pure {
        _require(TermsRules.MIN_WINDOW <= window && window <= TermsRules.MAX_WINDOW, field);
    }

    function _require(bool holds, string memory field) private pure {
        if (!holds) revert InvalidPlan(field);
    }
}
