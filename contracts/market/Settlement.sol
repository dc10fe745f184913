// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStakeVault} from "../incentives/IStakeVault.sol";
import {ISettlement} from "./ISettlement.sol";
import {ObjectionCount} from "./IObjections.sol";
import {MarketDesk} from "./MarketDesk.sol";
import {Split as Shares} from "./Split.sol";
import {Outcome, Status, Task, Terms} from "./TaskTypes.sol";
import {TermsRules} from "./TermsRules.sol";

/// @title Settlement
/// @notice See `ISettlement`.
/// @dev The escrow of a task is the submitter's money, locked under the task's id; a pot of that id is empty between
/// calls.
contract Settlement is ISettlement, MarketDesk {
    /// @notice Gets its share of prices.
    address public immutable treasury;

    /// @dev The pot of the jackpot that pays and reserves.
    bytes32 private constant FUND = "fund";

    /// @dev Who has said that the present solver doesn't serve. Their bonds are locked here under the task's id: they
    /// are neither its submitter nor its solver.
    mapping(bytes32 taskId => address[2]) private _unserved;

    /// @param treasury_ Must be able to withdraw from the vault.
    constructor(IStakeVault vault_, address treasury_) MarketDesk(vault_) {
        if (treasury_ == address(0)) revert NotAllowed(treasury_);
        treasury = treasury_;
    }

    /// @inheritdoc ISettlement
    function hold(bytes32 taskId, address submitter, Terms calldata terms)
        external
        only(address(registry))
        returns (uint256 escrow)
    {
        escrow = escrowOf(terms);
        vault.lock(taskId, submitter, escrow);
    }

    /// @inheritdoc ISettlement
    function holdStake(bytes32 taskId, address solver, uint256 stake) external only(address(registry)) {
        vault.lock(taskId, solver, stake);
    }

    /// @inheritdoc ISettlement
    function refund(bytes32 taskId) external only(address(registry)) {
        _refund(taskId, registry.task(taskId).submitter);
    }

    /// @inheritdoc ISettlement
    function payProfiler(bytes32 taskId, address profiler) external only(address(profiles)) {
        uint256 fee = registry.terms(taskId).verifierFee;
        if (fee == 0) return;
        vault.forfeit(taskId, registry.task(taskId).submitter, fee);
        vault.pay(taskId, profiler, fee);
    }

    /// @inheritdoc ISettlement
    function split(bytes32 taskId, uint256 amount, address party, uint256 points) external onlyDesk {
        _split(taskId, amount, party, Shares.down(amount, points));
    }

    /// @inheritdoc ISettlement
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-events
    function payObjector(bytes32 taskId, address objector, uint256 bond) external only(address(objections)) {
        Terms memory s = registry.terms(taskId);
        address solver = registry.task(taskId).solver;
        uint256 stake = Shares.slashable(s.solverStake, s.verifierFee, s.looks, s.draws);
        uint256 reward = Shares.objectorReward(stake, bond, jackpot.tax(s.jackpot));
        emit ObjectorPaid(taskId, solver, objector, reward);
        if (reward == 0) return;
        vault.forfeit(taskId, solver, reward);
        vault.pay(taskId, objector, reward);
    }

    /// @inheritdoc ISettlement
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-events
    function settle(bytes32 taskId) external {
        Task memory t = _expect(taskId, Status.Contested);
        _after(t.deadline);
        ObjectionCount memory objected = objections.objected(taskId);
        uint32 open = challenges.contested(taskId).open + objected.open;
        if (open > 0) revert DisputesOpen(open);
        (bool accepted, bool repeated, uint256 looks) = verdicts.conclude(taskId);
        // What the verdict says is true of the segments that were drawn; another one is false.
        if (objected.fell) (accepted, repeated) = (false, false);
        if (accepted) _requireNoDemands(taskId);
        Terms memory s = registry.terms(taskId);
        registry.close(taskId, accepted ? Outcome.Accepted : Outcome.Rejected);
        seats.release(taskId);
        uint256 price = accepted ? t.price : 0;
        uint256 share = Shares.up(price, Shares.TREASURY_OF_PRICE);
        uint256 tax = jackpot.tax(s.jackpot);
        emit Settled(taskId, price, s.verifierFee, tax, share);
        // A word against a log that is false is no lie, whoever has read it.
        (, uint256 contradicted) = _endWords(taskId, t, s, !objected.fell, 0);
        vault.forfeit(taskId, t.submitter, price + share + s.verifierFee + tax);
        _pay(taskId, t.solver, price);
        _pay(taskId, treasury, share);
        _pay(taskId, t.holder, s.verifierFee);
        _toFund(taskId, tax);
        _refund(taskId, t.submitter);
        uint256 left = s.solverStake - _payLooks(taskId, t, s, looks);
        if (accepted) {
            // Who serves friends only would have its verifier's seat drawn once more for nothing.
            uint256 drawn = contradicted * s.verifierFee;
            vault.unlock(taskId, t.solver, left - drawn);
            if (drawn > 0) vault.forfeit(taskId, t.solver, drawn);
            _toFund(taskId, drawn);
        } else {
            // What went wrong where every replay agrees is the submitter's own: it gains nothing by it.
            _slashSolver(taskId, t, left, repeated ? 0 : Shares.SUBMITTER_OF_SOLVER_STAKE);
        }
    }

    /// @inheritdoc ISettlement
    function claimSolverDefault(bytes32 taskId) external {
        Task memory t = _expect(taskId, Status.Training);
        _after(t.deadline);
        uint256 stake = vault.locked(address(this), taskId, t.solver);
        _slashSolver(taskId, t, stake, Shares.SUBMITTER_OF_SOLVER_STAKE);
        registry.openBidding(taskId);
    }

    /// @inheritdoc ISettlement
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-no-eth,reentrancy-events
    function claimWithheld(bytes32 taskId, address demander, bool fell) external only(address(demands)) {
        Task memory t = registry.task(taskId);
        Terms memory s = registry.terms(taskId);
        bool stood = t.status == Status.Contested;
        uint256 stake = s.solverStake;
        if (stood) {
            (,, uint256 looks) = verdicts.conclude(taskId);
            stake -= _payLooks(taskId, t, s, looks);
        }
        address[2] memory said = _unserved[taskId];
        // After the second word the seat stays empty.
        if (said[1] == address(0)) seats.release(taskId);
        // An objector that had shown a false segment has had this share; those that had said it have theirs.
        uint256 bounty = fell || said[0] != address(0) ? 0 : Shares.down(stake, Shares.DEMANDER_OF_SOLVER_STAKE);
        // Paid by the submitter's share: the escrow stays whole for the next solver and its verifier.
        uint256 fee = stood ? s.verifierFee : 0;
        uint256 share = Shares.down(stake, Shares.SUBMITTER_OF_SOLVER_STAKE) - fee;
        share = _fine(taskId, t, s, bounty + fee, share);
        emit Withheld(taskId, t.solver, demander, bounty, share, fee);
        _pay(taskId, demander, bounty);
        _pay(taskId, t.holder, fee);
    }

    /// @inheritdoc ISettlement
    function claimSeatDefault(bytes32 taskId) external {
        Task memory t = registry.task(taskId);
        bool verifies = t.status != Status.Profiling;
        if (verifies) t = _expect(taskId, Status.Verifying);
        if (t.holder == address(0) || t.deadline == 0) revert NotAllowed(_party());
        _after(t.deadline);
        if (verifies) _requireNoDemands(taskId);
        if (verifies) {
            // Were it free before the rounds are here, a verifier that sees them elsewhere would choose its duties.
            if (!_isDutyKnown(taskId)) revert DutyUnknown(taskId);
            _splitDefaulted(taskId, t.submitter);
        } else {
            // The terms may admit no profile, so their submitter gains nothing by one that isn't posted.
            seats.slash(taskId, t.submitter, 0);
        }
        registry.advance(taskId, t.status, verifies ? Status.Committed : Status.Profiling, 0);
        seats.open(taskId, verifies);
    }

    /// @inheritdoc ISettlement
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-no-eth,reentrancy-events
    function unserved(bytes32 taskId) external {
        Task memory t = _expect(taskId, Status.Verifying);
        address party = _requireParty(t.holder);
        _notAfter(t.deadline);
        // Who waits for them has its time (`extend`).
        if (!_isDutyKnown(taskId)) revert DutyUnknown(taskId);
        address[2] storage said = _unserved[taskId];
        if (party == said[0]) revert NotAllowed(party);
        uint256 bond = _unservedBond(t, registry.terms(taskId));
        emit Unserved(taskId, t.seating, party, bond);
        seats.release(taskId);
        vault.lock(taskId, party, bond);
        registry.advance(taskId, Status.Verifying, Status.Committed, 0);
        if (said[0] == address(0)) {
            said[0] = party;
            return seats.open(taskId, true);
        }
        said[1] = party;
        ObjectionCount memory objected = objections.objected(taskId);
        // An objector is to be paid out of the stake.
        if (objected.open == 0) _endUnserved(taskId, t, objected.fell);
    }

    /// @inheritdoc ISettlement
    function claimUnserved(bytes32 taskId) external {
        Task memory t = _expect(taskId, Status.Committed);
        if (_unserved[taskId][1] == address(0)) revert NotUnserved(taskId);
        ObjectionCount memory objected = objections.objected(taskId);
        if (objected.open > 0) revert DisputesOpen(objected.open);
        _endUnserved(taskId, t, objected.fell);
    }

    /// @inheritdoc ISettlement
    function unservedBy(bytes32 taskId) external view returns (address[2] memory) {
        return _unserved[taskId];
    }

    /// @inheritdoc ISettlement
    function extend(bytes32 taskId) external {
        Task memory t = _expect(taskId, Status.Verifying);
        if (_isDutyKnown(taskId)) revert DutyKnown(taskId);
        uint64 deadline = _from(registry.terms(taskId).verificationWindow);
        if (deadline < t.deadline) deadline = t.deadline;
        registry.advance(taskId, Status.Verifying, Status.Verifying, deadline);
    }

    /// @inheritdoc ISettlement
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-events
    function abandon(bytes32 taskId) external {
        Task memory t = registry.task(taskId);
        if (!_isSilent(taskId, t.status)) revert NotSilent(taskId);
        ObjectionCount memory objected = objections.objected(taskId);
        if (objected.open > 0) revert DisputesOpen(objected.open);
        // Who leaked its secret has left the seat, and has paid more.
        bool decided = t.holder != address(0);
        bool empty = t.status == Status.Watched && !decided;
        uint256 tax = decided ? jackpot.tax(registry.terms(taskId).jackpot) : 0;
        emit Abandoned(taskId, tax);
        registry.close(taskId, Outcome.Abandoned);
        if (!empty) seats.release(taskId);
        // What nobody could challenge refutes nothing.
        verdicts.forget(taskId);
        _endWords(taskId, t, registry.terms(taskId), false, 0);
        vault.forfeit(taskId, t.submitter, tax);
        _toFund(taskId, tax);
        _refund(taskId, t.submitter);
        if (t.solver == address(0)) return;
        if (objected.fell) {
            _slashSolver(taskId, t, registry.terms(taskId).solverStake, Shares.SUBMITTER_OF_SOLVER_STAKE);
        } else {
            vault.unlock(taskId, t.solver, vault.locked(address(this), taskId, t.solver));
        }
    }

    /// @inheritdoc ISettlement
    function escrowOf(Terms calldata s) public view returns (uint256) {
        uint256 price = Shares.maximumPrice(s.workUnits, s.unitPrice);
        if (price == 0 || price > TermsRules.MAX_AMOUNT) revert PriceTooHigh(TermsRules.MAX_AMOUNT);
        uint256 fees = uint256(s.verifierFee) * (s.margin == 0 ? 1 : 2);
        return price + Shares.up(price, Shares.TREASURY_OF_PRICE) + fees + jackpot.tax(s.jackpot);
    }

    /// @dev They end within one window: none is made after the deadline.
    function _requireNoDemands(bytes32 taskId) private view {
        uint32 open = demands.open(taskId);
        if (open > 0) revert DemandsOpen(open);
    }

    function _isDutyKnown(bytes32 taskId) private view returns (bool) {
        return seats.dutySeed(taskId) != 0 && proofs.isDrawn(taskId);
    }

    /// @dev Whether a round that the task waits for is long overdue.
    function _isSilent(bytes32 taskId, Status status) private view returns (bool) {
        if (status == Status.Watched) return _isOver(verdicts.patientUntil(taskId));
        if (status == Status.Profiling) return _isOver(seats.patientUntil(taskId));
        if (status != Status.Committed && status != Status.Verifying) return false;
        return _isOver(seats.patientUntil(taskId)) || _isOver(proofs.patientUntil(taskId));
    }

    function _isOver(uint64 until) private view returns (bool) {
        return until != 0 && block.timestamp > until;
    }

    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-events
    function _splitDefaulted(bytes32 taskId, address submitter) private {
        uint256 stake = seats.forfeit(taskId);
        uint256 bounty = Shares.down(stake, Shares.CLAIMER_OF_VERIFIER_STAKE);
        uint256 share = Shares.down(stake, Shares.SUBMITTER_OF_VERIFIER_STAKE);
        emit SeatDefaulted(taskId, _party(), stake, bounty);
        emit Split(taskId, submitter, stake, share);
        _pay(taskId, _party(), bounty);
        _pay(taskId, submitter, share);
        _toFund(taskId, stake - bounty - share);
    }

    /// @dev The training that two have called unserved. The submitter gains only by what more than words have shown.
    function _endUnserved(bytes32 taskId, Task memory t, bool fell) private {
        Terms memory s = registry.terms(taskId);
        _fine(taskId, t, s, 0, fell ? Shares.down(s.solverStake, Shares.SUBMITTER_OF_SOLVER_STAKE) : 0);
    }

    /// @dev Takes the task, and what is left of the stake but for `kept`, from a solver that doesn't serve. Who has
    /// said so comes first: no friend of the solver's makes a word vain by an objection or a demand. The submitter gets
    /// up to `most` and leaves a tax for each duty that is drawn anew: by this, and by each word.
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-events
    function _fine(bytes32 taskId, Task memory t, Terms memory s, uint256 kept, uint256 most)
        private
        returns (uint256 half)
    {
        uint256 left = vault.locked(address(this), taskId, t.solver);
        vault.forfeit(taskId, t.solver, left);
        left -= kept;
        uint256 tax = jackpot.tax(s.jackpot);
        uint256 share = Shares.sayerShare(_unservedBond(t, s), left - tax);
        (uint256 count,) = _endWords(taskId, t, s, false, share);
        left -= count * share;
        tax *= count + 1;
        if (tax < left) half = most < left - tax ? most : left - tax;
        if (count > 0) emit NotServed(taskId, t.solver, left + count * share, share, half);
        _pay(taskId, t.submitter, half);
        _toFund(taskId, left - half);
        verdicts.forget(taskId);
        registry.openBidding(taskId);
    }

    /// @dev Bonds of words that the solver doesn't serve. A verdict that stands takes that of another verifier, for the
    /// fund: neither solver nor verifier gains by data that only some can read.
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-events
    function _endWords(bytes32 taskId, Task memory t, Terms memory s, bool stood, uint256 share)
        private
        returns (uint256 count, uint256 contradicted)
    {
        if (_unserved[taskId][0] == address(0)) return (0, 0);
        address[2] memory said = _unserved[taskId];
        delete _unserved[taskId];
        uint256 bond = _unservedBond(t, s);
        for (; count < 2 && said[count] != address(0); ++count) {
            bool lost = stood && said[count] != t.holder;
            emit WordEnded(taskId, said[count], bond, lost);
            if (lost) {
                ++contradicted;
                vault.forfeit(taskId, said[count], bond);
                _toFund(taskId, bond);
            } else {
                vault.unlock(taskId, said[count], bond);
                _pay(taskId, said[count], share);
            }
        }
    }

    function _unservedBond(Task memory t, Terms memory s) private pure returns (uint256) {
        return Shares.unservedBond(t.price, s.solverStake, s.verifierStake);
    }

    /// @dev The solver has landed where only reruns can tell: it pays them to the verifier that made them, be it
    /// accepted or not.
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-events
    function _payLooks(bytes32 taskId, Task memory t, Terms memory s, uint256 looks) private returns (uint256 paid) {
        paid = looks * Shares.lookFee(s.verifierFee, s.looks, s.draws);
        if (paid == 0) return 0;
        emit LooksPaid(taskId, t.solver, t.holder, paid);
        vault.forfeit(taskId, t.solver, paid);
        vault.pay(taskId, t.holder, paid);
    }

    /// @dev The settlement holds the solver's stake itself. An objector may have had its share of it already.
    /// @param stake What the submitter's share is a share of.
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-events
    function _slashSolver(bytes32 taskId, Task memory t, uint256 stake, uint256 points) private {
        uint256 left = vault.locked(address(this), taskId, t.solver);
        vault.forfeit(taskId, t.solver, left);
        _split(taskId, left, t.submitter, Shares.down(stake, points));
    }

    function _split(bytes32 taskId, uint256 amount, address party, uint256 share) private {
        emit Split(taskId, party, amount, share);
        _pay(taskId, party, share);
        _toFund(taskId, amount - share);
    }

    function _refund(bytes32 taskId, address submitter) private {
        uint256 rest = vault.locked(address(this), taskId, submitter);
        if (rest > 0) vault.unlock(taskId, submitter, rest);
    }

    function _pay(bytes32 taskId, address account, uint256 amount) private {
        if (amount > 0) vault.pay(taskId, account, amount);
    }

    function _toFund(bytes32 taskId, uint256 amount) private {
        if (amount > 0) vault.move(taskId, address(jackpot), FUND, amount);
    }
}
