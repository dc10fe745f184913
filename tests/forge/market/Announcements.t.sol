// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Announcements} from "../../../contracts/market/Announcements.sol";
import {ProfileBase} from "./ProfileBase.sol";
import {Charge, ClaimCharge, IProfiles, ITaskRegistry, Opening, Portion, Status, Witness} from "./MarketBase.sol";

/// @notice Reports that somebody wants to copy: whoever has announced first is paid.
contract AnnouncementsTest is ProfileBase {
    address private copier = account("copier");

    function test_the_first_announcement_stays() public {
        Announcements[3] memory desks = [Announcements(verdicts), profiles, challenges];
        for (uint256 i = 0; i < 3; ++i) {
            uint256 number = vm.getBlockNumber();
            vm.assertEq(desks[i].announcedAt("digest"), 0);
            vm.expectEmit(address(desks[i]));
            emit Announcements.Announced("digest", number);
            desks[i].announce("digest");
            vm.roll(number + 5);
            vm.recordLogs();
            desks[i].announce("digest");
            vm.assertEq(vm.getRecordedLogs().length, 0);
            vm.assertEq(desks[i].announcedAt("digest"), number);
        }
    }

    /// @dev In the block of the report, in front of it.
    function test_attack_copying_a_leak_in_its_block() public {
        _toSeated();
        _announceLeak(challenger, secret);
        verdicts.announce(_leak(copier));
        _expectNoReport(copier);
        vm.prank(challenger);
        verdicts.reportLeak(id, secret);
        vm.assertEq(_gain(challenger), 2 ether);
        vm.assertEq(_gain(copier), 0);
    }

    function test_attack_copying_a_conviction_in_its_block() public {
        Witness memory hidden = _understate();
        _announceConviction(challenger, hidden, 2);
        profiles.announce(_conviction(copier, hidden, 2));
        _expectNoConviction(copier, hidden, 2);
        vm.prank(challenger);
        profiles.convict(id, _portions(), hidden, 2);
        vm.assertEq(_gain(challenger), 2 ether);
        vm.assertEq(_gain(copier), 0);
    }

    /// @dev It announces as soon as it has seen the report, and sends its own a block later.
    function test_attack_copying_a_block_later() public {
        Witness memory hidden = _understate();
        _announceConviction(challenger, hidden, 2);
        profiles.announce(_conviction(copier, hidden, 2));
        vm.prank(challenger);
        profiles.convict(id, _portions(), hidden, 2);
        vm.roll(vm.getBlockNumber() + 1);
        _expectRefusal(copier, abi.encodeWithSelector(IProfiles.NoProfile.selector, id));
        profiles.convict(id, _portions(), hidden, 2);
        _seat(nextVerifier);
        _profile(nextVerifier);
        _toSeated();
        _announceLeak(challenger, secret);
        verdicts.announce(_leak(copier));
        vm.prank(challenger);
        verdicts.reportLeak(id, secret);
        vm.roll(vm.getBlockNumber() + 1);
        _expectRefusal(copier, abi.encodeWithSelector(ITaskRegistry.WrongStatus.selector, id, Status.Committed));
        verdicts.reportLeak(id, secret);
        vm.assertEq(_gain(copier), 0);
    }

    /// @dev In the block of the challenge, in front of it: the copier has the opening, but not the block before.
    function test_attack_copying_a_challenge_in_its_block() public {
        _toSeated();
        _judge(verifier, true);
        ClaimCharge memory charge = _chargeOf(0, true);
        _announceCharge(challenger, charge);
        challenges.announce(_charged(copier, charge, PAYLOAD));
        _expectNoChallenge(copier, charge, PAYLOAD);
        vm.prank(challenger);
        challenges.challenge(id, charge, _opening());
        _finish(false);
        vm.assertEq(_gain(challenger), 2 ether);
        vm.assertEq(_gain(copier), 0);
    }

    /// @dev Whoever announces what it could charge, without an opening of its own, has announced nothing.
    function test_attack_announcing_a_challenge_without_an_execution() public {
        _toSeated();
        _judge(verifier, true);
        ClaimCharge memory charge = _chargeOf(0, true);
        challenges.announce(_charged(copier, charge, "a guess"));
        challenges.announce(_charged(copier, charge, ""));
        (charge.kind, charge.component) = (2, 1);
        challenges.announce(_charged(copier, charge, PAYLOAD));
        (charge.kind, charge.component, charge.index) = (1, 0, 1);
        challenges.announce(_charged(copier, charge, PAYLOAD));
        (charge.index, charge.rerun) = (0, 1);
        challenges.announce(_charged(copier, charge, PAYLOAD));
        charge.rerun = 0;
        vm.roll(vm.getBlockNumber() + 1);
        _expectNoChallenge(copier, charge, PAYLOAD);
    }

    function test_attack_copying_a_challenge_of_a_profile_in_its_block() public {
        Portion[] memory portions = _portions();
        _announceProfileCharge(challenger, Charge.Portion, 1, 0);
        bytes32 evidence = keccak256(abi.encode(Charge.Portion, uint32(1), uint8(0), keccak256(PAYLOAD)));
        bytes32 digest = keccak256(abi.encode(copier, id, evidence));
        profiles.announce(digest);
        _expectRefusal(copier, abi.encodeWithSelector(Announcements.NotAnnounced.selector, digest));
        profiles.challengePortion(id, portions, 1, _opening());
        vm.prank(challenger);
        profiles.challengePortion(id, portions, 1, _opening());
        vm.assertEq(profiles.dispute(1).challenger, challenger);
    }

    /// @dev A copy of the announcement itself, in front of it or after it, binds who has written it and harms nobody.
    function test_attack_copying_an_announcement() public {
        _toSeated();
        vm.prank(copier);
        verdicts.announce(_leak(challenger));
        _announceLeak(challenger, secret);
        _expectNoReport(copier);
        vm.prank(challenger);
        verdicts.reportLeak(id, secret);
        vm.assertEq(_gain(challenger), 2 ether);
    }

    /// @dev An announcement says nothing about another task, another rerun, another component or another desk.
    function test_attack_announcing_something_else() public {
        Witness memory hidden = _understate();
        bytes32 task = id;
        bytes32 meant = _conviction(copier, hidden, 2);
        profiles.announce(_conviction(copier, hidden, 1));
        profiles.announce(_conviction(copier, _witness(0), 2));
        verdicts.announce(meant);
        id = "another task";
        profiles.announce(_conviction(copier, hidden, 2));
        id = task;
        vm.roll(vm.getBlockNumber() + 1);
        _expectNoConviction(copier, hidden, 2);
        _convict(copier, hidden, 2);
        vm.assertEq(_gain(copier), 2 ether);
    }

    /// @dev Announced and shown at once, in one transaction or in one block.
    function test_attack_announcing_in_the_block_of_the_report() public {
        _toSeated();
        verdicts.announce(_leak(challenger));
        _expectNoReport(challenger);
        vm.roll(vm.getBlockNumber() + 1);
        vm.prank(challenger);
        verdicts.reportLeak(id, secret);
        vm.assertEq(_gain(challenger), 2 ether);
    }

    function _expectNoChallenge(address who, ClaimCharge memory charge, bytes memory payload) private {
        bytes32 digest = _charged(who, charge, payload);
        _expectRefusal(who, abi.encodeWithSelector(Announcements.NotAnnounced.selector, digest));
        challenges.challenge(id, charge, Opening(HEADER, payload, type(uint128).max));
    }

    function _toSeated() private {
        _conclude();
        _award();
        _commit();
        _seatVerifier(verifier, false);
    }

    function _leak(address who) private view returns (bytes32) {
        return keccak256(abi.encode(who, id, keccak256(abi.encode(secret))));
    }

    function _conviction(address who, Witness memory rerun, uint8 component) private view returns (bytes32) {
        return keccak256(abi.encode(who, id, keccak256(abi.encode(rerun, component))));
    }

    function _expectNoReport(address who) private {
        _expectRefusal(who, abi.encodeWithSelector(Announcements.NotAnnounced.selector, _leak(who)));
        verdicts.reportLeak(id, secret);
    }

    function _expectNoConviction(address who, Witness memory rerun, uint8 component) private {
        bytes32 digest = _conviction(who, rerun, component);
        _expectRefusal(who, abi.encodeWithSelector(Announcements.NotAnnounced.selector, digest));
        profiles.convict(id, _portions(), rerun, component);
    }
}
