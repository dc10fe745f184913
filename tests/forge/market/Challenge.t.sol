// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {StartParams} from "../../../contracts/interfaces/IDisputeGame.sol";
import {ITaskMarket} from "../../../contracts/market/ITaskMarket.sol";
import {Claim, LogProof, Status} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

contract ChallengeTest is MarketBase {
    function test_a_replay_goes_to_court_with_the_whole_segment() public {
        _toVerdict(true);
        Claim memory claim = _claim(1);
        vm.prank(challenger);
        market.challenge{value: 1 ether}(id, 1, claim, 1, 0, HEADER, PAYLOAD);
        StartParams memory p = game.started();
        vm.assertEq(p.asserter, verifier);
        vm.assertEq(p.challenger, challenger);
        vm.assertEq(p.program, bytes32("program"));
        vm.assertEq(p.constants, bytes32("constants"));
        vm.assertTrue(p.kind == 1 && p.component == 0 && p.clock == 10 minutes);
        vm.assertEq(p.firstStep, uint256(claim.segment) * 10);
        vm.assertEq(p.steps, 10);
        vm.assertEq(p.start, claim.start);
        vm.assertEq(p.end, claim.replay);
        vm.assertTrue(p.x == 0 && p.y == 0 && p.sum == 0);
        vm.assertEq(keccak256(game.header()), keccak256(HEADER));
        vm.assertEq(keccak256(game.payload()), keccak256(PAYLOAD));
    }

    function test_a_distance_goes_to_court_between_replay_and_end() public {
        for (uint8 c = 1; c <= 3; ++c) {
            setUp();
            StartParams memory p = _challengeSum(2, c);
            Claim memory claim = _claim(0);
            vm.assertTrue(p.x == claim.replay && p.y == claim.end && p.component == c && p.kind == 2);
            vm.assertEq(p.sum, claim.distances[c - 1]);
            vm.assertTrue(p.start == 0 && p.end == 0 && p.steps == 0);
        }
    }

    function test_a_reference_goes_to_court_between_replay_and_start() public {
        for (uint8 c = 1; c <= 3; ++c) {
            setUp();
            StartParams memory p = _challengeSum(3, c);
            Claim memory claim = _claim(0);
            vm.assertTrue(p.x == claim.replay && p.y == claim.start && p.component == c && p.kind == 3);
            vm.assertEq(p.sum, claim.references[c - 1]);
        }
    }

    function test_kinds_and_components_that_do_not_exist() public {
        _toVerdict(true);
        Claim memory claim = _claim(0);
        uint8[2][8] memory wrong = [[0, 0], [1, 1], [1, 3], [2, 0], [2, 4], [3, 0], [3, 4], [4, 1]];
        for (uint256 i = 0; i < wrong.length; ++i) {
            vm.prank(challenger);
            vm.expectRevert(abi.encodeWithSelector(ITaskMarket.InvalidChallenge.selector, wrong[i][0], wrong[i][1]));
            market.challenge{value: 1 ether}(id, 0, claim, wrong[i][0], wrong[i][1], HEADER, PAYLOAD);
        }
    }

    function test_the_claim_is_the_one_that_was_posted() public {
        _toVerdict(true);
        Claim memory claim = _claim(0);
        vm.startPrank(challenger);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.UnknownClaim.selector, uint32(1)));
        market.challenge{value: 1 ether}(id, 1, claim, 1, 0, HEADER, PAYLOAD);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.UnknownClaim.selector, uint32(2)));
        market.challenge{value: 1 ether}(id, 2, claim, 1, 0, HEADER, PAYLOAD);
        claim.references[2] += 1;
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.UnknownClaim.selector, uint32(0)));
        market.challenge{value: 1 ether}(id, 0, claim, 1, 0, HEADER, PAYLOAD);
    }

    function test_a_claim_of_a_void_verdict_is_unknown() public {
        _toDisputed(true);
        Claim memory old = _claim(0);
        game.finish(false);
        _join(nextVerifier);
        (Claim[] memory claims, LogProof[] memory proofs) = _claims(true);
        claims[0].replay = "the right one";
        vm.prank(nextVerifier);
        market.postVerdict(id, claims, proofs);
        vm.assertEq(market.task(id).verdicts, 2);
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.UnknownClaim.selector, uint32(0)));
        market.challenge{value: 1 ether}(id, 0, old, 1, 0, HEADER, PAYLOAD);
    }

    function test_the_bond_is_paid_and_the_verifier_does_not_fight_itself() public {
        _toVerdict(true);
        Claim memory claim = _claim(0);
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongPayment.selector, 1 ether - 1, 1 ether));
        market.challenge{value: 1 ether - 1}(id, 0, claim, 1, 0, HEADER, PAYLOAD);
        vm.assertEq(market.task(id).open, 0);
        vm.prank(verifier);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, verifier));
        market.challenge{value: 1 ether}(id, 0, claim, 1, 0, HEADER, PAYLOAD);
        vm.prank(solver);
        market.challenge{value: 1 ether}(id, 0, claim, 1, 0, HEADER, PAYLOAD);
    }

    function test_the_last_second_counts() public {
        _toVerdict(true);
        _pass(20 minutes);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.DeadlineNotPassed.selector, uint64(vm.getBlockTimestamp())));
        market.settle(id);
        _challenge();
    }

    function test_a_second_late_is_late() public {
        _toVerdict(true);
        uint64 deadline = market.task(id).deadline;
        Claim memory claim = _claim(0);
        _pass(20 minutes + 1);
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.DeadlinePassed.selector, deadline));
        market.challenge{value: 1 ether}(id, 0, claim, 1, 0, HEADER, PAYLOAD);
        market.settle(id);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongStatus.selector, id, uint8(Status.Closed)));
        market.settle(id);
    }

    /// @dev The chain rejects a segment with a zero state whatever the verifier says about it: there is nothing to disagree with.
    function test_a_claim_about_a_zero_state_is_beyond_challenge() public {
        uint256 refused = 0;
        for (uint256 entry = 1; entry <= 4; ++entry) {
            setUp();
            log[entry] = 0;
            _toVerdict(true);
            (Claim[] memory claims,) = _claims(true);
            for (uint32 i = 0; i < 2; ++i) {
                if (claims[i].start != 0 && claims[i].end != 0) continue;
                for (uint8 kind = 1; kind <= 3; ++kind) {
                    uint8 component = kind == 1 ? 0 : 1;
                    vm.prank(challenger);
                    vm.expectRevert(abi.encodeWithSelector(ITaskMarket.InvalidChallenge.selector, kind, component));
                    market.challenge{value: 1 ether}(id, i, claims[i], kind, component, HEADER, PAYLOAD);
                    ++refused;
                }
            }
        }
        vm.assertGt(refused, 0);
    }

    function test_only_the_game_reports_and_only_what_it_plays() public {
        _toDisputed(true);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, address(this)));
        market.onResolved(1, false);
        for (uint256 number = 0; number <= 2; number += 2) {
            vm.expectRevert(abi.encodeWithSelector(ITaskMarket.UnknownDispute.selector, number));
            game.report(number, false);
        }
    }

    function _challengeSum(uint8 kind, uint8 component) private returns (StartParams memory) {
        _toVerdict(true);
        Claim memory claim = _claim(0);
        vm.prank(challenger);
        market.challenge{value: 1 ether}(id, 0, claim, kind, component, HEADER, PAYLOAD);
        return game.started();
    }
}
