// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {PATIENCE} from "../../../contracts/market/IBeacon.sol";
import {DataDemand} from "../../../contracts/market/IDataDemands.sol";
import {Status} from "../../../contracts/market/TaskTypes.sol";
import {Vm} from "../Base.sol";
import {CounterclaimBase} from "./CounterclaimBase.sol";
import {EventReplay} from "./EventReplay.sol";

/// @notice The chain is the database: after every stage, events alone give the state that the views of all desks give.
contract EventsTest is CounterclaimBase {
    EventReplay private bot;

    function setUp() public override {
        vm.recordLogs();
        super.setUp();
        bot = new EventReplay();
        _expectRebuilt();
    }

    function test_to_an_accepted_task_with_an_error_and_failed_challenges() public {
        _toBiddingRebuilt();
        _award();
        _expectRebuilt();
        _progress(2);
        _expectRebuilt();
        _commit();
        _expectRebuilt();
        _seatVerifier(verifier, true);
        _expectRebuilt();
        _verdict(verifier, true);
        _expectRebuilt();
        _openWatch();
        _expectRebuilt();
        (, uint32 index,) = _duty();
        _watch(watcher, index, true);
        _expectRebuilt();
        _disclose(verifier, true);
        _expectRebuilt();
        for (uint256 i = 0; i < 3; ++i) {
            _challenge();
            _expectRebuilt();
            _finish(true);
            _expectRebuilt();
        }
        _settle();
        _expectRebuilt();
        _catch(watcher, index, true);
        vm.prank(solver);
        vault.withdraw(solver, 1 ether);
        _expectRebuilt();
    }

    function test_to_a_rejected_task_with_a_void_verdict_and_defaults_of_all_kinds() public {
        _toBiddingRebuilt();
        _award();
        _expectRebuilt();
        _progress(3);
        _commit();
        _expectRebuilt();
        _seatVerifier(verifier, false);
        _verdict(verifier, false);
        _expectRebuilt();
        _openWatch();
        _disclose(verifier, false);
        _challenge(challenger);
        _challenge(solver);
        _challenge(nextVerifier);
        _end(1, true);
        _expectRebuilt();
        _end(2, false);
        _expectRebuilt();
        challenges.settleDispute(3);
        _expectRebuilt();
        _seatVerifier(nextVerifier, false);
        _pass(30 minutes + 1);
        settlement.claimSeatDefault(id);
        _expectRebuilt();
        _seatVerifier(nextVerifier, true);
        _verdict(nextVerifier, false);
        _openWatch();
        _reportLeak(challenger);
        _expectRebuilt();
        bytes32 digest = keccak256(abi.encode(challenger, id, keccak256(abi.encode(secret))));
        vm.assertEq(bot.announcedAt(address(verdicts), digest), verdicts.announcedAt(digest));
        vm.assertGt(verdicts.announcedAt(digest), 0);
        _pass(15 minutes + 1);
        verdicts.claimUndisclosed(id);
        _expectRebuilt();
        _seatVerifier(verifier, false);
        _reportLeak(challenger);
        _expectRebuilt();
        _seatVerifier(verifier, false);
        _verdict(verifier, false);
        _openWatch();
        _pass(20 minutes + 1);
        verdicts.claimUndisclosed(id);
        _expectRebuilt();
        _seatVerifier(nextVerifier, false);
        _verdict(nextVerifier, false);
        _openWatch();
        _disclose(nextVerifier, false);
        _settle();
        _expectRebuilt();
    }

    function test_to_a_void_profile_and_a_cancelled_task() public {
        _toProfiled();
        _expectRebuilt();
        _challengeProfile();
        _challengeProfile();
        _challengeProfile();
        _endProfile(1, true);
        _expectRebuilt();
        _endProfile(2, false);
        _expectRebuilt();
        profiles.settleDispute(3);
        _expectRebuilt();
        _seat(nextVerifier);
        _pass(30 minutes + 1);
        settlement.claimSeatDefault(id);
        _expectRebuilt();
        vm.prank(submitter);
        registry.cancel(id);
        _expectRebuilt();
    }

    function test_to_a_solver_default_and_the_next_solver() public {
        _toBiddingRebuilt();
        _award();
        _expectRebuilt();
        _progress(3);
        _pass(_promise + 1);
        settlement.claimSolverDefault(id);
        _expectRebuilt();
        _award();
        _expectRebuilt();
        (bytes32 root, bytes32[] memory none) = (_root(2), new bytes32[](0));
        vm.prank(solver);
        proofs.post(id, 2, root, none);
        _expectRebuilt();
    }

    function test_to_data_withheld_and_the_next_solver() public {
        _toBiddingRebuilt();
        _award();
        _expectRebuilt();
        _commit();
        _expectRebuilt();
        _seatVerifier(verifier, false);
        _expectRebuilt();
        DataDemand memory shown = _demand(verifier);
        DataDemand memory hidden = _demand(verifier, 1, 0, 2);
        DataDemand memory moot = _demand(watcher);
        _expectRebuilt();
        _answer(solver, shown);
        _expectRebuilt();
        vm.assertFalse(bot.isOpen(_key(shown)));
        vm.assertTrue(bot.isOpen(_key(hidden)));
        _withhold(hidden);
        _expectRebuilt();
        _award();
        _expectRebuilt();
        _commit();
        _demand(challenger);
        _expectRebuilt();
        demands.expire(moot);
        _expectRebuilt();
        vm.assertFalse(bot.isOpen(_key(moot)));
        _seatVerifier(verifier, false);
        _expectRebuilt();
        _verdict(verifier, true);
        _expectRebuilt();
        _openWatch();
        _disclose(verifier, true);
        _pass(_terms().challengeWindow);
        hidden = _demand(challenger);
        _withhold(hidden);
        _expectRebuilt();
    }

    function test_to_counterclaims_that_fall_stand_and_are_moot() public {
        _toBiddingRebuilt();
        _award();
        _expectRebuilt();
        _commit();
        _expectRebuilt();
        _seatVerifier(verifier, false);
        _expectRebuilt();
        uint32 free = _one(false);
        _contest(solver, _counterclaim(challenger, free), _charge(free));
        _expectRebuilt();
        _counterclaim(watcher, free);
        _contest(solver, 2, _charge(free));
        _contest(donor, 2, _charge(free));
        _counterclaim(donor, free);
        _expectRebuilt();
        counterclaimGame.report(1, false);
        counterclaimGame.report(2, true);
        counterclaimGame.report(3, true);
        _expectRebuilt();
        for (uint256 dispute = 1; dispute <= 3; ++dispute) {
            counterclaims.settleDispute(dispute);
            _expectRebuilt();
        }
        _pass(60 minutes + 1);
        counterclaims.conclude(2);
        _expectRebuilt();
        counterclaims.conclude(3);
        _expectRebuilt();
    }

    function test_through_silent_beacons() public {
        _submit();
        _pass(PATIENCE + 1);
        toyBeacon.give(toyBeacon.nextRound() + 1, "later");
        seats.replaceRound(id);
        _expectRebuilt();
        _give(seats.seating(id).round, "seat");
        seats.openClaims(id);
        _pass(5 minutes + 1);
        seats.decide(id);
        _expectRebuilt();
        _seat(verifier);
        _profile();
        _conclude();
        _award();
        _expectRebuilt();
        _commit();
        _expectRebuilt();
        _pass(PATIENCE + 1);
        toyBeacon.give(toyBeacon.nextRound() + 1, "later");
        proofs.replaceRound(id);
        seats.replaceRound(id);
        _expectRebuilt();
        _pass(1);
        _seatVerifier(verifier, false);
        _verdict(verifier, true);
        _pass(PATIENCE + 1);
        toyBeacon.give(toyBeacon.nextRound() + 1, "later");
        verdicts.replaceRound(id);
        _expectRebuilt();
    }

    function _toBiddingRebuilt() private {
        _submit();
        _expectRebuilt();
        _seat(verifier);
        _expectRebuilt();
        _profile();
        _expectRebuilt();
        _conclude();
        _expectRebuilt();
    }

    function _won(Vm.Log memory log) private pure returns (bool asserterWon) {
        (asserterWon,) = abi.decode(log.data, (bool, uint8));
    }

    function _expectRebuilt() private {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].emitter == address(game)) bot.ended(uint256(logs[i].topics[1]), _won(logs[i]));
            if (logs[i].emitter == address(profileGame)) bot.endedProfile(uint256(logs[i].topics[1]), _won(logs[i]));
            if (logs[i].emitter == address(counterclaimGame)) {
                bot.endedContest(uint256(logs[i].topics[1]), _won(logs[i]));
            }
            if (vault.isDesk(logs[i].emitter) || logs[i].emitter == address(vault)) bot.replay(logs[i]);
        }
        bytes memory stored = abi.encode(
            registry.task(id),
            seats.seating(id),
            proofs.proof(id),
            verdicts.verdict(id),
            challenges.contested(id),
            profiles.profile(id),
            demands.waiting(id),
            objections.objected(id)
        );
        vm.assertEq(bot.known(id), stored);
        if (registry.task(id).status != Status.None) {
            vm.assertEq(keccak256(abi.encode(bot.terms(id))), keccak256(abi.encode(registry.terms(id))));
        }
        for (uint256 number = 0; number <= game.disputes(); ++number) {
            vm.assertEq(abi.encode(bot.dispute(number)), abi.encode(challenges.dispute(number)));
        }
        for (uint256 number = 0; number <= profileGame.disputes(); ++number) {
            vm.assertEq(abi.encode(bot.profileDispute(number)), abi.encode(profiles.dispute(number)));
        }
        for (uint256 number = 0; number <= counterclaims.last(); ++number) {
            vm.assertEq(abi.encode(bot.counterclaim(number)), abi.encode(counterclaims.counterclaimed(number)));
        }
        for (uint256 number = 0; number <= counterclaimGame.disputes(); ++number) {
            vm.assertEq(abi.encode(bot.contest(number)), abi.encode(counterclaims.contests(number)));
        }
        address[8] memory parties = [submitter, solver, verifier, nextVerifier, challenger, watcher, donor, treasury];
        for (uint256 i = 0; i < parties.length; ++i) {
            vm.assertEq(bot.free(parties[i]), vault.free(parties[i]));
        }
    }
}
