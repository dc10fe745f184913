// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Announcements} from "../../../contracts/market/Announcements.sol";
import {ICounterclaims} from "../../../contracts/market/ICounterclaims.sol";
import {IObjections} from "../../../contracts/market/IObjections.sol";
import {IProofRegistry} from "../../../contracts/market/IProofRegistry.sol";
import {CounterclaimBase} from "./CounterclaimBase.sol";
import {Claim, ClaimCharge, Desk, IChallenges, ISettlement, ITaskRegistry, LogProof, Opening} from "./MarketBase.sol";
import {Outcome, Reordered, Rerun, StartParams, Terms} from "./MarketBase.sol";

/// @notice Where thresholds decide, an objector asserts what a verdict would have said, and anybody disputes that.
contract CounterclaimsTest is CounterclaimBase {
    // A quarter of 5 ether, as the bond is more; 8 ether pay for four segments.
    int256 private constant REWARD = 1.25 ether;
    int256 private constant BOND = 2 * (2 ether + int256(uint256(PRICE)));

    function test_a_counterclaim_that_nobody_contests_rejects_the_proof() public {
        _toContested(true);
        uint256 number = _counterclaim(challenger, _one(false));
        vm.assertEq(vault.locked(address(counterclaims), id, challenger), uint256(BOND));
        uint64 until = counterclaims.counterclaimed(number).until;
        vm.assertEq(uint256(until), vm.getBlockTimestamp() + _terms().challengeWindow);
        vm.expectRevert(abi.encodeWithSelector(ITaskRegistry.DeadlineNotPassed.selector, until));
        counterclaims.conclude(number);
        vm.warp(until + 1);
        vm.expectRevert(abi.encodeWithSelector(ISettlement.DisputesOpen.selector, uint32(1)));
        settlement.settle(id);
        counterclaims.conclude(number);
        vm.assertEq(_gain(challenger), REWARD);
        vm.expectRevert(abi.encodeWithSelector(ICounterclaims.Decided.selector, number));
        counterclaims.conclude(number);
        settlement.settle(id);
        vm.assertEq(uint256(registry.task(id).outcome), uint256(Outcome.Rejected));
        vm.assertEq(_gain(solver), -5 ether);
    }

    function test_the_objector_answers_for_every_part_of_it() public {
        _toContested(true);
        uint32 free = _one(false);
        uint256 number = _counterclaim(challenger, free);
        Claim memory claim = _bad(free);
        ClaimCharge memory charge = _charge(free);
        _contest(solver, number, charge);
        StartParams memory started = counterclaimGame.started();
        vm.assertEq(started.asserter, challenger);
        vm.assertEq(started.challenger, solver);
        vm.assertEq(started.start, claim.start);
        vm.assertEq(started.end, claim.replay);
        vm.assertEq(uint256(started.firstStep), 10 * uint256(free));
        for (uint8 component = 1; component <= 3; ++component) {
            (charge.kind, charge.component) = (2, component);
            _contest(solver, number, charge);
            started = counterclaimGame.started();
            vm.assertEq(started.x, claim.replay);
            vm.assertEq(started.y, claim.end);
            vm.assertEq(started.sum, claim.distances[component - 1]);
            charge.kind = 3;
            _contest(watcher, number, charge);
            started = counterclaimGame.started();
            vm.assertEq(started.y, claim.start);
            vm.assertEq(started.sum, claim.references[component - 1]);
        }
        vm.assertEq(uint256(counterclaims.counterclaimed(number).open), 7);
    }

    function test_a_false_counterclaim_pays_the_solver() public {
        _toContested(true);
        uint256 number = _counterclaim(challenger, _one(false));
        uint256 first = _contest(solver, number, _charge(_one(false)));
        uint256 other = _contest(watcher, number, _charge(_one(false)));
        counterclaimGame.report(first, false);
        _refuseContest(
            watcher, number, _charge(_one(false)), abi.encodeWithSelector(ICounterclaims.Decided.selector, number)
        );
        counterclaims.settleDispute(other);
        vm.assertEq(_gain(watcher), 0);
        counterclaims.settleDispute(first);
        vm.assertEq(_gain(challenger), -BOND);
        _settle();
        vm.assertEq(uint256(registry.task(id).outcome), uint256(Outcome.Accepted));
        vm.assertEq(_gain(solver), 8 ether + BOND / 2);
    }

    function test_a_friend_that_contests_first_saves_the_accuser_nothing() public {
        _toContested(true);
        uint256 number = _counterclaim(challenger, _one(false));
        uint256 friendly = _contest(watcher, number, _charge(_one(false)));
        uint256 own = _contest(solver, number, _charge(_one(false)));
        counterclaimGame.report(friendly, false);
        counterclaims.settleDispute(friendly);
        counterclaims.settleDispute(own);
        vm.assertEq(_gain(challenger) + _gain(watcher), -BOND);
        vm.assertEq(_gain(solver), -5 ether + BOND / 2);
    }

    function test_a_groundless_contest_pays_the_objector() public {
        _toContested(true);
        uint256 number = _counterclaim(challenger, _one(false));
        uint256 dispute = _contest(solver, number, _charge(_one(false)));
        vm.expectRevert(abi.encodeWithSelector(ICounterclaims.NothingToSettle.selector, dispute));
        counterclaims.settleDispute(dispute);
        _pass(_terms().challengeWindow + 1);
        vm.expectRevert(abi.encodeWithSelector(ICounterclaims.ContestsOpen.selector, uint32(1)));
        counterclaims.conclude(number);
        counterclaimGame.report(dispute, true);
        counterclaims.settleDispute(dispute);
        counterclaims.conclude(number);
        vm.assertEq(_gain(challenger), BOND / 2 + REWARD);
        vm.assertEq(_gain(solver), -5 ether - BOND);
    }

    function test_what_the_rule_accepts_is_no_objection() public {
        _toContested(true);
        uint32 free = _one(false);
        bytes memory not = abi.encodeWithSelector(ICounterclaims.NotRejected.selector, free);
        Claim memory claim = _bad(free);
        claim.distances = [uint256(1), 2, 0];
        _refuse(claim, new Rerun[](0), not);
        claim = _bad(free);
        claim.replay = claim.end;
        _refuse(claim, new Rerun[](0), not);
        claim.replay = 0;
        _refuse(claim, new Rerun[](0), not);
        claim = _bad(free);
        claim.end = "another";
        _refuse(claim, new Rerun[](0), abi.encodeWithSelector(IProofRegistry.NotInLog.selector, uint64(free) + 1));
        _counterclaim(challenger, _one(true));
    }

    function test_drawn_segments_are_left_to_the_verdict() public {
        _toVerifying(false);
        uint32 drawn = _one(true);
        _refuse(_bad(drawn), new Rerun[](0), abi.encodeWithSelector(IObjections.LeftToVerdict.selector, drawn));
        _counterclaim(challenger, _one(false));
    }

    /// @dev A solver that is objected to everywhere has the window for each, and the time of a contest between two.
    function test_each_open_one_gives_another_window() public {
        _toContested(true);
        for (uint64 i = 1; i <= 3; ++i) {
            uint256 number = _counterclaim(challenger, _one(false));
            vm.assertEq(
                counterclaims.counterclaimed(number).until,
                vm.getBlockTimestamp() + i * 20 minutes + (i - 1) * 20 minutes
            );
        }
        vm.assertEq(uint256(objections.objected(id).open), 3);
    }

    /// @dev The solver has money for one contest, which the accuser draws out as long as it can: its bond is back before
    /// the window of the next counterclaim ends.
    function test_attack_more_false_counterclaims_at_once_than_bonds() public {
        _toContestedWith(160 ether, 6 days);
        uint32 free = _one(false);
        uint256[3] memory numbers;
        for (uint256 i = 0; i < 3; ++i) {
            numbers[i] = _counterclaim(challenger, free);
        }
        uint256 spare = vault.free(solver) - counterclaims.counterclaimed(numbers[2]).bond;
        vm.prank(solver);
        vault.withdraw(solver, spare);
        for (uint256 i = 0; i < 3; ++i) {
            uint256 dispute = _contest(solver, numbers[i], _charge(free));
            vm.assertEq(uint256(counterclaimGame.started().clock), 6 days);
            _pass(counterclaimGame.longest(_clock) + 1 minutes);
            counterclaimGame.report(dispute, false);
            counterclaims.settleDispute(dispute);
        }
        _settle();
        vm.assertEq(uint256(registry.task(id).outcome), uint256(Outcome.Accepted));
    }

    /// @dev A solver that contests a true counterclaim everywhere at once would win by time if all disputes had one
    /// clock, at the price of one bond for each.
    function test_attack_more_contests_at_once_than_a_clock_has_time_for() public {
        _toContestedWith(160 ether, 10 minutes);
        uint256 number = _counterclaim(challenger, _one(false));
        uint256[4] memory bonds = [uint256(BOND), 2 * uint256(BOND), 10 ether, 10 ether];
        for (uint256 n = 1; n <= 4; ++n) {
            _expectContest(solver, number, n, bonds[n - 1]);
        }
        counterclaimGame.report(2, true);
        counterclaims.settleDispute(2);
        _expectContest(solver, number, 4, 10 ether);
    }

    /// @dev Friends of the accuser that contest first would make the solver's own contest long and dear.
    function test_attack_friends_that_stand_in_the_queue_before_the_solver() public {
        _toContestedWith(160 ether, 10 minutes);
        uint256 number = _counterclaim(challenger, _one(false));
        _expectContest(watcher, number, 2, 2 * uint256(BOND));
        _expectContest(watcher, number, 3, 10 ether);
        _expectContest(solver, number, 1, uint256(BOND));
        _expectContest(solver, number, 4, 10 ether);
    }

    function _expectContest(address who, uint256 number, uint256 clocks, uint256 bond) private {
        uint256 dispute = _contest(who, number, _charge(_one(false)));
        vm.assertEq(uint256(counterclaimGame.started().clock), clocks * 10 minutes);
        vm.assertEq(counterclaims.contests(dispute).bond, bond);
    }

    function test_the_first_that_stands_decides() public {
        _toContested(true);
        uint32 free = _one(false);
        uint256 first = _counterclaim(challenger, free);
        uint256 second = _counterclaim(watcher, free);
        uint256 dispute = _contest(solver, second, _charge(free));
        vm.warp(counterclaims.counterclaimed(first).until + 1);
        counterclaims.conclude(first);
        counterclaims.conclude(second);
        counterclaims.settleDispute(dispute);
        counterclaimGame.report(dispute, false);
        vm.assertEq(_gain(challenger), REWARD);
        vm.assertEq(_gain(watcher), 0);
        vm.assertEq(uint256(objections.objected(id).open), 0);
        _pass(1 days);
        settlement.settle(id);
        vm.assertEq(_gain(solver), -5 ether);
    }

    function test_who_may_not() public {
        _toContested(true);
        uint32 free = _one(false);
        Claim memory claim = _bad(free);
        LogProof memory logProof = LogProof(_inclusion(free), _inclusion(free + 1));
        bytes32 digest = keccak256(abi.encode(watcher, id, keccak256(abi.encode(_hash(claim)))));
        _expectRefusal(watcher, abi.encodeWithSelector(Announcements.NotAnnounced.selector, digest));
        counterclaims.counterclaim(id, claim, logProof, new Rerun[](0), type(uint128).max);
        _announceCounterclaim(challenger, _hash(claim));
        _expectRefusal(challenger, abi.encodeWithSelector(IObjections.BondTooHigh.selector, uint128(uint256(BOND))));
        counterclaims.counterclaim(id, claim, logProof, new Rerun[](0), uint128(uint256(BOND)) - 1);
        uint256 number = _counterclaim(challenger, free);
        ClaimCharge memory charge = _charge(free);
        _refuseContest(challenger, number, charge, abi.encodeWithSelector(Desk.NotAllowed.selector, challenger));
        charge.claim.distances[0] = 7;
        _refuseContest(
            solver, number, charge, abi.encodeWithSelector(ICounterclaims.UnknownCounterclaim.selector, number)
        );
        charge = _charge(free);
        charge.kind = 7;
        _refuseContest(
            solver, number, charge, abi.encodeWithSelector(IChallenges.InvalidChallenge.selector, uint8(7), uint8(0))
        );
        charge.kind = 1;
        bytes memory dear = abi.encodeWithSelector(IObjections.BondTooHigh.selector, uint128(uint256(BOND)));
        _refuseContest(solver, number, charge, dear);
        vm.warp(counterclaims.counterclaimed(number).until + 1);
        bytes memory late =
            abi.encodeWithSelector(ITaskRegistry.DeadlinePassed.selector, counterclaims.counterclaimed(number).until);
        _refuseContest(solver, number, charge, late);
    }

    uint128 private _stake;
    uint32 private _clock;

    function _terms() internal view override returns (Terms memory s) {
        s = super._terms();
        if (_stake != 0) s.solverStake = _stake;
        if (_clock != 0) s.clock = _clock;
    }

    /// @dev A task with other terms than that of most tests.
    function _toContestedWith(uint128 stake, uint32 clock) private {
        (_stake, _clock) = (stake, clock);
        id = registry.computeTaskId(submitter, 0, _terms());
        _toContested(true);
    }

    function _refuse(Claim memory claim, Rerun[] memory look, bytes memory why) private {
        LogProof memory logProof = LogProof(_inclusion(claim.segment), _inclusion(claim.segment + 1));
        _announceCounterclaim(challenger, _hash(claim));
        _expectRefusal(challenger, why);
        counterclaims.counterclaim(id, claim, logProof, look, type(uint128).max);
    }

    function _refuseContest(address who, uint256 number, ClaimCharge memory charge, bytes memory why) private {
        _announceContest(who, number, charge);
        _expectRefusal(who, why);
        counterclaims.contest(
            number, charge, new Rerun[](0), Reordered(0, new bytes32[](0)), Opening(HEADER, PAYLOAD, 0)
        );
    }
}
