// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {RoundDesk} from "../../../contracts/rounds/RoundDesk.sol";
import {CountedPhase, PlanTerms, RoundDemand, RoundsBase, RoundShares, SignedClaim, Standing} from "./RoundsBase.sol";
import {TimedDemands, WorkerBonds} from "./RoundsBase.sol";

/// @notice Attacks on what settlements pay: lines that claim too much, settlements opened too soon, a coordinator that
/// falls, a document that is registered twice. Parties 1 to 3 are workers, the last one the submitter.
contract SettlementsTest is RoundsBase {
    uint256 private constant SUBMITTER = PARTIES - 1;

    /// @notice It once was any number below 2^112, in all open settlements at once, and the others got nothing.
    function test_a_line_has_the_units_that_the_plan_gives_its_claims() public {
        _open();
        _post(1, 0, 0, 3);
        vm.assertEq(shares.lineOf(id, 0, _party(1)).units, 3 * UNITS);
        _isNoLine(_claim(1000, 0, 0), _phasesOfLine()); // behind the last round
        _isNoLine(_claim(0, 1, 0), _phasesOfLine()); // of no phase of the plan
        _isNoLine(_claim(0, 0, 2), _phasesOfLine()); // of no part of its phase
        _isNoLine(_claim(0, 0, 0), new CountedPhase[](0)); // of a phase that isn't shown
        CountedPhase[] memory other = _phasesOfLine();
        other[0].proof.phase.units += 1;
        _expectRefusal(_party(2), abi.encodeWithSignature("NotInPlan(uint32)", 0));
        shares.post(id, 0, _claim(0, 0, 0), other);
    }

    /// @notice No game begins behind step 2^32: a claim there could be any lie.
    function test_a_phase_that_no_game_decides_counts_nothing() public {
        PlanTerms memory t = _terms();
        CountedPhase[] memory phases = _phasesOfLine();
        phases[0].proof.phase.steps = 2_147_484; // of 1000 rounds and two parts
        for (uint256 i = 0; i < 2; ++i) {
            t.phases = _phasesOf(phases[0].proof.phase);
            vm.prank(_party(SUBMITTER));
            bytes32 second = bonds.register(t);
            vm.prank(_party(0));
            bonds.join(second);
            vm.prank(_party(1));
            bonds.join(second);
            _pass(3 days);
            shares.open(second);
            if (i == 0) vm.expectRevert(abi.encodeWithSelector(RoundShares.BadLine.selector, 0));
            vm.prank(_party(1));
            shares.post(second, 0, _claim(0, 0, 0), phases);
            phases[0].proof.phase.steps -= 1;
        }
    }

    /// @notice Whoever pays out first, a false line takes nothing from the others: they get its part when it is void.
    function test_a_false_line_delays_what_it_would_take() public {
        _open();
        _post(1, 0, 0, 98);
        _post(2, 0, 0, 2);
        RoundDemand memory d = _demandCounted(1);
        _pass(1 days);
        uint256 before = vault.free(_party(2));
        shares.settle(id, 0, _party(2));
        vm.assertEq(vault.free(_party(2)) - before, uint256(PAY) * 2 / 100);
        vm.expectPartialRevert(bytes4(keccak256("AccusationsOpen(uint32)")));
        shares.settle(id, 0, _party(1));
        _pass(1);
        shares.expire(d);
        _settled(1);
        _settled(2);
        vm.assertEq(vault.free(_party(2)) - before, PAY);
        vm.assertEq(shares.ownershipOf(id, _party(2)).units, 2 * UNITS);
        vm.assertEq(shares.totalUnits(id), 2 * UNITS);
        _isSettled(1);
        _isSettled(2);
        _checkBooks();
    }

    /// @notice What is open about one worker keeps nobody else from its pay.
    function test_an_accusation_delays_the_line_of_its_worker_alone() public {
        _open();
        _post(1, 0, 0, 1);
        _post(2, 0, 0, 1);
        _pass(2 days + 1);
        // Demanded when lines can't be disputed any more: a claim of any age.
        vm.prank(_party(3));
        demands.demandSource(id, _signed(1, 0, "end"), _phase(), 0, 1 ether);
        _settled(2);
        vm.assertEq(vault.free(_party(2)), BROUGHT - STAKE + uint256(PAY) / 2);
    }

    /// @notice A demand is made once in a second, for no more than its demander has said.
    function test_what_is_demanded_twice_or_for_too_much() public {
        SignedClaim memory signed = _signed(1, 0, "end");
        vm.startPrank(_party(3));
        bytes32 key = demands.demandRoster(id, signed, 1 ether);
        vm.expectRevert(abi.encodeWithSelector(TimedDemands.AlreadyDemanded.selector, key));
        demands.demandRoster(id, signed, 1 ether);
        uint256 bond = demands.rosterBondOf(id);
        vm.expectRevert(abi.encodeWithSelector(RoundDesk.BondTooHigh.selector, bond));
        demands.demandRoster(id, signed, bond - 1);
    }

    /// @notice Who is slashed behind its payment keeps that, and its units stay; more of it goes to the treasury.
    function test_what_a_paid_worker_would_get_besides_goes_to_the_treasury() public {
        _open();
        _post(1, 0, 0, 2);
        _post(2, 0, 0, 2);
        _pass(2 days + 1);
        _settled(1);
        _slash(1);
        _slash(2);
        _settled(2);
        uint256 before = vault.free(treasury);
        _settled(1);
        vm.assertEq(vault.free(treasury) - before, PAY - uint256(PAY) / 2);
        _checkBooks();
    }

    /// @notice The coordinator once opened all of them in a block, and who had one claim for each took all pay.
    function test_settlements_open_one_after_the_other() public {
        vm.startPrank(_party(0));
        vm.expectPartialRevert(RoundShares.NotOpenable.selector);
        shares.open(id);
        vm.stopPrank();
        for (uint32 i = 0; i < 4; ++i) {
            _open();
            vm.expectPartialRevert(RoundShares.NotOpenable.selector);
            shares.open(id);
            _pass(2 days + 1);
        }
        _pass(30 days);
        vm.expectRevert(abi.encodeWithSelector(RoundShares.NotOpenable.selector, type(uint64).max));
        shares.open(id);
        PlanTerms memory t = _terms();
        t.period = 2 * t.lineWindow + t.answerWindow - 1;
        _isNoPlan(t, "period");
        t = _terms();
        t.keeperStake = 3 * PAY - 1;
        t.stake = 1 ether;
        _isNoPlan(t, "keeperStake");
    }

    /// @notice Who keeps a claim back for a settlement in which nobody else has any gets no more for it.
    function test_no_claim_is_paid_more_than_its_part_of_the_work() public {
        _open();
        _post(1, 0, 0, 1);
        vm.expectPartialRevert(TimedDemands.DeadlineNotPassed.selector);
        shares.close(id, 0);
        _pass(2 days + 1);
        (uint256 worker, uint256 submitter) = (vault.free(_party(1)), vault.free(_party(SUBMITTER)));
        _settled(1);
        shares.close(id, 0);
        vm.assertEq(vault.free(_party(1)) - worker, uint256(PAY) / 2);
        vm.assertEq(vault.free(_party(SUBMITTER)) - submitter, uint256(PAY) / 2);
        vm.expectRevert(RoundShares.NothingToSettle.selector);
        shares.close(id, 0);
        _checkBooks();
    }

    /// @notice A void line leaves its part to the submitter where fewer units are left than a settlement pays in full.
    function test_the_part_of_a_void_line_returns() public {
        _open();
        _post(1, 0, 0, 1);
        _post(2, 0, 0, 1);
        _pass(2 days + 1);
        vm.expectRevert(RoundShares.NothingToSettle.selector);
        shares.close(id, 0);
        _slash(2);
        _settled(2);
        _settled(1);
        shares.close(id, 0);
        vm.assertEq(vault.pot(address(shares), id), 3 * PAY + 1);
        vm.assertEq(vault.free(_party(1)), BROUGHT - STAKE + uint256(PAY) / 2);
    }

    /// @notice Its coordinator once fell for the submitter, who got all pay back: nobody could count anything then.
    function test_honest_lines_are_paid_behind_the_fall_of_their_coordinator() public {
        _open();
        _post(1, 0, 0, 2);
        _slash(0);
        // Lines that come late, in the settlement that is open, and in a last one for what was done since.
        _post(2, 0, 0, 2);
        _pass(2 days + 1);
        (uint256 burnt, uint256 submitter) = (vault.free(treasury), vault.free(_party(SUBMITTER)));
        _settled(1);
        _settled(2);
        _open();
        _post(1, 1, 5, 1);
        vm.assertEq(vault.free(treasury) - burnt, 2 * PAY);
        _pass(2 days + 1);
        shares.settle(id, 1, _party(1));
        shares.close(id, 1);
        vm.assertEq(vault.free(_party(1)), BROUGHT - STAKE + 2 * (uint256(PAY) / 2));
        vm.assertEq(vault.free(_party(2)), BROUGHT - STAKE + uint256(PAY) / 2);
        vm.assertEq(vault.free(_party(SUBMITTER)), submitter);
        _pass(3 days);
        vm.expectRevert(abi.encodeWithSelector(RoundShares.NotOpenable.selector, uint256(type(uint64).max) + 3 days));
        shares.open(id);
        _checkBooks();
    }

    /// @notice With all settlements open there is no rest, and what nobody counts in the last one is the treasury's.
    function test_a_coordinator_that_falls_in_the_last_settlement_returns_nothing() public {
        for (uint32 i = 0; i < 4; ++i) {
            _open();
            if (i < 3) {
                _pass(2 days + 1);
                shares.close(id, i);
            }
        }
        _slash(0);
        _post(1, 3, 0, 1);
        (uint256 burnt, uint256 submitter) = (vault.free(treasury), vault.free(_party(SUBMITTER)));
        _pass(2 days + 1);
        shares.settle(id, 3, _party(1));
        shares.close(id, 3);
        vm.assertEq(vault.free(_party(1)), BROUGHT - STAKE + uint256(PAY) / 2);
        vm.assertEq(vault.free(treasury) - burnt, uint256(PAY) / 2);
        vm.assertEq(vault.free(_party(SUBMITTER)), submitter);
        _checkBooks();
    }

    /// @notice What was signed for one registration is worth nothing in another of the same document.
    function test_what_is_signed_names_its_registration() public {
        SignedClaim memory one = _signed(1, 0, "end");
        SignedClaim memory other = _signed(1, 0, "another end");
        PlanTerms memory t = _terms();
        t.pay -= 1;
        vm.prank(_party(SUBMITTER));
        bytes32 second = bonds.register(t);
        vm.prank(_party(0));
        bonds.join(second);
        vm.prank(_party(1));
        bonds.join(second);
        vm.expectRevert(abi.encodeWithSelector(RoundDesk.OtherPlan.selector, id));
        evidence.showTwoClaims(second, one, other);
        vm.expectRevert(abi.encodeWithSelector(RoundDesk.OtherPlan.selector, id));
        demands.demandRoster(second, one, 1 ether);
    }

    function _open() private {
        _pass(3 days);
        shares.open(id);
    }

    function _settled(uint256 party) private {
        shares.settle(id, 0, _party(party));
    }

    function _isSettled(uint256 party) private {
        vm.expectRevert(RoundShares.NothingToSettle.selector);
        _settled(party);
    }

    function _claim(uint64 round, uint32 phase, uint32 part) private pure returns (bytes memory) {
        return abi.encodePacked(round, phase, part, bytes32("claim"));
    }

    function _isNoLine(bytes memory line, CountedPhase[] memory phases) private {
        _expectRefusal(_party(2), abi.encodeWithSelector(RoundShares.BadLine.selector, 0));
        shares.post(id, 0, line, phases);
    }

    function _isNoPlan(PlanTerms memory t, string memory field) private {
        vm.expectRevert(abi.encodeWithSignature("InvalidPlan(string)", field));
        bonds.register(t);
    }

    /// @dev The first claim of a worker's line, in the last second for it.
    function _demandCounted(uint256 party) private returns (RoundDemand memory d) {
        _pass(2 days);
        bytes32 content = keccak256(abi.encode("counted", uint32(0), uint32(0)));
        uint256 bond = shares.rosterBondOf(id);
        d = RoundDemand(id, _party(party), _party(3), uint64(vm.getBlockTimestamp()) + 1 days, bond, content);
        vm.prank(_party(3));
        vm.assertEq(shares.demandCounted(id, 0, _party(party), 0, bond), keccak256(abi.encode(d)));
    }

    function _slash(uint256 party) private {
        _show(_party(3), _twoClaims(party, 0));
        vm.assertTrue(bonds.bond(id, _party(party)).standing == Standing.Slashed);
    }
}
