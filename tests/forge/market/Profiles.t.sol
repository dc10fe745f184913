// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Charge, Opening, Portion, Profile, ProfileDispute} from "../../../contracts/market/ProfileTypes.sol";
import {ProfileBase, Reordered, Witness} from "./ProfileBase.sol";
import {Ending, IProfiles, ITaskRegistry, StartParams, Status} from "./MarketBase.sol";

/// @notice A profile from its post to its end, verb by verb: stake 3, bonds 1, 1.5, 1.5, ...
contract ProfilesTest is ProfileBase {
    function test_the_chain_computes_the_thresholds() public view {
        Profile memory p = profiles.profile(id);
        for (uint256 c = 0; c < 3; ++c) {
            vm.assertEq(p.thresholds[c], _thresholds()[c]);
        }
        vm.assertEq(p.verifier, verifier);
        vm.assertEq(p.deadline, block.timestamp + 10 minutes);
        vm.assertTrue(p.number == 1 && p.challenges == 0 && p.open == 0);
    }

    function test_what_is_posted_is_in_the_event() public {
        (Portion[] memory portions, bytes32 root, Witness[3] memory witnesses) = _measured();
        id = registry.computeTaskId(submitter, 1, _terms());
        _submit();
        _seat(verifier);
        uint64 deadline = uint64(block.timestamp) + 10 minutes;
        vm.expectEmit(address(profiles));
        emit IProfiles.ProfilePosted(id, 1, verifier, portions, root, witnesses, _thresholds(), "profile", deadline);
        _profile();
    }

    function test_what_nobody_could_dispute_is_not_posted() public {
        _fresh();
        (Portion[] memory portions, bytes32 root, Witness[3] memory witnesses) = _measured();
        _expectRefused(portions, 0, witnesses, "profile", abi.encodeWithSelector(ITaskRegistry.ZeroHash.selector));
        _expectRefused(portions, root, witnesses, 0, abi.encodeWithSelector(ITaskRegistry.ZeroHash.selector));
        portions[1].end = 0;
        _expectRefused(portions, root, witnesses, "profile", abi.encodeWithSelector(ITaskRegistry.ZeroHash.selector));
        portions = _portions();
        for (uint256 c = 0; c < 3; ++c) {
            (,, witnesses) = _measured();
            witnesses[c] = _witness(WORST);
            witnesses[c].rerun.end = 0;
            _expectRefused(
                portions, root, witnesses, "profile", abi.encodeWithSelector(ITaskRegistry.ZeroHash.selector)
            );
        }
        (,, witnesses) = _measured();
        bytes memory reason = abi.encodeWithSelector(IProfiles.WrongPortionCount.selector, 2);
        _expectRefused(new Portion[](0), root, witnesses, "profile", reason);
        _expectRefused(new Portion[](1), root, witnesses, "profile", reason);
        _expectRefused(new Portion[](3), root, witnesses, "profile", reason);
    }

    function test_a_witness_is_in_the_root_at_its_index() public {
        _fresh();
        (Portion[] memory portions, bytes32 root, Witness[3] memory witnesses) = _measured();
        for (uint256 c = 0; c < 3; ++c) {
            (,, witnesses) = _measured();
            witnesses[c] = _witness(WORST);
            witnesses[c].index = 5;
            _expectRefused(
                portions, root, witnesses, "profile", abi.encodeWithSelector(IProfiles.NotInReruns.selector, 5)
            );
            witnesses[c].index = 6;
            _expectRefused(
                portions, root, witnesses, "profile", abi.encodeWithSelector(IProfiles.NotInReruns.selector, 6)
            );
            witnesses[c].index = WORST;
            witnesses[c].rerun.distances[c] += 1;
            _expectRefused(
                portions, root, witnesses, "profile", abi.encodeWithSelector(IProfiles.NotInReruns.selector, WORST)
            );
        }
    }

    function test_a_witness_without_a_ratio_makes_no_profile() public {
        _fresh();
        (Portion[] memory portions, bytes32 root, Witness[3] memory witnesses) = _measured();
        for (uint8 c = 0; c < 3; ++c) {
            portions = _portions();
            portions[1].references[c] = 1 << 160;
            bytes memory reason = abi.encodeWithSelector(IProfiles.NoThreshold.selector, c + 1);
            _expectRefused(portions, root, witnesses, "profile", reason);
        }
    }

    function test_a_profile_is_final_after_its_window_and_every_dispute() public {
        uint64 deadline = profiles.profile(id).deadline;
        vm.warp(deadline);
        _expectNotFinal(abi.encodeWithSelector(IProfiles.Contestable.selector, deadline));
        _chargePortion(challenger);
        _chargePortion(solver);
        _pass(1_000 days);
        _expectNotFinal(abi.encodeWithSelector(IProfiles.DisputesOpen.selector, 2));
        _endProfile(1, true);
        _expectNotFinal(abi.encodeWithSelector(IProfiles.DisputesOpen.selector, 1));
        _endProfile(2, true);
        vm.expectRevert(abi.encodeWithSelector(IProfiles.NoProfile.selector, id));
        profiles.thresholds(id);
        vm.prank(challenger);
        vm.expectEmit(address(profiles));
        emit IProfiles.ProfileConcluded(id, 1, verifier);
        profiles.conclude(id);
        vm.assertEq(profiles.thresholds(id)[2], 3 * THRESHOLD);
        vm.assertTrue(profiles.profile(id).concluded);
        _expectStatus(Status.Bidding);
        // Fee, and half of two bonds.
        vm.assertEq(_gain(verifier), 1 ether + 1.5 ether);
        vm.expectRevert(abi.encodeWithSelector(ITaskRegistry.WrongStatus.selector, id, Status.Bidding));
        profiles.conclude(id);
    }

    function test_a_portion_is_replayed_from_the_one_before() public {
        _chargePortion(challenger);
        StartParams memory params = _started();
        vm.assertTrue(params.asserter == verifier && params.challenger == challenger);
        vm.assertTrue(params.kind == 1 && params.component == 0 && params.clock == 10 minutes);
        vm.assertTrue(params.program == "program" && params.constants == "constants");
        vm.assertTrue(params.firstStep == 10 && params.steps == 10);
        vm.assertTrue(params.start == _portions()[0].end && params.end == _portions()[1].end);
        vm.assertTrue(params.x == 0 && params.y == 0 && params.sum == 0);
        vm.assertEq(profileGame.header(), HEADER);
        vm.assertEq(profileGame.payload(), PAYLOAD);
        _announceProfileCharge(challenger, Charge.Portion, 0, 0);
        vm.prank(challenger);
        profiles.challengePortion(id, _portions(), 0, _opening());
        params = _started();
        vm.assertTrue(params.start == log[0] && params.end == _portions()[0].end && params.firstStep == 0);
    }

    function test_a_rerun_is_replayed_with_the_program_of_the_terms() public {
        for (uint32 index = 0; index < 6; ++index) {
            _announceProfileCharge(challenger, Charge.Rerun, index, 0);
            (Portion[] memory portions, Witness memory rerun) = (_portions(), _witness(index));
            Reordered memory reordered = _reordered(index % RERUNS);
            uint128 bond = _bond();
            vm.prank(challenger);
            vm.expectEmit(address(profiles));
            emit IProfiles.ProfileChallenged(id, 1, challenger, index + 1, Charge.Rerun, index, 0, bond);
            profiles.challengeRerun(id, portions, rerun, reordered, _opening());
            StartParams memory params = _started();
            vm.assertTrue(params.kind == 1 && params.program == _programs()[index % 3]);
            vm.assertTrue(params.constants == "constants" && params.clock == (index + 1) * 10 minutes);
            vm.assertTrue(params.firstStep == index / 3 * 10 && params.steps == 10);
            vm.assertTrue(params.start == (index < 3 ? log[0] : _portions()[0].end));
            vm.assertTrue(params.end == _rerun(index).end);
        }
    }

    function test_a_distance_lies_between_a_portion_and_a_rerun() public {
        for (uint8 c = 1; c <= 3; ++c) {
            _chargeDistance(c + 1, c);
            StartParams memory params = _started();
            vm.assertTrue(params.kind == 2 && params.component == c && params.program == "program");
            vm.assertTrue(params.x == _portions()[(c + 1) / 3].end && params.y == _rerun(c + 1).end);
            vm.assertTrue(params.sum == _rerun(c + 1).distances[c - 1] && params.clock == c * 10 minutes);
        }
    }

    function test_a_reference_lies_between_a_portion_and_its_start() public {
        for (uint32 k = 0; k < 2; ++k) {
            for (uint8 c = 1; c <= 3; ++c) {
                _chargeReference(k, c);
                StartParams memory params = _started();
                vm.assertTrue(params.kind == 3 && params.component == c && params.program == "program");
                vm.assertTrue(params.x == _portions()[k].end);
                vm.assertTrue(params.y == (k == 0 ? log[0] : _portions()[0].end));
                vm.assertTrue(params.sum == 1 << 64 && params.clock == (3 * k + c) * 10 minutes);
            }
        }
    }

    function test_there_is_no_other_portion_and_no_other_component() public {
        bytes memory reason = abi.encodeWithSelector(IProfiles.InvalidCharge.selector, 2, 1);
        vm.startPrank(challenger);
        vm.expectRevert(reason);
        profiles.challengePortion(id, _portions(), 2, _opening());
        vm.expectRevert(reason);
        profiles.challengeReference(id, _portions(), 2, 1, _opening());
        Witness memory first = _witness(0);
        for (uint8 c = 0; c < 8; c += 4) {
            reason = abi.encodeWithSelector(IProfiles.InvalidCharge.selector, 0, c);
            vm.expectRevert(reason);
            profiles.challengeReference(id, _portions(), 0, c, _opening());
            vm.expectRevert(reason);
            profiles.challengeDistance(id, _portions(), first, c, _opening());
            vm.expectRevert(reason);
            profiles.convict(id, _portions(), first, c);
        }
    }

    function test_a_challenge_names_the_portions_the_rerun_and_the_program() public {
        Portion[] memory other = _portions();
        other[0].references[2] += 1;
        (Witness memory rerun, Reordered memory reordered) = (_witness(4), _reordered(1));
        vm.startPrank(challenger);
        vm.expectRevert(IProfiles.WrongPortions.selector);
        profiles.challengePortion(id, other, 0, _opening());
        vm.expectRevert(IProfiles.WrongPortions.selector);
        profiles.challengeRerun(id, other, rerun, reordered, _opening());
        vm.expectRevert(IProfiles.WrongPortions.selector);
        profiles.challengeDistance(id, other, rerun, 1, _opening());
        vm.expectRevert(IProfiles.WrongPortions.selector);
        profiles.challengeReference(id, other, 0, 1, _opening());
        vm.expectRevert(IProfiles.WrongPortions.selector);
        profiles.convict(id, other, rerun, 1);
        rerun.index = 3;
        vm.expectRevert(abi.encodeWithSelector(IProfiles.NotInReruns.selector, 3));
        profiles.challengeRerun(id, _portions(), rerun, reordered, _opening());
        vm.expectRevert(abi.encodeWithSelector(IProfiles.NotInReruns.selector, 3));
        profiles.challengeDistance(id, _portions(), rerun, 1, _opening());
        vm.expectRevert(abi.encodeWithSelector(IProfiles.NotInReruns.selector, 3));
        profiles.convict(id, _portions(), rerun, 1);
        rerun.index = 4;
        for (uint256 j = 0; j < 3; j += 2) {
            reordered = _reordered(j);
            vm.expectRevert(abi.encodeWithSelector(IProfiles.NotInPrograms.selector, 1));
            profiles.challengeRerun(id, _portions(), rerun, reordered, _opening());
        }
        reordered = _reordered(1);
        reordered.program = "program";
        vm.expectRevert(abi.encodeWithSelector(IProfiles.NotInPrograms.selector, 1));
        profiles.challengeRerun(id, _portions(), rerun, reordered, _opening());
    }

    function test_bonds_grow_up_to_what_a_challenger_is_willing_to_lock() public {
        Portion[] memory portions = _portions();
        _expectRefusal(challenger, abi.encodeWithSelector(IProfiles.BondTooHigh.selector, uint128(1 ether)));
        profiles.challengePortion(id, portions, 0, Opening(HEADER, PAYLOAD, 1 ether - 1));
        _announceProfileCharge(challenger, Charge.Portion, 0, 0);
        vm.prank(challenger);
        profiles.challengePortion(id, portions, 0, Opening(HEADER, PAYLOAD, 1 ether));
        vm.assertEq(_gain(challenger), -1 ether);
        vm.assertEq(_bond(), 2 ether);
        ProfileDispute memory d = profiles.dispute(1);
        vm.assertTrue(d.taskId == id && d.challenger == challenger && d.profile == 1);
        vm.assertTrue(d.ending == Ending.None);
        vm.assertEq(d.bond, 1 ether);
        _expectRefusal(solver, abi.encodeWithSelector(IProfiles.BondTooHigh.selector, uint128(2 ether)));
        profiles.challengePortion(id, portions, 0, Opening(HEADER, PAYLOAD, 2 ether - 1));
        _chargePortion(solver);
        vm.assertEq(profiles.dispute(2).bond, 2 ether);
        vm.assertTrue(profiles.profile(id).challenges == 2 && profiles.profile(id).open == 2);
    }

    function test_an_understated_threshold_convicts_at_once() public {
        Witness memory hidden = _understate();
        _expectRefusal(challenger, abi.encodeWithSelector(IProfiles.NotUnderstated.selector, THRESHOLD));
        profiles.convict(id, _portions(), hidden, 1);
        _announceConviction(challenger, hidden, 2);
        vm.expectEmit(address(profiles));
        emit IProfiles.ProfileUnderstated(id, 1, 0, 2);
        vm.prank(challenger);
        profiles.convict(id, _portions(), hidden, 2);
        vm.assertEq(_gain(challenger), 2 ether);
        vm.assertEq(registry.task(id).holder, address(0));
        _expectRefusal(challenger, abi.encodeWithSelector(IProfiles.NoProfile.selector, id));
        profiles.convict(id, _portions(), hidden, 2);
    }

    function test_equal_ratios_and_lower_ones_convict_nobody() public {
        for (uint32 index = 0; index < 6; ++index) {
            Witness memory rerun = _witness(index);
            for (uint8 c = 1; c <= 3; ++c) {
                vm.prank(challenger);
                vm.expectRevert(abi.encodeWithSelector(IProfiles.NotUnderstated.selector, _thresholds()[c - 1]));
                profiles.convict(id, _portions(), rerun, c);
            }
        }
    }

    function _fresh() private {
        id = registry.computeTaskId(submitter, 1, _terms());
        _submit();
        _seat(verifier);
    }

    function _expectRefused(
        Portion[] memory portions,
        bytes32 root,
        Witness[3] memory witnesses,
        bytes32 digest,
        bytes memory reason
    ) private {
        _expectRefusal(verifier, reason);
        profiles.post(id, portions, root, witnesses, digest);
    }

    function _expectNotFinal(bytes memory reason) private {
        vm.expectRevert(reason);
        profiles.conclude(id);
    }
}
