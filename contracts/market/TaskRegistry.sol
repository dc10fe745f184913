// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AuctionTerms} from "../incentives/IAuction.sol";
import {IStakeVault} from "../incentives/IStakeVault.sol";
import {ITaskRegistry} from "./ITaskRegistry.sol";
import {Lifecycle} from "./Lifecycle.sol";
import {MarketDesk} from "./MarketDesk.sol";
import {Split} from "./Split.sol";
import {Outcome, Status, Task, Terms} from "./TaskTypes.sol";
import {TermsRules} from "./TermsRules.sol";

/// @title TaskRegistry
/// @notice See `ITaskRegistry`.
/// @dev Holds no money: escrows lie with the settlement.
contract TaskRegistry is ITaskRegistry, MarketDesk {
    /// @dev Who changes a status: the verb of a party here, or the desk that calls.
    bool private constant BY_PARTY = true;
    bool private constant BY_DESK = false;

    /// @inheritdoc ITaskRegistry
    mapping(address submitter => uint256) public nonces;

    mapping(bytes32 taskId => Task) private _tasks;
    mapping(bytes32 taskId => Terms) private _terms;

    constructor(IStakeVault vault_) MarketDesk(vault_) {}

    /// @inheritdoc ITaskRegistry
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-no-eth,reentrancy-events
    function submit(Terms calldata terms_) external returns (bytes32 taskId) {
        TermsRules.check(terms_, jackpot.shares(), jackpot.tax(terms_.jackpot), jackpot.commitWindow());
        address submitter = _party();
        uint256 nonce = nonces[submitter]++;
        taskId = computeTaskId(submitter, nonce, terms_);
        _terms[taskId] = terms_;
        _tasks[taskId].submitter = submitter;
        uint256 escrow = settlement.hold(taskId, submitter, terms_);
        emit TaskSubmitted(taskId, submitter, nonce, terms_, escrow);
        if (terms_.margin == 0) {
            _openAuction(taskId, BY_PARTY);
        } else {
            _move(taskId, Status.Profiling, 0, BY_PARTY);
            seats.open(taskId, false);
        }
    }

    /// @inheritdoc ITaskRegistry
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-no-eth,reentrancy-events
    function cancel(bytes32 taskId) external {
        Task storage t = _tasks[taskId];
        _requireParty(t.submitter);
        if (t.status == Status.Profiling) {
            profiles.cancel(taskId);
        } else {
            _expectStatus(taskId, Status.Bidding);
            if (!_hasExpired(taskId)) auction.cancel(taskId);
        }
        settlement.refund(taskId);
        _close(taskId, Outcome.Cancelled, BY_PARTY);
    }

    /// @inheritdoc ITaskRegistry
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-no-eth,reentrancy-events
    function openBidding(bytes32 taskId) external onlyDesk {
        Task storage t = _tasks[taskId];
        if (t.solver != address(0)) {
            emit SolverGone(taskId, t.solver);
            (t.solver, t.price, t.began) = (address(0), 0, 0);
        }
        // Nothing is left that could be caught, and a task without a solver holds the fund from no other.
        jackpot.release(taskId);
        _openAuction(taskId, BY_DESK);
    }

    /// @inheritdoc ITaskRegistry
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-no-eth,reentrancy-events
    function award(bytes32 taskId) external {
        _expectStatus(taskId, Status.Bidding);
        if (_hasExpired(taskId)) return _openAuction(taskId, BY_PARTY);
        (address solver, uint128 price, uint64 deadline) = auction.conclude(taskId);
        if (solver == address(0)) return _openAuction(taskId, BY_PARTY);
        settlement.holdStake(taskId, solver, _terms[taskId].solverStake);
        // Before a solver works it knows that the fund can pay for the watch.
        jackpot.reserve(taskId, _terms[taskId].jackpot);
        Task storage t = _tasks[taskId];
        (t.solver, t.price, t.began) = (solver, price, uint64(block.timestamp));
        emit Awarded(taskId, solver, price, deadline);
        _move(taskId, Status.Training, deadline, BY_PARTY);
    }

    /// @inheritdoc ITaskRegistry
    function advance(bytes32 taskId, Status from, Status to, uint64 deadline) external {
        _expectStatus(taskId, from);
        _move(taskId, to, deadline, BY_DESK);
    }

    /// @inheritdoc ITaskRegistry
    function seat(bytes32 taskId, uint32 seating, address holder) external only(address(seats)) {
        Task storage t = _tasks[taskId];
        (t.seating, t.holder) = (seating, holder);
        emit Seated(taskId, seating, holder);
    }

    /// @inheritdoc ITaskRegistry
    function close(bytes32 taskId, Outcome outcome) external only(address(settlement)) {
        _close(taskId, outcome, BY_DESK);
        if (outcome == Outcome.Accepted) auction.recordAccepted(taskId);
        // Nothing of it can be caught.
        if (outcome == Outcome.Abandoned) jackpot.release(taskId);
    }

    /// @inheritdoc ITaskRegistry
    function computeTaskId(address submitter, uint256 nonce, Terms calldata terms_) public view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, address(this), submitter, nonce, terms_));
    }

    /// @inheritdoc ITaskRegistry
    function task(bytes32 taskId) external view returns (Task memory) {
        return _tasks[taskId];
    }

    /// @inheritdoc ITaskRegistry
    function terms(bytes32 taskId) external view returns (Terms memory) {
        return _terms[taskId];
    }

    /// @inheritdoc ITaskRegistry
    function program(bytes32 taskId) external view returns (bytes32) {
        return _terms[taskId].program;
    }

    function _openAuction(bytes32 taskId, bool byParty) private {
        Terms storage s = _terms[taskId];
        uint64[3] memory thresholds;
        address profiler = address(0);
        if (s.margin > 0) (thresholds, profiler) = (profiles.thresholds(taskId), profiles.profiler(taskId));
        _move(taskId, Status.Bidding, 0, byParty);
        // The auction knows the last round of a task.
        // slither-disable-next-line unused-return
        auction.open(
            taskId,
            AuctionTerms({
                maximum: uint128(Split.maximumPrice(s.workUnits, s.unitPrice)),
                solverStake: s.solverStake,
                secondPrice: s.secondPrice,
                workUnits: s.workUnits,
                submitter: _tasks[taskId].submitter,
                verifier: profiler,
                window: s.bidWindow,
                trainingWindow: s.trainingWindow,
                thresholds: keccak256(abi.encode(thresholds))
            })
        );
    }

    /// @dev Nobody has concluded the round in time, and somebody has ended it without a winner.
    function _hasExpired(bytes32 taskId) private view returns (bool) {
        return auction.round(auction.lastRound(address(this), taskId)).closed;
    }

    function _close(bytes32 taskId, Outcome outcome, bool byParty) private {
        Task storage t = _tasks[taskId];
        (t.outcome, t.closed) = (outcome, uint64(block.timestamp));
        _move(taskId, Status.Closed, 0, byParty);
        emit TaskClosed(taskId, outcome);
    }

    /// @dev The one place where a status changes: along a row of `Lifecycle`.
    function _move(bytes32 taskId, Status to, uint64 deadline, bool byParty) private {
        Task storage t = _tasks[taskId];
        uint256 movers = Lifecycle.movers(t.status, to);
        if (byParty ? movers & Lifecycle.REGISTRY == 0 : !_isCalledBy(movers)) {
            if (!byParty && !vault.isDesk(msg.sender)) revert NotAllowed(msg.sender);
            revert IllegalTransition(t.status, to);
        }
        (t.status, t.deadline) = (to, deadline);
        emit Advanced(taskId, to, deadline);
    }

    /// @dev Whether the caller is one of these desks.
    function _isCalledBy(uint256 movers) private view returns (bool) {
        return (movers & Lifecycle.SEATS != 0 && msg.sender == address(seats))
            || (movers & Lifecycle.PROOFS != 0 && msg.sender == address(proofs))
            || (movers & Lifecycle.PROFILES != 0 && msg.sender == address(profiles))
            || (movers & Lifecycle.VERDICTS != 0 && msg.sender == address(verdicts))
            || (movers & Lifecycle.DEMANDS != 0 && msg.sender == address(demands))
            || (movers & Lifecycle.SETTLEMENT != 0 && msg.sender == address(settlement));
    }

    function _expectStatus(bytes32 taskId, Status status) private view {
        if (_tasks[taskId].status != status) revert WrongStatus(taskId, _tasks[taskId].status);
    }
}
