// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ProfileBase} from "./ProfileBase.sol";
import {Desk, IProfiles, ITaskRegistry, NaiveLog, Rerun, Status, Witness} from "./MarketBase.sol";

/// @notice How a liar gets away, is paid twice, or harms the honest: none of it works.
contract ProfileAttacksTest is ProfileBase {
    /// @dev A zero state, an integer that differs, a sum that is infinite: no dispute could be about the first, and no
    /// threshold follows from the others. They are in the root, but no witness shows them.
    function test_attack_reruns_from_which_nothing_follows() public {
        Rerun[3] memory bad = [_rerun(2), _rerun(2), _rerun(2)];
        bad[0].end = 0;
        bad[1].distances[1] = 1 << 160;
        bad[2].distances[1] = type(uint256).max;
        for (uint256 i = 0; i < 3; ++i) {
            bytes32[] memory leaves = _leaves();
            leaves[2] = keccak256(abi.encode(bad[i]));
            _postLeaves(leaves);
            Witness memory hidden = Witness(2, bad[i], NaiveLog.inclusionPath(leaves, 2, 0, leaves.length));
            _convict(challenger, hidden, 2);
            vm.assertEq(registry.task(id).holder, address(0));
        }
        vm.assertEq(_gain(challenger), 3 * 2 ether);
    }

    function test_attack_a_verifier_does_not_convict_itself() public {
        Witness memory hidden = _understate();
        _expectRefusal(verifier, abi.encodeWithSelector(Desk.NotAllowed.selector, verifier));
        profiles.convict(id, _portions(), hidden, 2);
    }

    /// @dev Thresholds that have been agreed to are not overturned.
    function test_attack_convicting_after_the_window() public {
        Witness memory hidden = _understate();
        uint64 deadline = profiles.profile(id).deadline;
        _pass(10 minutes + 1);
        _expectRefusal(challenger, abi.encodeWithSelector(ITaskRegistry.DeadlinePassed.selector, deadline));
        profiles.convict(id, _portions(), hidden, 2);
    }

    /// @dev Who convicts at once is paid, and the dispute that was open is moot.
    function test_attack_losing_a_dispute_after_a_conviction() public {
        Witness memory hidden = _understate();
        _chargePortion(solver);
        _convict(challenger, hidden, 2);
        profileGame.finish(true);
        vm.expectEmit(address(profiles));
        emit IProfiles.ProfileDisputeMoot(id, 1, 1);
        profiles.settleDispute(1);
        vm.assertEq(_gain(solver), 0);
        vm.assertEq(_gain(challenger), 2 ether);
    }

    /// @dev A dispute about the first profile ends while the second verifier has posted its own.
    function test_attack_slashing_the_next_verifier_with_an_old_dispute() public {
        _chargePortion(challenger);
        _chargePortion(solver);
        _chargePortion(challenger);
        _endProfile(1, false);
        _seat(nextVerifier);
        _endProfile(2, false);
        _profile(nextVerifier);
        _endProfile(3, false);
        vm.assertEq(registry.task(id).holder, nextVerifier);
        vm.assertEq(profiles.profile(id).verifier, nextVerifier);
        vm.assertEq(profiles.profile(id).open, 0);
        vm.assertEq(_bond(), 1 ether);
        _conclude();
        vm.assertEq(_gain(nextVerifier), 1 ether);
        vm.assertEq(_gain(solver), 0);
    }

    /// @dev Who challenges a true profile everywhere at once would win by time if all disputes had one clock.
    function test_attack_more_challenges_at_once_than_a_clock_has_time_for() public {
        for (uint256 n = 1; n <= 3; ++n) {
            _chargePortion(challenger);
            vm.assertEq(uint256(_started().clock), n * 10 minutes);
        }
        _endProfile(2, true);
        _chargePortion(challenger);
        vm.assertEq(uint256(_started().clock), 30 minutes);
    }

    /// @dev A bond comes back once: by itself, or when somebody asks.
    function test_attack_a_bond_that_is_released_twice() public {
        _chargePortion(challenger);
        _chargePortion(solver);
        vm.expectRevert(abi.encodeWithSelector(IProfiles.NothingToSettle.selector, 2));
        profiles.settleDispute(2);
        _endProfile(1, false);
        profiles.settleDispute(2);
        vm.assertEq(_gain(solver), 0);
        vm.expectRevert(abi.encodeWithSelector(IProfiles.NothingToSettle.selector, 2));
        profiles.settleDispute(2);
        vm.expectRevert(abi.encodeWithSelector(IProfiles.NothingToSettle.selector, 1));
        profiles.settleDispute(1);
        vm.expectRevert(abi.encodeWithSelector(IProfiles.UnknownDispute.selector, 3));
        profiles.settleDispute(3);
        profileGame.report(2, false);
        _expectVoid(challenger);
    }

    function test_attack_results_from_strangers() public {
        _chargePortion(challenger);
        vm.startPrank(challenger);
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, challenger));
        profiles.onResolved(1, false);
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, challenger));
        profiles.cancel(id);
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, challenger));
        seats.slash(id, challenger, 10_000);
        vm.stopPrank();
        vm.expectRevert(abi.encodeWithSelector(IProfiles.UnknownDispute.selector, 2));
        profileGame.report(2, false);
        // The game of the verdicts has no say here, and the other way round.
        _expectRefusal(address(game), abi.encodeWithSelector(Desk.NotAllowed.selector, address(game)));
        profiles.onResolved(1, false);
        _expectRefusal(address(profileGame), abi.encodeWithSelector(Desk.NotAllowed.selector, address(profileGame)));
        challenges.onResolved(1, false);
    }

    /// @dev Nothing about a profile is overturned once it is final, however the game goes on.
    function test_attack_a_final_profile_is_beyond_challenge() public {
        uint64 deadline = profiles.profile(id).deadline;
        _chargePortion(challenger);
        _finishProfile(true);
        _conclude();
        profileGame.report(1, false);
        vm.assertEq(profiles.thresholds(id)[0], THRESHOLD);
        Witness memory rerun = _witness(0);
        _expectRefusal(challenger, abi.encodeWithSelector(ITaskRegistry.DeadlinePassed.selector, deadline));
        profiles.convict(id, _portions(), rerun, 1);
        _award();
        _expectStatus(Status.Training);
    }

    function test_attack_a_resolution_that_exceeds_a_block() public {
        for (uint256 i = 0; i < 100; ++i) {
            _chargePortion(challenger);
        }
        _endProfile(100, false);
        vm.assertLt(vm.lastCallGas().gasTotalUsed, 250_000);
        _expectStatus(Status.Profiling);
    }
}
