// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ClaimCharge, IChallenges} from "../../../contracts/market/IChallenges.sol";
import {ISettlement} from "../../../contracts/market/ISettlement.sol";
import {ITaskRegistry} from "../../../contracts/market/ITaskRegistry.sol";
import {Opening} from "../../../contracts/market/ProfileTypes.sol";
import {Claim, Status} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice Attacks that have broken or worn out other dispute systems, at the market (docs/audit.md lists them all).
contract KnownFailuresTest is MarketBase {
    /// @dev A verifier that lied loses to a friend, to keep the stake in the family.
    function test_attack_self_dispute_costs_half_of_the_stake() public {
        _toContested(true);
        _challenge();
        _finish(false);
        // Its fee for the profile is earned.
        vm.assertEq(_gain(challenger) + _gain(verifier), 1 ether - 2 ether);
    }

    /// @dev A friend that loses, many times at once: half of every bond is gone.
    function test_attack_losing_to_oneself_costs_half_of_every_bond() public {
        _toContested(true);
        for (uint256 i = 0; i < 6; ++i) {
            _challenge();
        }
        for (uint256 number = 1; number <= 6; ++number) {
            _end(number, true);
        }
        int256 bonds = 1 ether + 5 * 2 ether;
        vm.assertEq(_gain(challenger), -bonds);
        vm.assertEq(_gain(verifier), -3 ether + bonds / 2);
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

    /// @dev The verifier's friend used to hold the only place for a dispute.
    function test_attack_occupying_the_place_for_a_dispute() public {
        _toContested(true);
        for (uint256 i = 0; i < 20; ++i) {
            _challenge();
        }
        uint256 honest = _challenge(solver);
        _end(honest, false);
        _expectStatus(Status.Committed);
        vm.assertEq(_gain(solver), -5 ether + 2 ether);
    }

    /// @dev Baseless challenges raise the bond, but never above what is won, which is known before anybody stakes.
    function test_attack_pricing_out_an_honest_challenger() public {
        _toContested(true);
        for (uint256 i = 0; i < 40; ++i) {
            _challenge();
            if (i % 2 == 0) _finish(true);
        }
        vm.assertEq(challenges.bondOf(id), _terms().verifierStake / 2);
        _end(_challenge(solver), false);
        vm.assertEq(_gain(solver), -5 ether + 2 ether);
    }

    /// @dev Somebody raises the bond in the block in which an honest challenger locks it, in the last second.
    function test_attack_raising_the_bond_in_front_of_a_challenge() public {
        _toContested(true);
        _pass(20 minutes);
        (Claim[] memory claims,) = _claims(true);
        ClaimCharge memory charge;
        (charge.claim, charge.entries, charge.kind) = (claims[0], _entries(true, false), 1);
        Opening memory opening = Opening(HEADER, PAYLOAD, _terms().verifierStake / 2);
        _challenge();
        _announceCharge(solver, charge);
        vm.prank(solver);
        challenges.challenge(id, charge, opening);
        vm.assertEq(challenges.contested(id).open, 2);
    }

    /// @dev However many challenge, an honest verifier ends with more for each of them, and settles after the last.
    function test_attack_exhausting_an_honest_asserter() public {
        _toContested(true);
        _pass(20 minutes);
        for (uint256 i = 0; i < 50; ++i) {
            _challenge();
        }
        _pass(game.longest(10 minutes));
        for (uint256 number = 50; number > 0; --number) {
            int256 before = _gain(verifier);
            _end(number, true);
            vm.assertTrue(_gain(verifier) - before >= int256(uint256(_terms().bond / 2)));
        }
        settlement.settle(id);
        _expectStatus(Status.Closed);
    }

    /// @dev One after the other does not delay settlement further: the window is that of the verdict.
    function test_attack_delaying_settlement_by_losing_again_and_again() public {
        _toContested(true);
        uint64 deadline = registry.task(id).deadline;
        for (uint256 i = 0; i < 5; ++i) {
            _challenge();
            _finish(true);
        }
        _pass(20 minutes);
        _challenge();
        _pass(game.longest(10 minutes));
        _finish(true);
        settlement.settle(id);
        vm.assertEq(vm.getBlockTimestamp(), deadline + game.longest(10 minutes));
    }

    /// @dev An old dispute ends while the next verifier sits there, without a verdict and with one.
    function test_attack_slashing_the_next_verifier_with_an_old_dispute() public {
        _toContested(true);
        uint256 first = _challenge(challenger);
        uint256 second = _challenge(challenger);
        _end(_challenge(solver), false);
        _seatVerifier(nextVerifier, false);
        uint64 deadline = registry.task(id).deadline;
        _end(first, false);
        vm.assertEq(registry.task(id).holder, nextVerifier);
        vm.assertEq(registry.task(id).deadline, deadline);
        _verdict(nextVerifier, true);
        _openWatch();
        _disclose(nextVerifier, true);
        _end(second, false);
        _expectStatus(Status.Contested);
        vm.assertEq(registry.task(id).holder, nextVerifier);
        vm.assertEq(vault.locked(address(seats), id, nextVerifier), 4 ether);
    }

    /// @dev The game must be able to end every dispute, whatever became of its task, and nothing is paid twice.
    function test_attack_a_resolution_that_reverts_for_ever() public {
        _toContested(true);
        uint256 first = _challenge(challenger);
        uint256 second = _challenge(challenger);
        _end(_challenge(solver), false);
        challenges.settleDispute(first);
        int256 before = _gain(challenger);
        game.report(first, false);
        vm.assertEq(_gain(challenger), before);
        _end(second, true);
        game.report(second, false);
        vm.assertEq(_gain(challenger), before + 2 ether);
        vm.assertEq(_gain(challenger), 0);
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
}
