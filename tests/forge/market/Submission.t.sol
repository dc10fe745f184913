// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Desk} from "../../../contracts/incentives/Desk.sol";
import {IAuction} from "../../../contracts/incentives/IAuction.sol";
import {IJackpot} from "../../../contracts/incentives/IJackpot.sol";
import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";
import {IBeacon} from "../../../contracts/market/IBeacon.sol";
import {IProfiles} from "../../../contracts/market/IProfiles.sol";
import {ISeats} from "../../../contracts/market/ISeats.sol";
import {ITaskRegistry} from "../../../contracts/market/ITaskRegistry.sol";
import {Market} from "../../../contracts/market/MarketDesk.sol";
import {Settlement} from "../../../contracts/market/Settlement.sol";
import {Outcome, Status, Terms} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice Which terms make a task, what it locks, and how its submitter withdraws it.
contract SubmissionTest is MarketBase {
    function test_the_id_is_derived_and_never_repeats() public {
        _submit();
        Terms memory s = _terms();
        vm.prank(submitter);
        bytes32 second = registry.submit(s);
        vm.assertNotEq(id, second);
        vm.assertEq(second, registry.computeTaskId(submitter, 1, s));
        vm.assertEq(id, keccak256(abi.encode(block.chainid, address(registry), submitter, uint256(0), s)));
        vm.assertEq(registry.nonces(submitter), 2);
        vm.assertEq(registry.terms(second).program, bytes32("program"));
        vm.assertEq(registry.task(second).submitter, submitter);
        vm.assertEq(uint256(registry.task(second).status), uint256(Status.Profiling));
    }

    function test_emits_everything() public {
        vm.expectEmit(address(registry));
        emit ITaskRegistry.TaskSubmitted(id, submitter, 0, _terms(), settlement.escrowOf(_terms()));
        vm.expectEmit(address(registry));
        emit ITaskRegistry.Advanced(id, Status.Profiling, 0);
        _submit();
    }

    function test_the_escrow_is_locked_and_covers_all_that_can_be_paid() public {
        Terms memory s = _terms();
        (s.workUnits, s.unitPrice, s.verifierFee, s.jackpot) = (3, uint128(7 << 32) + 1, 11, 2 ether);
        // 3 * (7 * 2^32 + 1) / 2^32, rounded up; half a percent of it, rounded up; two fees; the tax.
        uint256 escrow = 22 + 1 + 22 + jackpot.tax(2 ether);
        vm.assertEq(settlement.escrowOf(s), escrow);
        vm.prank(submitter);
        bytes32 taskId = registry.submit(s);
        vm.assertEq(vault.locked(address(settlement), taskId, submitter), escrow);
        vm.assertEq(_gain(submitter), -int256(escrow));
        // Nobody is paid for a profile where there is none.
        vm.assertEq(settlement.escrowOf(_exact(s)), escrow - 11);
    }

    function test_who_cannot_pay_the_escrow_submits_nothing() public {
        Terms memory s = _terms();
        uint256 escrow = settlement.escrowOf(s);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.Short.selector, treasury, 0, escrow));
        vm.prank(treasury);
        registry.submit(s);
        vm.assertEq(registry.nonces(treasury), 0);
    }

    function test_only_the_submitter_cancels_and_only_once() public {
        _submit();
        vm.prank(solver);
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, solver));
        registry.cancel(id);
        _cancel();
        _expectNoCancel(abi.encodeWithSelector(ITaskRegistry.WrongStatus.selector, id, Status.Closed));
    }

    function test_a_cancelled_task_gives_back_the_stake_of_a_claim() public {
        _submit();
        _give(seats.seating(id).round, "seat");
        seats.openClaims(id);
        vm.prank(verifier);
        seats.claim(id, 0, 0);
        _cancel();
        vm.assertEq(_gain(verifier), 0);
        vm.assertEq(_gain(submitter), 0);
        _pass(1 hours);
        vm.expectRevert(abi.encodeWithSelector(ISeats.NoSeat.selector, id));
        seats.decide(id);
    }

    function test_a_cancelled_task_gives_back_the_stake_of_a_profiler() public {
        _submit();
        _seat(verifier);
        _cancel();
        vm.assertEq(_gain(verifier), 0);
        vm.assertEq(_gain(submitter), 0);
        vm.assertEq(registry.task(id).holder, address(0));
    }

    /// @dev A cancelled task would be the exit of a profiler that lied.
    function test_no_cancelling_behind_a_profile() public {
        _toProfiled();
        uint64 deadline = profiles.profile(id).deadline;
        bytes memory reason = abi.encodeWithSelector(IProfiles.Contestable.selector, deadline);
        _expectNoCancel(reason);
        _pass(_terms().profileWindow + 1);
        _expectNoCancel(reason);
        profiles.conclude(id);
        _cancel();
    }

    function test_a_void_profile_can_be_cancelled() public {
        _toProfiled();
        _challengeProfile();
        _finishProfile(false);
        _cancel();
        vm.assertEq(_gain(submitter), 0);
    }

    /// @dev Thresholds too low would keep all others away. In every round of the task.
    function test_the_profiler_has_no_bid() public {
        _toBidding();
        for (uint256 i = 0; i < 2; ++i) {
            bytes32 roundId = auction.lastRound(address(registry), id);
            vm.assertEq(auction.round(roundId).verifier, verifier);
            vm.prank(verifier);
            vm.expectRevert(abi.encodeWithSelector(IAuction.BidderIsParty.selector, verifier));
            auction.bid(roundId, "bid");
            vm.prank(nextVerifier);
            auction.bid(roundId, "bid");
            _pass(2 * _terms().bidWindow + 1);
            registry.award(id);
        }
    }

    function test_no_cancelling_behind_a_bid() public {
        _toBidding();
        bytes32 roundId = auction.lastRound(address(registry), id);
        vm.prank(solver);
        auction.bid(roundId, "bid");
        _expectNoCancel(abi.encodeWithSelector(IAuction.HasBids.selector, 1));
    }

    function test_no_cancelling_from_the_award_on() public {
        _toTraining();
        _expectNoCancelIn(Status.Training);
        _commit();
        _expectNoCancelIn(Status.Committed);
        _seatVerifier(verifier, false);
        _expectNoCancelIn(Status.Verifying);
        _verdict(verifier, true);
        _expectNoCancelIn(Status.Watched);
        _openWatch();
        _disclose(verifier, true);
        _expectNoCancelIn(Status.Contested);
        _settle();
        _expectNoCancelIn(Status.Closed);
    }

    function test_a_task_without_a_solver_can_be_cancelled_after_a_default() public {
        _toTraining();
        _pass(_promise + 1);
        settlement.claimSolverDefault(id);
        _cancel();
        // The fee of the profiler is gone, half of the solver's stake came.
        vm.assertEq(_gain(submitter), 1.5 ether);
    }

    /// @dev A solver that is gone gives it back: nobody keeps the fund from others with a task that nobody works on.
    function test_the_award_reserves_the_jackpot() public {
        _toBidding();
        vm.assertEq(jackpot.reserved(), 0);
        _award();
        vm.assertEq(jackpot.reserved(), _terms().jackpot);
        _pass(_promise + 1);
        settlement.claimSolverDefault(id);
        vm.assertEq(jackpot.reserved(), 0);
        _award();
        (uint128 amount,) = jackpot.reserves(id);
        vm.assertEq(amount, _terms().jackpot);
        vm.assertEq(jackpot.reserved(), _terms().jackpot);
        _pass(_promise + 1);
        settlement.claimSolverDefault(id);
        vm.assertEq(jackpot.reserved(), 0);
        _cancel();
    }

    /// @dev Nobody works for a verdict that can't be watched, and anybody may fill the fund.
    function test_a_fund_that_is_short_chooses_no_solver() public {
        _toBidding();
        bytes32 taskId = id;
        uint256 left = jackpot.available() - _terms().jackpot + 1;
        vm.prank(address(registry));
        jackpot.reserve("another task", uint128(left));
        _revealed();
        bytes memory reason =
            abi.encodeWithSelector(IJackpot.FundShort.selector, _terms().jackpot - 1, _terms().jackpot);
        vm.expectRevert(reason);
        registry.award(taskId);
        vm.prank(challenger);
        jackpot.donate(1);
        registry.award(taskId);
        _expectStatus(Status.Training);
    }

    /// @dev Anybody may expire a round that nobody concluded: the task must go on, or its escrow would stay.
    function test_a_round_that_expired_is_followed_by_another() public {
        _toBidding();
        bytes32 first = _expire();
        vm.assertEq(_gain(solver), 0);
        registry.award(id);
        _expectStatus(Status.Bidding);
        vm.assertNotEq(first, auction.lastRound(address(registry), id));
        _award();
        _expectStatus(Status.Training);
    }

    function test_a_task_whose_round_expired_can_be_cancelled() public {
        _toBidding();
        _expire();
        _cancel();
        vm.assertEq(_gain(submitter), -1 ether);
    }

    function test_a_round_without_bids_is_followed_by_another() public {
        _toBidding();
        bytes32 first = auction.lastRound(address(registry), id);
        uint256 until = auction.round(first).bidUntil;
        vm.expectRevert(abi.encodeWithSelector(IAuction.TooEarly.selector, until));
        registry.award(id);
        _pass(_terms().bidWindow + 1);
        registry.award(id);
        _expectStatus(Status.Bidding);
        vm.assertNotEq(first, auction.lastRound(address(registry), id));
    }

    function test_a_task_that_does_not_exist_allows_nothing() public {
        bytes memory none = abi.encodeWithSelector(ITaskRegistry.WrongStatus.selector, bytes32(0), Status.None);
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, address(this)));
        registry.cancel(0);
        vm.expectRevert(none);
        registry.award(0);
        vm.expectRevert(none);
        settlement.settle(0);
        vm.expectRevert(none);
        settlement.claimSolverDefault(0);
        vm.expectRevert(none);
        settlement.claimSeatDefault(0);
        vm.expectRevert(none);
        verdicts.openWatch(0);
        vm.expectRevert(none);
        profiles.conclude(0);
        vm.expectRevert(abi.encodeWithSelector(ISeats.NoSeat.selector, bytes32(0)));
        seats.openClaims(0);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.RoundNotRecorded.selector, uint64(0)));
        proofs.drawnSegments(0);
    }

    function test_desks_are_named_once_and_by_the_deployer() public {
        Market memory m;
        Settlement fresh = new Settlement(vault, treasury);
        vm.prank(submitter);
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, submitter));
        fresh.wire(m);
        fresh.wire(m);
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, address(this)));
        fresh.wire(m);
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, address(this)));
        registry.wire(m);
    }

    function test_verbs_of_desks_are_for_desks() public {
        _submit();
        bytes memory reason = abi.encodeWithSelector(Desk.NotAllowed.selector, address(this));
        Terms memory s = _terms();
        bytes[18] memory calls = [
            abi.encodeCall(registry.openBidding, (id)),
            abi.encodeCall(registry.advance, (id, Status.Profiling, Status.Training, 0)),
            abi.encodeCall(registry.seat, (id, 1, verifier)),
            abi.encodeCall(registry.close, (id, Outcome.Accepted)),
            abi.encodeCall(seats.open, (id, true)),
            abi.encodeCall(seats.release, (id)),
            abi.encodeCall(seats.slash, (id, verifier, 1)),
            abi.encodeCall(settlement.hold, (id, submitter, s)),
            abi.encodeCall(settlement.holdStake, (id, solver, 1)),
            abi.encodeCall(settlement.refund, (id)),
            abi.encodeCall(settlement.payProfiler, (id, verifier)),
            abi.encodeCall(settlement.split, (id, 1, verifier, 1)),
            abi.encodeCall(profiles.cancel, (id)),
            abi.encodeCall(verdicts.void, (id)),
            abi.encodeCall(profiles.onResolved, (1, true)),
            abi.encodeCall(challenges.onResolved, (1, true)),
            abi.encodeCall(settlement.claimWithheld, (id, verifier, false)),
            abi.encodeCall(verdicts.forget, (id))
        ];
        for (uint256 i = 0; i < calls.length; ++i) {
            address desk = i < 4 ? address(registry) : i < 7 ? address(seats) : address(settlement);
            if (i == 12 || i == 14) desk = address(profiles);
            else if (i == 13 || i == 17) desk = address(verdicts);
            else if (i == 15) desk = address(challenges);
            (bool worked, bytes memory answer) = desk.call(calls[i]);
            vm.assertFalse(worked);
            vm.assertEq(answer, reason);
        }
    }

    function test_the_treasury_is_somebody() public {
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, address(0)));
        this.newSettlement(address(0));
    }

    function test_an_exact_task_goes_to_its_auction_at_once() public {
        Terms memory s = _exact(_terms());
        vm.prank(submitter);
        bytes32 taskId = registry.submit(s);
        vm.assertEq(uint256(registry.task(taskId).status), uint256(Status.Bidding));
        vm.assertNotEq(auction.lastRound(address(registry), taskId), 0);
    }

    /// @dev The leader's stake comes back.
    function _expire() private returns (bytes32 roundId) {
        roundId = _revealed();
        _pass(2 * _terms().bidWindow + 1);
        auction.expire(roundId);
    }

    function _cancel() private {
        vm.prank(submitter);
        registry.cancel(id);
        _expectStatus(Status.Closed);
        vm.assertEq(uint256(registry.task(id).outcome), uint256(Outcome.Cancelled));
        vm.assertEq(vault.locked(address(settlement), id, submitter), 0);
    }

    function _expectNoCancelIn(Status status) private {
        _expectNoCancel(abi.encodeWithSelector(ITaskRegistry.WrongStatus.selector, id, status));
    }

    function _expectNoCancel(bytes memory reason) private {
        vm.prank(submitter);
        vm.expectRevert(reason);
        registry.cancel(id);
    }

    /// @dev A call of its own: a cheatcode stands in the place of `new`, and would itself be the call that has to
    /// revert.
    function newSettlement(address treasury_) external {
        new Settlement(vault, treasury_);
    }
}
