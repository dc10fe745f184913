// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Announcements} from "../../../contracts/market/Announcements.sol";
import {IObjections, Segment} from "../../../contracts/market/IObjections.sol";
import {IProofRegistry} from "../../../contracts/market/IProofRegistry.sol";
import {ObjectionBase} from "./ObjectionBase.sol";
import {DataDemand, ISettlement, Opening, Outcome, PATIENCE, StartParams, Status, Terms} from "./MarketBase.sol";

/// @notice Anybody disputes any segment of an exact training, between its commitment and its settlement.
contract ObjectionsTest is ObjectionBase {
    // A quarter of 5 ether, as the bond is more; 8 ether pay for four segments.
    int256 private constant REWARD = 1.25 ether;
    int256 private constant LEAST = 0.3125 ether;
    int256 private constant BOND = 2 * (2 ether + int256(uint256(PRICE)));

    function test_the_solver_answers_for_a_segment_that_nobody_has_drawn() public {
        _toExactlyContested(true);
        uint256 number = _object(challenger, _one(false));
        StartParams memory started = objectionGame.started();
        vm.assertEq(started.asserter, solver);
        vm.assertEq(started.challenger, challenger);
        vm.assertEq(uint256(started.kind), 1);
        vm.assertEq(started.program, _terms().program);
        vm.assertEq(started.constants, _terms().constants);
        vm.assertEq(uint256(started.firstStep), uint256(_one(false)) * 10);
        vm.assertEq(uint256(started.steps), 10);
        vm.assertEq(started.start, log[_one(false)]);
        vm.assertEq(started.end, log[_one(false) + 1]);
        vm.assertEq(uint256(started.clock), 10 minutes);
        vm.assertEq(vault.locked(address(objections), id, challenger), uint256(BOND));
        vm.assertEq(number, 1);
    }

    function test_a_false_segment_rejects_a_proof_that_its_verdict_accepts() public {
        _toExactlyContested(true);
        _endObjection(_object(challenger, _one(false)), false);
        vm.assertTrue(objections.objected(id).fell);
        vm.assertEq(_gain(challenger), REWARD);
        int256 rest = int256(_rest());
        _settle();
        vm.assertEq(uint256(registry.task(id).outcome), uint256(Outcome.Rejected));
        int256 tax = int256(jackpot.tax(_terms().jackpot));
        vm.assertEq(_gain(solver), -5 ether);
        vm.assertEq(_gain(verifier), 1 ether);
        vm.assertEq(_gain(submitter), 2.5 ether - 1 ether - tax);
        vm.assertEq(int256(_rest()) - rest, 2.5 ether - REWARD + tax);
    }

    function test_a_groundless_objection_pays_the_solver() public {
        _toExactlyContested(true);
        _endObjection(_object(challenger, _one(false)), true);
        vm.assertTrue(!objections.objected(id).fell);
        vm.assertEq(_gain(challenger), -BOND);
        _settle();
        vm.assertEq(uint256(registry.task(id).outcome), uint256(Outcome.Accepted));
        vm.assertEq(_gain(solver), 8 ether + BOND / 2);
    }

    /// @dev What is drawn is the verdict's, until it is known who had to err; afterwards it is anybody's.
    function test_drawn_segments_are_left_to_the_verdict_until_it_is_disclosed() public {
        _toExactlyVerifying(true);
        uint32 drawn = _one(true);
        bytes memory left = abi.encodeWithSelector(IObjections.LeftToVerdict.selector, drawn);
        _refuse(drawn, left);
        _verdict(verifier, true);
        _refuse(drawn, left);
        _openWatch();
        _refuse(drawn, left);
        _disclose(verifier, true);
        _object(challenger, drawn);
    }

    function test_an_objection_does_not_move_the_verdict() public {
        _toExactlyVerifying(false);
        _endObjection(_object(challenger, _one(false)), false);
        _expectStatus(Status.Verifying);
        _judge(verifier, true);
        _settle();
        vm.assertEq(uint256(registry.task(id).outcome), uint256(Outcome.Rejected));
        vm.assertEq(_gain(verifier), 1 ether);
    }

    /// @dev A verdict falls beside it, and the next one is posted about a proof that has fallen.
    function test_a_verdict_that_falls_leaves_the_objection_as_it_is() public {
        _toExactlyContested(false);
        _endObjection(_object(challenger, _one(false)), false);
        _challenge();
        _finish(false);
        _expectStatus(Status.Committed);
        _refuse(_one(false), abi.encodeWithSelector(IObjections.ProofFell.selector, id));
        _judgeNext(true);
        _settle();
        vm.assertEq(uint256(registry.task(id).outcome), uint256(Outcome.Rejected));
    }

    function test_the_first_fall_decides_and_all_others_are_moot() public {
        _toExactlyContested(true);
        uint32 free = _one(false);
        uint256 first = _object(challenger, free);
        uint256 second = _object(watcher, free);
        uint256 third = _object(donor, free);
        objectionGame.report(second, false);
        objectionGame.report(first, false);
        _refuse(free, abi.encodeWithSelector(IObjections.ProofFell.selector, id));
        objections.settleDispute(third);
        objections.settleDispute(first);
        objections.settleDispute(second);
        objectionGame.report(third, true);
        vm.assertEq(_gain(challenger), 0);
        vm.assertEq(_gain(donor), 0);
        vm.assertEq(_gain(watcher), REWARD);
        for (uint256 number = 1; number <= 3; ++number) {
            vm.expectRevert(abi.encodeWithSelector(IObjections.NothingToSettle.selector, number));
            objections.settleDispute(number);
        }
        _settle();
    }

    /// @dev Where the first bond is below the reward it doubles until it isn't.
    function test_each_further_objection_costs_twice_as_much_up_to_the_reward() public {
        _price = 0;
        _cheap = true;
        id = registry.computeTaskId(submitter, 0, _terms());
        _toExactlyContested(true);
        uint128[5] memory bonds = [0.0201 ether, 0.0402 ether, 0.0804 ether, 0.1608 ether, uint128(uint256(LEAST))];
        for (uint256 i = 0; i < 6; ++i) {
            uint128 bond = objections.bondOf(id);
            vm.assertEq(uint256(bond), uint256(bonds[i < 5 ? i : 4]));
            uint32 free = _one(false);
            _announceObjection(challenger, free);
            Segment memory segment = _segment(free);
            _expectRefusal(challenger, abi.encodeWithSelector(IObjections.BondTooHigh.selector, bond));
            objections.object(id, segment, Opening(HEADER, PAYLOAD, bond - 1));
            vm.prank(challenger);
            uint256 number = objections.object(id, segment, Opening(HEADER, PAYLOAD, bond));
            _endObjection(number, true);
        }
    }

    function test_the_bond_follows_the_base_fee() public {
        _toExactlyCommitted();
        vm.fee(3 gwei);
        vm.assertEq(int256(uint256(objections.bondOf(id))), BOND + 2 * 1_000_000 * 3 gwei);
    }

    /// @dev A solver that many object to at once executes one segment after the other.
    function test_each_open_objection_gives_the_solver_another_clock() public {
        _toExactlyContested(true);
        for (uint32 i = 1; i <= 4; ++i) {
            _object(challenger, _one(false));
            vm.assertEq(uint256(objectionGame.started().clock), i * 10 minutes);
        }
        _endObjection(2, true);
        _object(challenger, _one(false));
        vm.assertEq(uint256(objectionGame.started().clock), 40 minutes);
    }

    function test_the_longest_clock_is_the_most_that_a_game_takes() public {
        _slow = 14 days;
        id = registry.computeTaskId(submitter, 0, _terms());
        _toExactlyContested(true);
        for (uint256 i = 0; i < 14; ++i) {
            _object(challenger, _one(false));
        }
        vm.assertEq(uint256(objectionGame.started().clock), type(uint24).max);
    }

    function test_an_objection_is_announced() public {
        _toExactlyContested(true);
        uint32 free = _one(false);
        Segment memory segment = _segment(free);
        bytes32 digest = keccak256(abi.encode(watcher, id, keccak256(abi.encode(free, keccak256(PAYLOAD)))));
        _expectRefusal(watcher, abi.encodeWithSelector(Announcements.NotAnnounced.selector, digest));
        objections.object(id, segment, _opening());
    }

    function test_only_what_the_log_says_is_disputed() public {
        _toExactlyContested(true);
        uint32 free = _one(false);
        Segment memory segment = _segment(free);
        segment.end = "another";
        _refuseSegment(segment, abi.encodeWithSelector(IProofRegistry.NotInLog.selector, uint64(free) + 1));
        segment = _segment(free);
        segment.start = "another";
        _refuseSegment(segment, abi.encodeWithSelector(IProofRegistry.NotInLog.selector, uint64(free)));
        segment.index = 4;
        _refuseSegment(segment, abi.encodeWithSelector(IObjections.NoSuchSegment.selector, uint32(4)));
    }

    function test_a_zero_root_rejects_at_once() public {
        log[2] = 0;
        _toExactlyCommitted();
        uint256 open = _object(watcher, 3);
        _seatVerifier(verifier, false);
        for (uint32 index = 1; index <= 2; ++index) {
            _refuse(index, abi.encodeWithSelector(IObjections.ZeroState.selector, uint64(2)));
        }
        bytes32[] memory path = _inclusion(2);
        objections.announce(keccak256(abi.encode(challenger, id, keccak256(abi.encode(uint64(2))))));
        vm.roll(vm.getBlockNumber() + 1);
        _expectRefusal(challenger, abi.encodeWithSelector(IObjections.NotZero.selector, uint64(3)));
        objections.objectToZero(id, 3, path);
        vm.expectEmit(address(objections));
        emit IObjections.ZeroShown(id, registry.task(id).began, challenger, 2);
        vm.prank(challenger);
        objections.objectToZero(id, 2, path);
        vm.assertEq(_gain(challenger), LEAST);
        _expectRefusal(challenger, abi.encodeWithSelector(IObjections.ProofFell.selector, id));
        objections.objectToZero(id, 2, path);
        objections.settleDispute(open);
        vm.assertEq(_gain(watcher), 0);
    }

    function test_a_zero_root_is_announced_before_it_is_shown() public {
        log[2] = 0;
        _toExactlyCommitted();
        bytes32[] memory path = _inclusion(2);
        bytes32 digest = keccak256(abi.encode(challenger, id, keccak256(abi.encode(uint64(2)))));
        _expectRefusal(challenger, abi.encodeWithSelector(Announcements.NotAnnounced.selector, digest));
        objections.objectToZero(id, 2, path);
    }

    function test_withheld_data_wait_for_objections_and_pay_nobody_a_second_time() public {
        _toExactlyCommitted();
        uint256 number = _object(challenger, 0);
        DataDemand memory asked = _demand(watcher);
        _pass(WINDOW + 1);
        vm.expectRevert(abi.encodeWithSelector(ISettlement.DisputesOpen.selector, uint32(1)));
        demands.expire(asked);
        _endObjection(number, false);
        int256 rest = int256(_rest());
        demands.expire(asked);
        _expectStatus(Status.Bidding);
        vm.assertEq(_gain(watcher), 0);
        vm.assertEq(_gain(challenger), REWARD);
        vm.assertEq(_gain(solver), -5 ether);
        vm.assertEq(int256(_rest()) - rest, 2.5 ether - REWARD);
        // The next solver's log is another.
        vm.assertTrue(!objections.objected(id).fell);
        _award();
        _commit();
        _object(challenger, 0);
    }

    function test_a_silent_beacon_saves_no_solver_whose_proof_fell() public {
        _toExactlyCommitted();
        uint256 number = _object(challenger, 0);
        _pass(2 * PATIENCE + 1);
        vm.expectRevert(abi.encodeWithSelector(ISettlement.DisputesOpen.selector, uint32(1)));
        settlement.abandon(id);
        _endObjection(number, false);
        settlement.abandon(id);
        vm.assertEq(uint256(registry.task(id).outcome), uint256(Outcome.Abandoned));
        vm.assertEq(_gain(solver), -5 ether);
        vm.assertEq(_gain(submitter), 2.5 ether);
    }

    bool private _cheap;
    uint32 private _slow;

    function _terms() internal view override returns (Terms memory s) {
        s = super._terms();
        if (_cheap) (s.verifierFee, s.unitPrice) = (0.0001 ether, 1);
        if (_slow > 0) s.clock = _slow;
    }

    function _refuse(uint32 index, bytes memory why) private {
        _refuseSegment(_segment(index), why);
    }

    function _refuseSegment(Segment memory segment, bytes memory why) private {
        _announceObjection(challenger, segment.index);
        _expectRefusal(challenger, why);
        objections.object(id, segment, _opening());
    }
}
