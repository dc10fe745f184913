// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IObjections, Segment} from "../../../contracts/market/IObjections.sol";
import {Split} from "../../../contracts/market/Split.sol";
import {DataDemandsBase, ObjectionBase} from "./ObjectionBase.sol";
import {Claim, DataDemand, Desk, ForcedErrors, ISettlement, ITaskRegistry, LogProof, Look} from "./MarketBase.sol";
import {Outcome, Rerun, Status, Terms} from "./MarketBase.sol";

/// @notice Who sits and isn't served says so: two end the training, and one alone answers for it if a verdict stands.
contract UnservedTest is ObjectionBase {
    event Unserved(bytes32 indexed taskId, uint32 indexed seating, address indexed verifier, uint256 bond);
    event WordEnded(bytes32 indexed taskId, address indexed verifier, uint256 bond, bool lost);
    event NotServed(bytes32 indexed taskId, address indexed solver, uint256 left, uint256 share, uint256 half);

    uint128 private constant STAKE = 20 ether;
    int256 private constant ALL = int256(uint256(STAKE));
    // Seven tenths of that and of a price of 8 ether; and 44 of its hundredths.
    int256 private constant BOND = 19.6 ether;
    int256 private constant SHARE = 8.624 ether;

    function _terms() internal view override returns (Terms memory s) {
        s = super._terms();
        (s.solverStake, s.verifierStake, s.bond) = (STAKE, STAKE, STAKE / 4);
    }

    /// @dev Noise, served to nobody but an accomplice. Without this verb whoever else is drawn can only lose its stake,
    /// so it leaves the seat to the accomplice, who accepts.
    function test_two_that_are_not_served_end_the_training() public {
        _toExactlyVerifying(false);
        uint32 seating = registry.task(id).seating;
        vm.expectEmit(address(settlement));
        emit Unserved(id, seating, verifier, uint256(BOND));
        _say(verifier);
        _expectStatus(Status.Committed);
        vm.assertEq(registry.task(id).holder, address(0));
        vm.assertEq(_gain(verifier), -BOND);
        vm.assertEq(settlement.unservedBy(id)[0], verifier);
        _seatVerifier(nextVerifier, false);
        vm.assertEq(registry.task(id).seating, seating + 1);
        uint256 rest = _rest();
        vm.expectEmit(address(settlement));
        emit WordEnded(id, verifier, uint256(BOND), false);
        vm.expectEmit(address(settlement));
        emit WordEnded(id, nextVerifier, uint256(BOND), false);
        vm.expectEmit(address(settlement));
        emit NotServed(id, solver, STAKE, uint256(SHARE), 0);
        _say(nextVerifier);
        _expectStatus(Status.Bidding);
        vm.assertEq(_gain(solver), -ALL);
        vm.assertEq(_gain(verifier), SHARE);
        vm.assertEq(_gain(nextVerifier), SHARE);
        vm.assertEq(_rest() - rest, uint256(ALL - 2 * SHARE));
        vm.assertEq(settlement.unservedBy(id)[0], address(0));
        vm.assertEq(vault.locked(address(settlement), id, submitter), settlement.escrowOf(_terms()));
        // The next solver begins without a word against it.
        _award();
        vm.assertEq(vault.locked(address(settlement), id, solver), STAKE);
        _commit();
        _toStood(verifier, true);
        vm.assertTrue(registry.task(id).outcome == Outcome.Accepted);
        vm.assertEq(_gain(solver), 8 ether - ALL);
    }

    function test_a_verdict_that_stands_takes_the_bond_for_the_fund() public {
        for (uint256 accepts = 0; accepts < 2; ++accepts) {
            setUp();
            _toSaid();
            uint256 rest = _rest();
            _toStood(nextVerifier, accepts == 1);
            vm.assertEq(_gain(verifier), -BOND);
            vm.assertEq(_gain(nextVerifier), 1 ether);
            // Of its price it pays another draw of the seat: else it would serve friends only until one sits.
            vm.assertEq(_gain(solver), accepts == 1 ? int256(7 ether) : -ALL);
            uint256 paid = accepts == 1 ? 1.04 ether : STAKE / 2;
            vm.assertEq(_rest() - rest, uint256(BOND) + jackpot.tax(_terms().jackpot) + paid);
            vm.assertEq(vault.locked(address(settlement), id, verifier), 0);
        }
    }

    /// @dev It has read the states in the end.
    function test_who_verifies_after_all_withdraws_its_word() public {
        _toSaid();
        _toStood(verifier, true);
        vm.assertEq(_gain(verifier), 1 ether);
        vm.assertEq(_gain(solver), 8 ether);
    }

    function test_one_account_has_one_word() public {
        _toSaid();
        _seatVerifier(verifier, false);
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, verifier));
        _say(verifier);
    }

    function test_only_who_sits_says_so_and_in_its_window() public {
        _toExactlyCommitted();
        vm.expectRevert(abi.encodeWithSelector(ITaskRegistry.WrongStatus.selector, id, Status.Committed));
        _say(verifier);
        _seatVerifier(verifier, false);
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, nextVerifier));
        _say(nextVerifier);
        uint64 deadline = registry.task(id).deadline;
        vm.warp(deadline + 1);
        vm.expectRevert(abi.encodeWithSelector(ITaskRegistry.DeadlinePassed.selector, deadline));
        _say(verifier);
        vm.warp(deadline);
        _say(verifier);
        vm.expectRevert(abi.encodeWithSelector(ISettlement.NotUnserved.selector, id));
        settlement.claimUnserved(id);
    }

    /// @dev As with a default: nobody leaves a duty before it is known.
    function test_nobody_leaves_a_duty_that_is_not_known() public {
        _toExactlyCommitted();
        _give(proofs.proof(id).round, "draw");
        _seat(verifier, ForcedErrors.commitment(verifier, id, secret));
        vm.expectRevert(abi.encodeWithSelector(ISettlement.DutyUnknown.selector, id));
        _say(verifier);
    }

    function test_a_default_costs_what_it_has_cost_and_ends_no_word() public {
        _toSaid();
        _seatVerifier(nextVerifier, false);
        _pass(_terms().verificationWindow + 1);
        settlement.claimSeatDefault(id);
        vm.assertEq(_gain(nextVerifier), -ALL);
        _seatVerifier(watcher, false);
        _say(watcher);
        _expectStatus(Status.Bidding);
        vm.assertEq(_gain(verifier), SHARE);
    }

    /// @dev By a friend's demand behind the first word that word was worth nothing, or its bond.
    function test_withheld_data_prove_the_word_and_a_silent_beacon_frees_its_bond() public {
        for (uint256 stood = 0; stood < 2; ++stood) {
            setUp();
            _toSaid();
            if (stood == 1) _judgeNext(true);
            _pass(stood * _terms().challengeWindow);
            _withhold(_demand(challenger));
            _expectStatus(Status.Bidding);
            vm.assertEq(_gain(verifier), SHARE);
            vm.assertEq(_gain(challenger), 0);
            int256 fee = stood == 1 ? int256(1 ether) : int256(0);
            vm.assertEq(_gain(nextVerifier), fee);
            vm.assertEq(_gain(submitter), int256(uint256(STAKE / 2)) - int256(settlement.escrowOf(_terms())) - fee);
            _expectAllPaid();
        }
        setUp();
        _toSaid();
        _pass(14 days + 1);
        settlement.abandon(id);
        vm.assertEq(_gain(verifier), 0);
        vm.assertEq(_gain(solver), 0);
    }

    /// @dev Its objector is to be paid out of the stake, and behind it those that weren't served: by a friend's
    /// objection their words were worth nothing.
    function test_an_objection_comes_first() public {
        for (uint256 stands = 0; stands < 2; ++stands) {
            setUp();
            uint256 number = _toSaidTwice();
            vm.expectRevert(abi.encodeWithSelector(ISettlement.DisputesOpen.selector, uint32(1)));
            settlement.claimUnserved(id);
            _endObjection(number, stands == 1);
            settlement.claimUnserved(id);
            _expectStatus(Status.Bidding);
            int256 won = stands == 1 ? -_gain(challenger) / 2 : int256(0);
            vm.assertEq(_gain(solver), won - ALL);
            // Less than that share is left behind the objector and the tax.
            int256 share = stands == 1 ? SHARE : (ALL - _gain(challenger) - _tax()) / 2;
            vm.assertEq(_gain(verifier), share);
            vm.assertEq(_gain(nextVerifier), share);
            _expectRest(0);
        }
    }

    /// @dev While it waits for an objection, a demand may expire: that brings its friend nothing.
    function test_withheld_data_after_two_words() public {
        uint256 number = _toSaidTwice();
        vm.expectPartialRevert(bytes4(keccak256("NoSeat(bytes32)")));
        seats.openClaims(id);
        _endObjection(number, true);
        _withhold(_demand(challenger));
        _expectStatus(Status.Bidding);
        vm.assertEq(_gain(verifier), SHARE);
        vm.assertEq(_gain(nextVerifier), SHARE);
        _expectRest(ALL - 2 * SHARE - 3 * _tax());
    }

    /// @dev Nothing else ends that wait: each further one would make it longer, and no deadline stands.
    function test_nobody_objects_after_the_second_word() public {
        _toSaidTwice();
        Segment memory segment = _segment(_one(false));
        _announceObjection(watcher, segment.index);
        _expectRefusal(watcher, abi.encodeWithSelector(IObjections.ProofFell.selector, id));
        objections.object(id, segment, _opening());
    }

    /// @dev It has called a log unserved that is false: whoever has accepted it contradicts nobody.
    function test_a_log_that_falls_under_a_verdict_frees_the_bond() public {
        _toSaid();
        _judgeNext(true);
        _endObjection(_object(challenger, _one(false)), false);
        _settle();
        vm.assertTrue(registry.task(id).outcome == Outcome.Rejected);
        vm.assertEq(_gain(verifier), 0);
        vm.assertEq(_gain(nextVerifier), 1 ether);
        _expectAllPaid();
    }

    function test_the_bond_follows_what_the_solver_loses() public pure {
        vm.assertEq(Split.unservedBond(4, 6, 100), 7);
        vm.assertEq(Split.unservedBond(4, 6, 5), 5);
        vm.assertEq(Split.sayerShare(100, 1_000), 44);
        vm.assertEq(Split.sayerShare(100, 61), 30);
    }

    function _say(address who) private {
        vm.prank(who);
        settlement.unserved(id);
    }

    function _toSaid() private {
        _toExactlyVerifying(false);
        _say(verifier);
    }

    function _toSaidTwice() private returns (uint256 number) {
        _toSaid();
        number = _object(challenger, _one(false));
        _seatVerifier(nextVerifier, false);
        _say(nextVerifier);
        _expectStatus(Status.Committed);
        vm.assertEq(settlement.unservedBy(id)[1], nextVerifier);
    }

    function _toStood(address who, bool accepts) private {
        _seatVerifier(who, false);
        _judge(who, accepts);
        _settle();
    }

    function _expectAllPaid() private view {
        vm.assertEq(vault.locked(address(settlement), id, solver), 0);
        vm.assertEq(vault.pot(address(settlement), id), 0);
    }

    function _expectRest(int256 share) private view {
        vm.assertEq(_gain(submitter), share - int256(settlement.escrowOf(_terms())));
        _expectAllPaid();
    }

    function _tax() private view returns (int256) {
        return int256(jackpot.tax(_terms().jackpot));
    }
}

/// @notice Calls with the largest numbers that terms admit, and behind as many demands as strangers like to make: no
/// call loops over what others can grow, so that each fits into half of a block.
contract CeilingTest is DataDemandsBase {
    uint256 private constant CEILING = 15_000_000;
    uint32 private constant LOOKS = 16;
    uint32 private constant DEMANDS = 300;

    function test_no_call_costs_more_than_half_of_a_block() public {
        _toVerifying(false);
        DataDemand memory d = _demand(challenger);
        vm.prank(verifier);
        settlement.unserved(id);
        uint256 few = _expiry(d);
        for (uint32 leaf = 2; leaf < DEMANDS; ++leaf) {
            _demand(leaf % 2 == 0 ? challenger : watcher, 64, 0, leaf);
        }
        vm.assertLe(_expiry(d), few + few / 100);
        _seatVerifier(nextVerifier, false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        Look[] memory looks = new Look[](claims.length);
        for (uint256 i = 0; i < claims.length; ++i) {
            looks[i].segment = claims[i].segment;
            looks[i].reruns = new Rerun[](LOOKS);
            for (uint256 j = 0; j < LOOKS; ++j) {
                looks[i].reruns[j] = Rerun("end", [uint256(1), 1, 0]);
            }
        }
        vm.prank(nextVerifier);
        uint256 gas = gasleft();
        verdicts.post(id, claims, logProofs, looks, "nothing");
        vm.assertLe(gas - gasleft(), CEILING);
        vm.assertEq(verdicts.verdict(id).looks, 32);
        _openWatch();
        _disclose(nextVerifier, true);
        _pass(_terms().challengeWindow + 1);
        vm.assertLe(_expiry(d), CEILING);
    }

    /// @dev What it costs to end a demand as withheld; nothing is changed by it.
    function _expiry(DataDemand memory d) private returns (uint256 gas) {
        uint256 state = vm.snapshotState();
        vm.warp(vm.getBlockTimestamp() > d.deadline ? vm.getBlockTimestamp() : d.deadline + 1);
        gas = gasleft();
        demands.expire(d);
        gas -= gasleft();
        _expectStatus(Status.Bidding);
        vm.revertToState(state);
    }

    function _claims(bool) internal view override returns (Claim[] memory claims, LogProof[] memory logProofs) {
        (claims, logProofs) = super._claims(true);
        for (uint256 i = 0; i < claims.length; ++i) {
            claims[i].distances[1] = 3;
        }
    }

    function _segments() internal pure override returns (uint32) {
        return 64;
    }

    function _terms() internal view override returns (Terms memory s) {
        s = super._terms();
        (s.draws, s.looks, s.lookMargin) = (32, LOOKS, 2);
        (s.solverStake, s.verifierStake, s.bond) = (60 ether, 20 ether, 5 ether);
    }
}
