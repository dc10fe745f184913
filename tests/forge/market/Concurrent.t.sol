// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ClaimCharge, Contested, IChallenges} from "../../../contracts/market/IChallenges.sol";
import {Split} from "../../../contracts/market/Split.sol";
import {ISettlement, ITaskRegistry, MarketBase, Opening, Outcome, Status} from "./MarketBase.sol";

/// @notice Several disputes about one verdict at the same time: stakes 5 and 3, bond 1, so bonds are 1, 1.5, 1.5, ...
contract ConcurrentTest is MarketBase {
    /// @dev A verifier executes one segment after the other, however many are charged at once.
    function test_each_open_challenge_adds_a_clock() public {
        _toContested(true);
        uint256 first = _challenge(challenger);
        vm.assertEq(uint256(game.started().clock), 10 minutes);
        _challenge(solver);
        vm.assertEq(uint256(game.started().clock), 20 minutes);
        _end(first, true);
        _challenge(challenger);
        vm.assertEq(uint256(game.started().clock), 20 minutes);
    }

    function test_a_verdict_waits_for_its_window_and_for_every_dispute() public {
        _toContested(true);
        uint256 first = _challenge(challenger);
        uint256 second = _challenge(solver);
        uint64 deadline = registry.task(id).deadline;
        vm.expectRevert(abi.encodeWithSelector(ITaskRegistry.DeadlineNotPassed.selector, deadline));
        settlement.settle(id);
        vm.warp(deadline + 1);
        _end(second, true);
        vm.expectRevert(abi.encodeWithSelector(ISettlement.DisputesOpen.selector, uint32(1)));
        settlement.settle(id);
        _end(first, true);
        // The window is over: nothing that ends in a dispute opens it again.
        vm.assertEq(registry.task(id).deadline, deadline);
        _expectRefused(10 ether, abi.encodeWithSelector(ITaskRegistry.DeadlinePassed.selector, deadline));
        settlement.settle(id);
        vm.assertEq(uint256(registry.task(id).outcome), uint256(Outcome.Accepted));
    }

    function test_a_bond_in_a_dispute_that_counts_stays() public {
        _toContested(true);
        uint256 first = _challenge();
        uint256 second = _challenge();
        bytes memory notMoot = abi.encodeWithSelector(IChallenges.NothingToSettle.selector, first);
        vm.expectRevert(notMoot);
        challenges.settleDispute(first);
        _end(first, true);
        vm.expectRevert(notMoot);
        challenges.settleDispute(first);
        _end(second, false);
        vm.expectRevert(notMoot);
        challenges.settleDispute(first);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.NothingToSettle.selector, second));
        challenges.settleDispute(second);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.UnknownDispute.selector, 3));
        challenges.settleDispute(3);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.UnknownDispute.selector, 0));
        challenges.settleDispute(0);
    }

    /// @dev In every status that the task can be in when the game ends a moot dispute.
    function test_a_moot_dispute_ends_in_every_status() public {
        _toContested(true);
        uint256[6] memory moot;
        for (uint256 i = 0; i < moot.length; ++i) {
            moot[i] = _challenge();
        }
        _end(_challenge(solver), false);
        _end(moot[0], false);
        _seatVerifier(nextVerifier, false);
        _end(moot[1], false);
        _verdict(nextVerifier, true);
        _end(moot[2], true);
        _openWatch();
        _disclose(nextVerifier, true);
        _end(moot[3], false);
        _challenge(solver);
        _end(moot[4], true);
        vm.assertEq(challenges.contested(id).open, 1);
        _finish(true);
        _settle();
        _end(moot[5], false);
        vm.assertEq(_gain(challenger), 0);
        vm.assertEq(vault.locked(address(challenges), id, challenger), 0);
        vm.assertEq(uint256(registry.task(id).outcome), uint256(Outcome.Accepted));
        // Half of the second bond that the solver lost is the next verifier's.
        vm.assertEq(_gain(nextVerifier), 1 ether + 0.5 ether);
    }

    function test_bonds_double_up_to_what_a_challenger_wins() public {
        _toContested(true);
        _announceCharge(challenger, _chargeOf(0, true));
        uint128[5] memory bonds = [uint128(1 ether), 2 ether, 2 ether, 2 ether, 2 ether];
        for (uint256 i = 0; i < bonds.length; ++i) {
            vm.assertEq(challenges.bondOf(id), bonds[i]);
            _expectRefused(bonds[i] - 1, abi.encodeWithSelector(IChallenges.BondTooHigh.selector, bonds[i]));
            (ClaimCharge memory charge, Opening memory opening) =
                (_chargeOf(0, true), Opening(HEADER, PAYLOAD, bonds[i]));
            vm.prank(challenger);
            vm.expectEmit(address(challenges));
            emit IChallenges.Challenged(id, 2, challenger, i + 1, 0, 1, 0, bonds[i]);
            challenges.challenge(id, charge, opening);
            // Open or lost makes no difference.
            if (i % 2 == 0) _finish(true);
        }
    }

    function test_a_new_verdict_starts_with_the_bond_of_the_terms() public {
        _toContested(true);
        _challenge();
        _challenge();
        _finish(false);
        _judgeNext(true);
        vm.assertEq(challenges.bondOf(id), 1 ether);
        vm.assertEq(challenges.dispute(_challenge()).seating, 3);
        Contested memory c = challenges.contested(id);
        vm.assertTrue(c.open == 1 && c.challenges == 1 && c.seating == 3);
    }

    function testFuzz_three_doublings_lead_from_every_bond_to_the_reward(uint128 bond, uint128 stake, uint32 earlier)
        public
        pure
    {
        stake = uint128(bound(stake, 2, type(uint128).max));
        bond = uint128(bound(bond, (uint256(stake) + 15) / 16, stake / 2));
        uint256 now_ = Split.bondOf(bond, stake, earlier);
        vm.assertTrue(bond <= now_ && now_ <= stake / 2);
        vm.assertLe(now_, Split.bondOf(bond, stake, uint256(earlier) + 1));
        vm.assertEq(Split.bondOf(bond, stake, 3), stake / 2);
        vm.assertEq(Split.bondOf(bond, stake, 0), bond);
    }

    /// @dev Stakes leave with the settlement: never while a dispute could take them.
    function test_attack_exit_that_outruns_a_dispute() public {
        _toContested(true);
        _pass(20 minutes);
        _challenge();
        _pass(1_000 days);
        vm.expectRevert(abi.encodeWithSelector(ISettlement.DisputesOpen.selector, uint32(1)));
        settlement.settle(id);
        vm.expectRevert(abi.encodeWithSelector(ITaskRegistry.WrongStatus.selector, id, Status.Contested));
        settlement.claimSeatDefault(id);
        vm.assertEq(vault.locked(address(seats), id, verifier), 4 ether);
        // Resigning frees no stake of a seat, and the bond of the tickets only later.
        vm.prank(verifier);
        sortition.resign(2);
        vm.assertEq(vault.locked(address(seats), id, verifier), 4 ether);
        vm.assertEq(_gain(verifier), -3 ether);
        _finish(false);
        vm.assertEq(_gain(challenger), 2 ether);
        vm.assertEq(_gain(verifier), -3 ether);
    }

    /// @dev What one end costs does not grow with the number of disputes.
    function test_attack_a_resolution_that_exceeds_a_block() public {
        _toContested(true);
        uint256[2] memory used;
        for (uint256 i = 0; i < 300; ++i) {
            _challenge();
        }
        _end(1, true);
        used[0] = vm.lastCallGas().gasTotalUsed;
        _end(300, false);
        used[1] = vm.lastCallGas().gasTotalUsed;
        vm.assertLt(used[0], 400_000);
        vm.assertLt(used[1], 600_000);
        _expectStatus(Status.Committed);
    }

    function _expectRefused(uint128 most, bytes memory reason) private {
        ClaimCharge memory charge = _chargeOf(0, true);
        Opening memory opening = Opening(HEADER, PAYLOAD, most);
        _expectRefusal(challenger, reason);
        challenges.challenge(id, charge, opening);
    }
}
