// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Desk} from "../../../contracts/incentives/Desk.sol";
import {IObjections, Segment} from "../../../contracts/market/IObjections.sol";
import {ISettlement} from "../../../contracts/market/ISettlement.sol";
import {Opening} from "../../../contracts/market/ProfileTypes.sol";
import {Split} from "../../../contracts/market/Split.sol";
import {Outcome, Status, Terms} from "../../../contracts/market/TaskTypes.sol";
import {ObjectionBase} from "./ObjectionBase.sol";

/// @notice Who sits and isn't served says so: two end the training, and one alone answers for it if a verdict stands.
contract UnservedTest is ObjectionBase {
    uint128 private constant STAKE = 20 ether;
    int256 private constant ALL = int256(uint256(STAKE));
    // Seven tenths of that and of a price of 8 ether; and 44 of its hundredths.
    int256 private constant SHARE = 8.624 ether;

    function _terms() internal view override returns (Terms memory s) {
        s = super._terms();
        (s.solverStake, s.verifierStake, s.bond) = (STAKE, STAKE, STAKE / 4);
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

    function test_a_silent_beacon_frees_the_bond() public {
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
        vm.expectRevert(abi.encodeWithSelector(IObjections.ProofFell.selector, id));
        vm.prank(watcher);
        objections.object(id, segment, Opening(HEADER, PAYLOAD, type(uint128).max));
    }

    /// @dev It has called a log unserved that is false: whoever has accepted it contradicts nobody.
    function test_a_log_that_falls_under_a_verdict_frees_the_bond() public {
        _toSaid();
        _toDisclosed(nextVerifier, true);
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
        _toDisclosed(who, accepts);
        _settle();
    }

    function _toDisclosed(address who, bool accepts) private {
        _seatVerifier(who, false);
        _verdict(who, accepts);
        _openWatch();
        _disclose(who, accepts);
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
