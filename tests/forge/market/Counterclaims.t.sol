// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {StartParams} from "../../../contracts/dispute/IDisputeGame.sol";
import {Desk} from "../../../contracts/incentives/Desk.sol";
import {Announcements} from "../../../contracts/market/Announcements.sol";
import {ClaimCharge, IChallenges} from "../../../contracts/market/IChallenges.sol";
import {ICounterclaims} from "../../../contracts/market/ICounterclaims.sol";
import {IObjections} from "../../../contracts/market/IObjections.sol";
import {IProofRegistry} from "../../../contracts/market/IProofRegistry.sol";
import {ISettlement} from "../../../contracts/market/ISettlement.sol";
import {ITaskRegistry} from "../../../contracts/market/ITaskRegistry.sol";
import {Opening, Reordered, Rerun} from "../../../contracts/market/ProfileTypes.sol";
import {Claim, LogProof, Outcome, Terms} from "../../../contracts/market/TaskTypes.sol";
import {CounterclaimBase} from "./CounterclaimBase.sol";

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
        claim = _bad(_one(true));
        vm.warp(registry.task(id).deadline);
        _counterclaimOf(challenger, claim, new Rerun[](0));
        _pass(1);
        _refuse(
            claim,
            new Rerun[](0),
            abi.encodeWithSelector(ITaskRegistry.DeadlinePassed.selector, registry.task(id).deadline)
        );
    }

    function test_drawn_segments_are_left_to_the_verdict() public {
        _toVerifying(false);
        uint32 drawn = _one(true);
        _refuse(_bad(drawn), new Rerun[](0), abi.encodeWithSelector(IObjections.LeftToVerdict.selector, drawn));
        _counterclaim(challenger, _one(false));
    }

    /// @dev A solver that is objected to everywhere has the window for each.
    function test_each_open_one_gives_another_window() public {
        _toContested(true);
        for (uint64 i = 1; i <= 3; ++i) {
            uint256 number = _counterclaim(challenger, _one(false));
            vm.assertEq(counterclaims.counterclaimed(number).until, vm.getBlockTimestamp() + i * 20 minutes);
        }
        vm.assertEq(uint256(objections.objected(id).open), 3);
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
        vm.prank(watcher);
        vm.expectRevert(abi.encodeWithSelector(Announcements.NotAnnounced.selector, digest));
        counterclaims.counterclaim(id, claim, logProof, new Rerun[](0), type(uint128).max);
        _announceCounterclaim(solver, _hash(claim));
        vm.prank(solver);
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, solver));
        counterclaims.counterclaim(id, claim, logProof, new Rerun[](0), type(uint128).max);
        _announceCounterclaim(challenger, _hash(claim));
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(IObjections.BondTooHigh.selector, uint128(uint256(BOND))));
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
        vm.warp(counterclaims.counterclaimed(number).until + 1);
        bytes memory late =
            abi.encodeWithSelector(ITaskRegistry.DeadlinePassed.selector, counterclaims.counterclaimed(number).until);
        _refuseContest(solver, number, charge, late);
        vm.expectRevert(abi.encodeWithSelector(ICounterclaims.UnknownDispute.selector, uint256(1)));
        counterclaims.settleDispute(1);
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, address(this)));
        counterclaims.onResolved(1, true);
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, address(this)));
        objections.conclude(id, challenger, 0);
    }

    function test_exact_tasks_have_other_objections() public {
        _isExact = true;
        id = registry.computeTaskId(submitter, 0, _terms());
        _submit();
        _award();
        _commit();
        _refuse(_bad(0), new Rerun[](0), abi.encodeWithSelector(ICounterclaims.NotTolerant.selector, id));
    }

    bool private _isExact;

    function _terms() internal view override returns (Terms memory) {
        return _isExact ? _exact(super._terms()) : super._terms();
    }

    function _refuse(Claim memory claim, Rerun[] memory look, bytes memory why) private {
        LogProof memory logProof = LogProof(_inclusion(claim.segment), _inclusion(claim.segment + 1));
        _announceCounterclaim(challenger, _hash(claim));
        vm.prank(challenger);
        vm.expectRevert(why);
        counterclaims.counterclaim(id, claim, logProof, look, type(uint128).max);
    }

    function _refuseContest(address who, uint256 number, ClaimCharge memory charge, bytes memory why) private {
        _announceContest(who, number, charge);
        vm.prank(who);
        vm.expectRevert(why);
        counterclaims.contest(
            number, charge, new Rerun[](0), Reordered(0, new bytes32[](0)), Opening(HEADER, PAYLOAD, 0)
        );
    }
}
