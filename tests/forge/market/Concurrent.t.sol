// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ITaskMarket} from "../../../contracts/market/ITaskMarket.sol";
import {Settlement} from "../../../contracts/market/Settlement.sol";
import {Claim, Dispute, Outcome, Status, Task, Terms} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice Several disputes about one verdict at the same time: fee 10, stakes 5 and 3, bond 1, so bonds are 1, 1.5, 1.5, ...
contract ConcurrentTest is MarketBase {
    function test_everybody_challenges_at_once() public {
        _toVerdict(true);
        uint64 deadline = market.task(id).deadline;
        uint256 first = _challenge(challenger);
        uint256 second = _challenge(solver);
        uint256 third = _challenge(challenger);
        Task memory t = market.task(id);
        vm.assertTrue(t.status == Status.Verdict && t.challenges == 3 && t.open == 3 && t.deadline == deadline);
        Dispute memory d = market.dispute(second);
        vm.assertTrue(d.taskId == id && d.challenger == solver && d.verdict == 1 && d.earlier == 1 && !d.released);
        vm.assertTrue(first != second && second != third && market.dispute(third).earlier == 2);
        _expectConserved();
    }

    function test_a_verdict_waits_for_its_window_and_for_every_dispute() public {
        _toVerdict(true);
        uint256 first = _challenge(challenger);
        uint256 second = _challenge(solver);
        uint64 deadline = market.task(id).deadline;
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.DeadlineNotPassed.selector, deadline));
        market.settle(id);
        _pass(20 minutes + 1);
        game.report(second, true);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.DisputesOpen.selector, uint32(1)));
        market.settle(id);
        game.report(first, true);
        // The window is over: nothing that ends in a dispute opens it again.
        vm.assertEq(market.task(id).deadline, deadline);
        Claim memory claim = _claim(0);
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.DeadlinePassed.selector, deadline));
        market.challenge{value: 2 ether}(id, 0, claim, 1, 0, HEADER, PAYLOAD);
        market.settle(id);
        vm.assertEq(uint256(market.task(id).outcome), uint256(Outcome.Accepted));
        _expectConserved();
    }

    function test_disputes_that_end_early_leave_the_window_as_it_is() public {
        _toVerdict(true);
        uint64 deadline = market.task(id).deadline;
        for (uint256 i = 0; i < 3; ++i) {
            _challenge();
            _pass(5 minutes);
            game.finish(true);
            _expectStatus(Status.Verdict);
            vm.assertEq(market.task(id).deadline, deadline);
        }
        _challenge();
        game.finish(false);
        _expectStatus(Status.Drawn);
        vm.assertFalse(market.task(id).accepted);
    }

    function test_the_first_defeat_makes_the_others_moot() public {
        _toVerdict(true);
        uint256 first = _challenge(challenger);
        uint256 second = _challenge(solver);
        uint256 third = _challenge(nextVerifier);
        vm.expectEmit(address(market));
        emit ITaskMarket.DisputeResolved(id, 1, second, false);
        game.report(second, false);
        Task memory t = market.task(id);
        vm.assertTrue(t.status == Status.Drawn && t.verifier == address(0) && t.challenges == 0 && t.open == 0);
        vm.assertEq(market.credits(solver), 1.5 ether + 1.5 ether);
        vm.assertEq(market.credits(treasury), 1.5 ether);
        _expectConserved();
        // Without waiting for the game, or through it, whoever wins there.
        vm.expectEmit(address(market));
        emit ITaskMarket.DisputeMoot(id, 1, first);
        market.releaseBond(first);
        game.report(third, true);
        vm.assertEq(market.credits(challenger), 1 ether);
        vm.assertEq(market.credits(nextVerifier), 1.5 ether);
        vm.assertEq(market.credits(verifier), 0);
        vm.assertEq(market.credits(treasury), 1.5 ether);
        vm.assertEq(_lockedBonds(), 0);
        _expectConserved();
    }

    function test_a_failed_challenge_ends_nothing_but_itself() public {
        _toVerdict(true);
        uint256 first = _challenge(challenger);
        uint256 second = _challenge(solver);
        vm.expectEmit(address(market));
        emit ITaskMarket.DisputeResolved(id, 1, first, true);
        game.report(first, true);
        vm.assertTrue(market.task(id).open == 1 && market.task(id).challenges == 2);
        vm.assertEq(market.credits(verifier), 0.5 ether);
        game.report(second, false);
        vm.assertEq(market.credits(solver), 1.5 ether + 1.5 ether);
        vm.assertEq(market.credits(verifier), 0.5 ether);
        _expectConserved();
    }

    function test_a_bond_in_a_dispute_that_counts_stays() public {
        _toVerdict(true);
        uint256 first = _challenge();
        uint256 second = _challenge();
        bytes memory notMoot = abi.encodeWithSelector(ITaskMarket.NotMoot.selector, first);
        vm.expectRevert(notMoot);
        market.releaseBond(first);
        game.report(first, true);
        vm.expectRevert(notMoot);
        market.releaseBond(first);
        game.report(second, false);
        vm.expectRevert(notMoot);
        market.releaseBond(first);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotMoot.selector, second));
        market.releaseBond(second);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.UnknownDispute.selector, 3));
        market.releaseBond(3);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.UnknownDispute.selector, 0));
        market.releaseBond(0);
    }

    function test_a_moot_dispute_ends_after_the_task_too() public {
        _toVerdict(true);
        uint256 first = _challenge(challenger);
        game.report(_challenge(solver), false);
        _join(nextVerifier);
        _verdict(nextVerifier, true);
        _pass(20 minutes + 1);
        // It does not hold up the next verdict.
        market.settle(id);
        _expectStatus(Status.Closed);
        _expectConserved();
        game.report(first, false);
        vm.assertEq(market.credits(challenger), 1 ether);
        _expectStatus(Status.Closed);
        _expectConserved();
    }

    function test_bonds_double_up_to_what_a_challenger_wins() public {
        _toVerdict(true);
        uint256[5] memory bonds = [uint256(1 ether), 1.5 ether, 1.5 ether, 1.5 ether, 1.5 ether];
        for (uint256 i = 0; i < bonds.length; ++i) {
            vm.assertEq(market.bondOf(id), bonds[i]);
            Claim memory claim = _claim(0);
            vm.prank(challenger);
            vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongPayment.selector, bonds[i] - 1, bonds[i]));
            market.challenge{value: bonds[i] - 1}(id, 0, claim, 1, 0, HEADER, PAYLOAD);
            vm.expectEmit(address(market));
            emit ITaskMarket.Challenged(id, 1, challenger, i + 1, 0, 1, 0, bonds[i]);
            _challenge();
            // Open or lost makes no difference.
            if (i % 2 == 0) game.finish(true);
        }
    }

    function test_what_is_paid_too_much_comes_back() public {
        _toVerdict(true);
        Claim memory claim = _claim(0);
        vm.prank(challenger);
        market.challenge{value: 1.5 ether}(id, 0, claim, 1, 0, HEADER, PAYLOAD);
        vm.assertEq(market.credits(challenger), 0.5 ether);
        _expectConserved();
        game.finish(true);
        vm.assertEq(market.credits(verifier), 0.5 ether);
        _expectConserved();
    }

    function test_a_new_verdict_starts_with_the_bond_of_the_terms() public {
        _toVerdict(true);
        _challenge();
        _challenge();
        game.finish(false);
        vm.assertEq(market.bondOf(id), 1 ether);
        _join(nextVerifier);
        _verdict(nextVerifier, true);
        vm.assertEq(market.bondOf(id), 1 ether);
        vm.assertEq(market.dispute(_challenge()).verdict, 2);
    }

    function testFuzz_three_doublings_lead_from_every_bond_to_the_reward(uint128 bond, uint128 stake, uint32 earlier)
        public
        pure
    {
        stake = uint128(bound(stake, 2, type(uint128).max));
        bond = uint128(bound(bond, (uint256(stake) + 15) / 16, stake / 2));
        uint256 now_ = Settlement.bondOf(bond, stake, earlier);
        vm.assertTrue(bond <= now_ && now_ <= stake / 2);
        vm.assertLe(now_, Settlement.bondOf(bond, stake, uint256(earlier) + 1));
        vm.assertEq(Settlement.bondOf(bond, stake, 3), stake / 2);
        vm.assertEq(Settlement.bondOf(bond, stake, 0), bond);
    }
}

/// @notice The largest stakes with the largest bond, many times.
contract LargestBondTest is MarketBase {
    function _terms() internal view override returns (Terms memory s) {
        s = super._terms();
        (s.bond, s.verifierStake) = (type(uint128).max / 2, type(uint128).max);
    }

    function test_no_sum_overflows() public {
        vm.deal(verifier, type(uint128).max);
        _toVerdict(true);
        for (uint256 i = 0; i < 10; ++i) {
            vm.deal(challenger, market.bondOf(id));
            _challenge();
            if (i % 2 == 0) game.finish(true);
        }
        game.finish(false);
        for (uint256 number = 2; number < 10; number += 2) {
            market.releaseBond(number);
        }
        _expectConserved();
    }
}
