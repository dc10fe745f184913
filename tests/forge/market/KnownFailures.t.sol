// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ITaskMarket} from "../../../contracts/market/ITaskMarket.sol";
import {Claim, Status} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice Attacks that have broken or worn out other dispute systems, at the market (docs/audit.md lists them all).
contract KnownFailuresTest is MarketBase {
    /// @dev A verifier that lied loses to a friend, to keep the stake in the family.
    function test_attack_self_dispute_costs_half_of_the_stake() public {
        _toDisputed(true);
        game.finish(false);
        vm.assertEq(market.credits(challenger) + market.credits(verifier), 1 ether + 3 ether - 1.5 ether);
        vm.assertEq(market.credits(treasury), 1.5 ether);
    }

    /// @dev The same with a friend that loses, many times at once: half of every bond is gone.
    function test_attack_losing_to_oneself_costs_half_of_every_bond() public {
        _toVerdict(true);
        for (uint256 i = 0; i < 6; ++i) {
            _challenge();
        }
        for (uint256 number = 1; number <= 6; ++number) {
            game.report(number, true);
        }
        vm.assertEq(market.credits(verifier), (1 ether + 5 * 1.5 ether) / 2);
        vm.assertEq(market.credits(treasury), (1 ether + 5 * 1.5 ether) / 2);
    }

    /// @dev Stakes leave with the settlement, or before the training: never while a dispute could take them.
    function test_attack_exit_that_outruns_a_dispute() public {
        _toVerdict(true);
        _pass(20 minutes);
        _challenge();
        _pass(1_000 days);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.DisputesOpen.selector, uint32(1)));
        market.settle(id);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongStatus.selector, id, uint8(Status.Verdict)));
        market.claimVerifierDefault(id);
        vm.prank(verifier);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongStatus.selector, id, uint8(Status.Verdict)));
        market.leaveAsVerifier(id);
        game.finish(false);
        vm.assertEq(market.credits(challenger), 2.5 ether);
        vm.assertEq(market.credits(verifier), 0);
    }

    /// @dev The verifier's friend used to hold the only place for a dispute.
    function test_attack_occupying_the_place_for_a_dispute() public {
        _toVerdict(true);
        for (uint256 i = 0; i < 20; ++i) {
            _challenge();
        }
        uint256 honest = _challenge(solver);
        game.report(honest, false);
        _expectStatus(Status.Drawn);
        vm.assertEq(market.credits(solver), 3 ether);
    }

    /// @dev Baseless challenges raise the bond, but never above what is won, which is known before anybody stakes.
    function test_attack_pricing_out_an_honest_challenger() public {
        _toVerdict(true);
        for (uint256 i = 0; i < 40; ++i) {
            _challenge();
            if (i % 2 == 0) game.finish(true);
        }
        vm.assertEq(market.bondOf(id), _terms().verifierStake / 2);
        game.report(_challenge(solver), false);
        vm.assertEq(market.credits(solver), 3 ether);
    }

    /// @dev Somebody raises the bond in the block in which an honest challenger pays it, in the last second.
    function test_attack_raising_the_bond_in_front_of_a_challenge() public {
        _toVerdict(true);
        _pass(20 minutes);
        Claim memory claim = _claim(0);
        uint256 most = _terms().verifierStake / 2;
        _challenge();
        vm.prank(solver);
        market.challenge{value: most}(id, 0, claim, 1, 0, HEADER, PAYLOAD);
        vm.assertEq(market.task(id).open, 2);
    }

    /// @dev However many challenge, an honest verifier ends with more for each of them, and settles after the last.
    function test_attack_exhausting_an_honest_asserter() public {
        _toVerdict(true);
        _pass(20 minutes);
        for (uint256 i = 0; i < 50; ++i) {
            _challenge();
        }
        _pass(game.longest(10 minutes));
        for (uint256 number = 50; number > 0; --number) {
            uint256 before = market.credits(verifier);
            game.report(number, true);
            vm.assertGe(market.credits(verifier) - before, _terms().bond / 2);
        }
        market.settle(id);
        _expectStatus(Status.Closed);
        _expectConserved();
    }

    /// @dev One after the other does not delay settlement further: the window is that of the verdict.
    function test_attack_delaying_settlement_by_losing_again_and_again() public {
        _toVerdict(true);
        uint64 deadline = market.task(id).deadline;
        for (uint256 i = 0; i < 5; ++i) {
            _challenge();
            game.finish(true);
        }
        _pass(20 minutes);
        _challenge();
        _pass(game.longest(10 minutes));
        game.finish(true);
        market.settle(id);
        vm.assertEq(vm.getBlockTimestamp(), deadline + game.longest(10 minutes));
    }

    /// @dev Two challengers are right: one stake is all there is to take.
    function test_attack_slashing_twice() public {
        _toVerdict(true);
        uint256 first = _challenge(challenger);
        uint256 second = _challenge(solver);
        game.report(first, false);
        game.report(second, false);
        vm.assertEq(market.credits(challenger), 1 ether + 1.5 ether);
        vm.assertEq(market.credits(solver), 1.5 ether);
        vm.assertEq(market.credits(treasury), 1.5 ether);
        _expectConserved();
    }

    /// @dev An old dispute ends while the next verifier sits there, without a verdict and with one.
    function test_attack_slashing_the_next_verifier_with_an_old_dispute() public {
        _toVerdict(true);
        uint256 first = _challenge(challenger);
        uint256 second = _challenge(challenger);
        game.report(_challenge(solver), false);
        _join(nextVerifier);
        uint64 deadline = market.task(id).deadline;
        game.report(first, false);
        vm.assertEq(market.task(id).verifier, nextVerifier);
        vm.assertEq(market.task(id).deadline, deadline);
        _verdict(nextVerifier, true);
        game.report(second, false);
        _expectStatus(Status.Verdict);
        vm.assertEq(market.task(id).verifier, nextVerifier);
        _expectConserved();
    }

    /// @dev The game must be able to end every dispute, whatever became of its task, and nothing is paid twice.
    function test_attack_a_resolution_that_reverts_for_ever() public {
        _toVerdict(true);
        uint256 first = _challenge(challenger);
        uint256 second = _challenge(challenger);
        game.report(_challenge(solver), false);
        market.releaseBond(first);
        uint256 credited = market.credits(challenger);
        game.report(first, false);
        vm.assertEq(market.credits(challenger), credited);
        game.report(second, true);
        game.report(second, false);
        vm.assertEq(market.credits(challenger), credited + 1.5 ether);
        _expectConserved();
    }

    /// @dev What one end costs does not grow with the number of disputes.
    function test_attack_a_resolution_that_exceeds_a_block() public {
        _toVerdict(true);
        for (uint256 i = 0; i < 300; ++i) {
            _challenge();
        }
        game.report(300, false);
        vm.assertLt(vm.lastCallGas().gasTotalUsed, 200_000);
        _expectStatus(Status.Drawn);
    }

    /// @dev No number, hash or address of zero stands for something that is there.
    function test_attack_zero_means_something() public {
        _toDisputed(true);
        vm.assertEq(market.claimHash(id, 1, 2), 0);
        Claim memory claim;
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.UnknownClaim.selector, uint32(2)));
        market.challenge{value: 1.5 ether}(id, 2, claim, 1, 0, HEADER, PAYLOAD);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.UnknownDispute.selector, 0));
        game.report(0, false);
    }

    /// @dev After a reorganisation another verdict may stand at the same index: the challenge names the claim itself.
    function test_attack_a_reorg_that_swaps_the_claim() public {
        _toVerdict(true);
        Claim memory seen = _claim(0);
        seen.replay = "of the verdict that is gone";
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.UnknownClaim.selector, uint32(0)));
        market.challenge{value: 1 ether}(id, 0, seen, 1, 0, HEADER, PAYLOAD);
    }
}
