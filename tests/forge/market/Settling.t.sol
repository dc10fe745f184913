// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IProfiles} from "../../../contracts/market/IProfiles.sol";
import {ISettlement} from "../../../contracts/market/ISettlement.sol";
import {Ending, Status} from "../../../contracts/market/TaskTypes.sol";
import {ProfileBase} from "./ProfileBase.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice Between the end of a dispute in the game and `settleDispute`, which anybody may call at any later time:
/// nobody loses by it.
contract SettlingTest is MarketBase {
    function test_the_game_only_has_its_result_noted() public {
        _toContested(true);
        uint256 number = _challenge();
        bytes memory before = _balances();
        game.report(number, false);
        _expectStatus(Status.Contested);
        vm.assertTrue(challenges.dispute(number).ending == Ending.Fell);
        vm.assertTrue(challenges.contested(id).fell && challenges.contested(id).open == 1);
        vm.assertEq(registry.task(id).holder, verifier);
        vm.assertEq(_balances(), before);
        // Whoever is here, and whenever.
        _pass(1_000 days);
        vm.prank(account("stranger"));
        challenges.settleDispute(number);
        _expectStatus(Status.Committed);
        vm.assertEq(_gain(challenger), 2 ether);
        vm.assertEq(_gain(verifier), -3 ether);
        vm.assertEq(_rest(), 2 ether);
    }

    function test_a_task_waits_for_a_loss_that_nobody_has_settled() public {
        _toContested(true);
        uint256 lost = _challenge();
        uint256 stood = _challenge();
        game.report(stood, true);
        game.report(lost, false);
        _pass(_terms().challengeWindow + 1);
        vm.expectRevert(abi.encodeWithSelector(ISettlement.DisputesOpen.selector, uint32(2)));
        settlement.settle(id);
        // Moot: the other one has decided.
        challenges.settleDispute(stood);
        vm.expectRevert(abi.encodeWithSelector(ISettlement.DisputesOpen.selector, uint32(1)));
        settlement.settle(id);
        vm.expectRevert();
        settlement.claimSeatDefault(id);
        vm.assertEq(_gain(challenger), -1 ether);
        challenges.settleDispute(lost);
        vm.assertEq(_gain(challenger), 2 ether);
        vm.assertEq(_gain(verifier), -3 ether);
    }

    /// @dev Who wins first is paid, though others win later and settle earlier.
    function test_the_first_to_win_is_paid_whoever_settles_first() public {
        _toContested(true);
        uint256 first = _challenge(challenger);
        uint256 second = _challenge(solver);
        uint256 third = _challenge(nextVerifier);
        game.report(second, false);
        game.report(first, false);
        challenges.settleDispute(first);
        challenges.settleDispute(third);
        vm.assertEq(_gain(challenger), 0);
        vm.assertEq(_gain(nextVerifier), 0);
        _expectStatus(Status.Contested);
        challenges.settleDispute(second);
        vm.assertEq(_gain(solver), -5 ether + 2 ether);
        vm.assertEq(_gain(verifier), -3 ether);
    }

    /// @dev Who stops playing because the verdict has fallen elsewhere keeps its bond, though the verifier settles
    /// first.
    function test_a_verifier_that_has_lost_earns_nothing_from_the_others() public {
        _toContested(true);
        uint256 first = _challenge(challenger);
        uint256 second = _challenge(solver);
        game.report(second, false);
        game.report(first, true);
        vm.prank(verifier);
        challenges.settleDispute(first);
        vm.assertEq(_gain(challenger), 0);
        vm.assertEq(_gain(verifier), -3 ether);
        challenges.settleDispute(second);
        vm.assertEq(_gain(solver), -5 ether + 2 ether);
    }

    function test_what_the_game_costs_to_end_is_little() public {
        _toContested(true);
        uint256 number = _challenge();
        vm.cool(address(challenges));
        vm.startPrank(address(game));
        challenges.onResolved(number, false);
        vm.assertLt(vm.lastCallGas().gasTotalUsed, 20_000);
    }

    function _balances() private view returns (bytes memory) {
        return abi.encode(vault.free(challenger), vault.free(verifier), vault.free(treasury), _rest());
    }
}

/// @notice The same for profiles.
contract SettlingProfilesTest is ProfileBase {
    function test_the_game_only_has_its_result_noted() public {
        _chargePortion(challenger);
        profileGame.report(1, false);
        vm.assertTrue(profiles.dispute(1).ending == Ending.Fell);
        vm.assertTrue(profiles.profile(id).fell && profiles.profile(id).open == 1);
        vm.assertEq(_gain(challenger), -1 ether);
        _pass(1_000 days);
        vm.expectRevert(abi.encodeWithSelector(IProfiles.DisputesOpen.selector, uint32(1)));
        profiles.conclude(id);
        vm.prank(account("stranger"));
        profiles.settleDispute(1);
        _expectVoid(challenger);
    }

    function test_the_first_to_win_is_paid_whoever_settles_first() public {
        _chargePortion(challenger);
        _chargePortion(solver);
        _chargePortion(nextVerifier);
        profileGame.report(2, false);
        profileGame.report(1, false);
        profileGame.report(3, true);
        profiles.settleDispute(1);
        profiles.settleDispute(3);
        vm.assertEq(_gain(challenger), 0);
        vm.assertEq(_gain(nextVerifier), 0);
        vm.assertEq(profiles.profile(id).open, 1);
        profiles.settleDispute(2);
        _expectVoid(solver);
        _seat(nextVerifier);
        _profile(nextVerifier);
        vm.assertFalse(profiles.profile(id).fell);
    }

    /// @dev It ends when the profile is gone and no other one there.
    function test_a_late_result_does_not_touch_the_next_profile() public {
        _chargePortion(challenger);
        _chargePortion(solver);
        _endProfile(1, false);
        profileGame.report(2, false);
        vm.assertFalse(profiles.profile(id).fell);
        _seat(nextVerifier);
        _profile(nextVerifier);
        profiles.settleDispute(2);
        vm.assertEq(profiles.profile(id).verifier, nextVerifier);
        vm.assertEq(_gain(solver), 0);
        _conclude();
    }
}
