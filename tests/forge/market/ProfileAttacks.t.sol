// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IProfiles} from "../../../contracts/market/IProfiles.sol";
import {ITaskMarket} from "../../../contracts/market/ITaskMarket.sol";
import {Ledger} from "../../../contracts/market/Ledger.sol";
import {Opening, Portion, Rerun, Witness} from "../../../contracts/market/ProfileTypes.sol";
import {Profiles} from "../../../contracts/market/Profiles.sol";
import {Status} from "../../../contracts/market/TaskTypes.sol";
import {NaiveLog} from "../commitments/NaiveLog.sol";
import {ProfileBase} from "./ProfileBase.sol";

/// @notice A challenger whose wallet calls back while it is paid.
contract HostileChallenger {
    Profiles private immutable profiles;
    bytes private callback;
    uint256 public reentries;

    constructor(Profiles profiles_) payable {
        profiles = profiles_;
    }

    function challenge(bytes32 id, Portion[] calldata portions, Opening calldata opening) external {
        profiles.challengePortion{value: 2 ether}(id, portions, 0, opening);
    }

    function withdraw(bytes calldata callback_) external {
        callback = callback_;
        profiles.withdraw();
    }

    receive() external payable {
        (bool reentered,) = address(profiles).call(callback);
        if (reentered) ++reentries;
    }
}

/// @notice How a liar gets away, is paid twice, or harms the honest: none of it works.
contract ProfileAttacksTest is ProfileBase {
    /// @dev Whoever lied loses to a friend before others do: half of the stake is gone.
    function test_attack_self_dispute_costs_half_of_the_stake() public {
        _chargePortion(challenger);
        profileGame.finish(false);
        vm.assertEq(market.credits(challenger) + profiles.credits(challenger), 1.5 ether + 1 ether);
        vm.assertEq(market.credits(treasury), 1.5 ether);
    }

    /// @dev The friend loses on purpose, to keep the task from being accepted: half of every bond is gone.
    function test_attack_delaying_costs_half_of_every_bond() public {
        for (uint256 i = 0; i < 4; ++i) {
            _chargePortion(challenger);
        }
        for (uint256 number = 1; number <= 4; ++number) {
            profileGame.report(number, true);
        }
        vm.assertEq(profiles.credits(verifier), (1 ether + 3 * 1.5 ether) / 2);
        vm.assertEq(profiles.credits(treasury), (1 ether + 3 * 1.5 ether) / 2);
        _expectConserved();
    }

    /// @dev While somebody may still challenge, or has, neither the verifier goes nor the task.
    function test_attack_exit_that_outruns_a_challenge() public {
        uint64 deadline = profiles.profile(id).deadline;
        bytes memory reason = abi.encodeWithSelector(IProfiles.Contestable.selector, deadline);
        _expectNoExit(reason);
        _pass(10 minutes);
        _expectNoExit(reason);
        _chargePortion(challenger);
        _pass(1_000 days);
        _expectNoExit(abi.encodeWithSelector(ITaskMarket.DisputesOpen.selector, 1));
        profileGame.finish(true);
        vm.prank(verifier);
        market.leaveAsVerifier(id);
        vm.assertEq(market.credits(verifier), 3 ether);
        vm.assertEq(profiles.profile(id).verifier, address(0));
        vm.prank(submitter);
        market.cancelTask(id);
        _expectConserved();
    }

    function test_a_task_with_a_final_profile_is_cancelled_for_its_stake() public {
        _pass(10 minutes + 1);
        vm.prank(submitter);
        market.cancelTask(id);
        vm.assertEq(market.credits(verifier), 3 ether);
        vm.assertEq(market.credits(submitter), 10 ether);
        vm.assertEq(profiles.profile(id).verifier, address(0));
        _expectConserved();
    }

    /// @dev A zero state, an integer that differs, a sum that is infinite: no dispute could be about the first, and no threshold
    /// follows from the others. They are in the root, but no witness shows them.
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
            vm.prank(challenger);
            profiles.convict(id, _portions(), hidden, 2);
            vm.assertEq(market.task(id).verifier, address(0));
        }
        vm.assertEq(market.credits(challenger), 3 * 1.5 ether);
    }

    function test_attack_a_verifier_does_not_convict_itself() public {
        Witness memory hidden = _understate();
        vm.prank(verifier);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, verifier));
        profiles.convict(id, _portions(), hidden, 2);
    }

    /// @dev Thresholds that have been agreed to are not overturned.
    function test_attack_convicting_after_the_window() public {
        Witness memory hidden = _understate();
        uint64 deadline = profiles.profile(id).deadline;
        _pass(10 minutes + 1);
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.DeadlinePassed.selector, deadline));
        profiles.convict(id, _portions(), hidden, 2);
    }

    /// @dev Two are right: one stake is all there is to take, the second gets its bond back.
    function test_attack_convicting_twice() public {
        _chargePortion(challenger);
        _chargePortion(solver);
        profileGame.report(1, false);
        profileGame.report(2, false);
        vm.assertEq(profiles.credits(solver), 1.5 ether);
        vm.assertEq(market.credits(solver), 0);
        _expectVoid(challenger, 1 ether);
        profileGame.report(1, false);
        profileGame.report(2, true);
        _expectVoid(challenger, 1 ether);
    }

    /// @dev Who convicts at once is paid, and the dispute that was open is moot.
    function test_attack_losing_a_dispute_after_a_conviction() public {
        Witness memory hidden = _understate();
        _chargePortion(solver);
        vm.prank(challenger);
        profiles.convict(id, _portions(), hidden, 2);
        vm.expectEmit(address(profiles));
        emit IProfiles.ProfileDisputeMoot(id, 1, 1);
        profileGame.finish(true);
        vm.assertEq(profiles.credits(solver), 1 ether);
        vm.assertEq(market.credits(challenger), 1.5 ether);
        vm.assertEq(address(profiles).balance, 1 ether);
    }

    /// @dev A dispute about the first profile ends while the second verifier has posted its own.
    function test_attack_slashing_the_next_verifier_with_an_old_dispute() public {
        _chargePortion(challenger);
        _chargePortion(solver);
        _chargePortion(challenger);
        profileGame.report(1, false);
        _join(nextVerifier);
        profileGame.report(2, false);
        _profile(nextVerifier);
        profileGame.report(3, false);
        vm.assertEq(market.task(id).verifier, nextVerifier);
        vm.assertEq(profiles.profile(id).verifier, nextVerifier);
        vm.assertEq(profiles.profile(id).open, 0);
        vm.assertEq(_bond(), 1 ether);
        _expectConserved();
        verifier = nextVerifier;
        _accept();
    }

    /// @dev A bond comes back once: by itself, or when somebody asks.
    function test_attack_a_bond_that_is_released_twice() public {
        _chargePortion(challenger);
        _chargePortion(solver);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotMoot.selector, 2));
        profiles.releaseBond(2);
        profileGame.report(1, false);
        profiles.releaseBond(2);
        vm.assertEq(profiles.credits(solver), 1.5 ether);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotMoot.selector, 2));
        profiles.releaseBond(2);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotMoot.selector, 1));
        profiles.releaseBond(1);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.UnknownDispute.selector, 3));
        profiles.releaseBond(3);
        profileGame.report(2, false);
        _expectVoid(challenger, 1 ether);
    }

    function test_attack_results_and_verdicts_from_strangers() public {
        _chargePortion(challenger);
        vm.startPrank(challenger);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, challenger));
        profiles.onResolved(1, false);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, challenger));
        profiles.release(id);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, challenger));
        market.voidProfile(id, challenger);
        vm.stopPrank();
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.UnknownDispute.selector, 2));
        profileGame.report(2, false);
        // The game of the verdicts has no say here, and the other way round.
        vm.prank(address(game));
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, address(game)));
        profiles.onResolved(1, false);
        vm.prank(address(profileGame));
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, address(profileGame)));
        market.onResolved(1, false);
    }

    /// @dev No stake is taken for a profile once the task has begun, whoever asks.
    function test_attack_voiding_the_profile_of_a_training_task() public {
        _accept();
        vm.prank(address(profiles));
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongStatus.selector, id, uint8(Status.Training)));
        market.voidProfile(id, challenger);
    }

    function test_attack_reentering_pays_nothing_more() public {
        HostileChallenger hostile = new HostileChallenger{value: 10 ether}(profiles);
        hostile.challenge(id, _portions(), _opening());
        vm.assertEq(profiles.credits(address(hostile)), 1 ether);
        _chargePortion(challenger);
        hostile.withdraw(abi.encodeCall(Ledger.withdraw, ()));
        vm.assertEq(hostile.reentries(), 0);
        profileGame.report(2, false);
        profiles.releaseBond(1);
        hostile.withdraw(abi.encodeCall(Profiles.releaseBond, (1)));
        vm.assertEq(hostile.reentries(), 0);
        vm.assertEq(address(hostile).balance, 10 ether);
        _expectConserved();
    }

    function test_attack_a_resolution_that_exceeds_a_block() public {
        for (uint256 i = 0; i < 100; ++i) {
            _chargePortion(challenger);
        }
        profileGame.report(100, false);
        vm.assertLt(vm.lastCallGas().gasTotalUsed, 250_000);
        _expectStatus(Status.Open);
    }

    function test_plain_ether_is_refused() public {
        vm.prank(submitter);
        (bool taken,) = address(profiles).call{value: 1 ether}("");
        vm.assertFalse(taken);
    }

    function _expectNoExit(bytes memory reason) private {
        vm.prank(verifier);
        vm.expectRevert(reason);
        market.leaveAsVerifier(id);
        vm.prank(submitter);
        vm.expectRevert(reason);
        market.cancelTask(id);
    }
}
