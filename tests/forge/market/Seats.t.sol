// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISortition} from "../../../contracts/incentives/ISortition.sol";
import {ForcedErrors, ISeats, ITaskRegistry, MarketBase, PATIENCE, Seating} from "./MarketBase.sol";

/// @notice Who sits: the ticket of smallest rank that claims.
contract SeatsTest is MarketBase {
    function test_a_seat_is_opened_with_a_round_that_nobody_knows() public {
        uint64 round = toyBeacon.nextRound();
        vm.expectEmit(address(seats));
        emit ISeats.SeatOpened(id, 1, false, round, uint64(block.timestamp), 4 ether);
        _submit();
        Seating memory s = seats.seating(id);
        vm.assertTrue(s.number == 1 && !s.verifies && s.round == round && s.until == 0 && s.holder == address(0));
        vm.assertFalse(toyBeacon.recorded(round));
    }

    function test_the_smallest_rank_sits_whoever_comes_first() public {
        for (uint256 order = 0; order < 2; ++order) {
            setUp();
            _open(false);
            (address better, address worse) = _ranked();
            if (order == 0) _claim(worse, 0);
            vm.expectEmit(address(seats));
            emit ISeats.SeatClaimed(id, 1, better, 0, _rank(better, 0), 0);
            _claim(better, 0);
            vm.assertEq(_gain(worse), 0);
            vm.assertEq(_gain(better), -4 ether);
            uint256 best = _rank(better, 0);
            _expectRefusal(worse, abi.encodeWithSelector(ISeats.Beaten.selector, best));
            seats.claim(id, 0, 0);
            _pass(5 minutes + 1);
            uint64 dutyRound = toyBeacon.nextRound();
            vm.expectEmit(address(seats));
            emit ISeats.SeatTaken(id, 1, better, dutyRound, uint64(vm.getBlockTimestamp()));
            seats.decide(id);
            vm.assertEq(registry.task(id).holder, better);
            vm.assertEq(registry.task(id).seating, 1);
            vm.assertEq(registry.task(id).deadline, vm.getBlockTimestamp() + 30 minutes);
            vm.assertEq(vault.locked(address(seats), id, better), 4 ether);
            vm.assertEq(vault.locked(address(seats), id, worse), 0);
        }
    }

    /// @dev Each ticket has a rank of its own, and two claims of one account lock one stake.
    function test_an_account_claims_with_its_better_ticket() public {
        _open(false);
        (uint32 better, uint32 worse) = _rank(verifier, 0) < _rank(verifier, 1) ? (0, 1) : (1, 0);
        _claim(verifier, worse);
        _claim(verifier, better);
        vm.assertEq(_gain(verifier), -4 ether);
        uint256 best = _rank(verifier, better);
        vm.assertEq(seats.seating(id).rank, best);
        // A tie is with oneself only, and changes nothing.
        _expectRefusal(verifier, abi.encodeWithSelector(ISeats.Beaten.selector, best));
        seats.claim(id, better, 0);
    }

    function test_a_rank_is_that_of_this_seat() public {
        _open(false);
        Seating memory s = seats.seating(id);
        bytes32 purpose = keccak256(abi.encode("seat", id, uint32(1)));
        uint256 rank = uint256(keccak256(abi.encode(s.seed, purpose, verifier, uint32(1))));
        _claim(verifier, 1);
        vm.assertEq(seats.seating(id).rank, rank);
    }

    function test_tickets_count_as_they_were_when_the_round_was_fixed() public {
        _submit();
        // In the same second and later: too late.
        _enrol(challenger, 1);
        _pass(10);
        _enrol(nextVerifier, 1);
        _give(seats.seating(id).round, "seat");
        seats.openClaims(id);
        _pass(1);
        _expectClaimRefused(challenger, 0, abi.encodeWithSelector(ISortition.TooFewTickets.selector, challenger, 0, 1));
        bytes memory few = abi.encodeWithSelector(ISortition.TooFewTickets.selector, nextVerifier, 1, 2);
        _expectClaimRefused(nextVerifier, 1, few);
        _claim(nextVerifier, 0);
        // Whoever has resigned has no tickets any more.
        vm.prank(verifier);
        sortition.resign(2);
        _expectClaimRefused(verifier, 0, abi.encodeWithSelector(ISortition.TooFewTickets.selector, verifier, 0, 1));
    }

    function test_nobody_claims_and_another_round_is_drawn() public {
        _open(false);
        uint64 round = seats.seating(id).round;
        _pass(5 minutes + 1);
        vm.expectEmit(address(seats));
        emit ISeats.SeatOpened(id, 1, false, round + 1, uint64(vm.getBlockTimestamp()), 4 ether);
        seats.decide(id);
        Seating memory s = seats.seating(id);
        vm.assertTrue(s.round == round + 1 && s.until == 0 && s.seed == 0 && s.number == 1);
        vm.assertEq(s.fixedAt, vm.getBlockTimestamp());
        _pass(1);
        _seat(nextVerifier);
        vm.assertEq(registry.task(id).holder, nextVerifier);
    }

    function test_a_profiler_has_no_secret_and_a_verifier_has_one() public {
        _open(false);
        _expectRefusal(verifier, ITaskRegistry.ZeroHash.selector);
        seats.claim(id, 0, "commitment");
        _claim(verifier, 0);
        _pass(5 minutes + 1);
        seats.decide(id);
        _profile();
        _conclude();
        _award();
        _commit();
        _openVerifying();
        _expectClaimRefused(verifier, 0, abi.encodeWithSelector(ITaskRegistry.ZeroHash.selector));
        vm.prank(verifier);
        seats.claim(id, 0, "commitment");
        vm.assertEq(seats.seating(id).commitment, bytes32("commitment"));
        vm.assertTrue(seats.seating(id).verifies);
        vm.assertEq(seats.seating(id).number, 2);
    }

    /// @dev A better claim replaces the secret too.
    function test_the_secret_is_that_of_whoever_sits() public {
        _toCommitted();
        _openVerifying();
        (address better, address worse) = _ranked();
        vm.prank(worse);
        seats.claim(id, 0, "of the worse");
        vm.prank(better);
        seats.claim(id, 0, "of the better");
        _pass(5 minutes + 1);
        seats.decide(id);
        vm.assertEq(seats.seating(id).commitment, bytes32("of the better"));
        vm.assertEq(seats.seating(id).holder, better);
    }

    /// @dev The same if the round that draws segments is missing: it was replaced behind the back of a seated verifier,
    /// which has its whole window then.
    function test_a_draw_that_is_replaced_too_late_slashes_no_verifier() public {
        _toCommitted();
        _pass(PATIENCE + 1);
        toyBeacon.give(seats.seating(id).round + 1, "later");
        seats.replaceRound(id);
        _pass(1);
        _open(true);
        bytes32 commitment = ForcedErrors.commitment(verifier, id, secret);
        vm.prank(verifier);
        seats.claim(id, 0, commitment);
        _pass(5 minutes + 1);
        seats.decide(id);
        _give(seats.seating(id).dutyRound, "duty");
        _pass(30 minutes);
        vm.prank(challenger);
        proofs.replaceRound(id);
        settlement.extend(id);
        _pass(1);
        _give(proofs.proof(id).round, "draw");
        vm.expectRevert(
            abi.encodeWithSelector(ITaskRegistry.DeadlineNotPassed.selector, vm.getBlockTimestamp() + 30 minutes - 1)
        );
        settlement.claimSeatDefault(id);
    }

    function test_no_clock_runs_over_an_empty_seat() public {
        _toVerifying(false);
        _pass(30 minutes + 1);
        settlement.claimSeatDefault(id);
        vm.assertEq(registry.task(id).deadline, 0);
        _pass(1_000 days);
        _seatVerifier(nextVerifier, false);
        vm.assertEq(registry.task(id).deadline, vm.getBlockTimestamp() + 30 minutes);
    }

    function _open(bool verifies) private {
        if (!verifies) _submit();
        _give(seats.seating(id).round, "seat");
        seats.openClaims(id);
    }

    function _openVerifying() private {
        _give(proofs.proof(id).round, "draw");
        _open(true);
    }

    function _claim(address who, uint32 ticket) private {
        vm.prank(who);
        seats.claim(id, ticket, 0);
    }

    function _expectClaimRefused(address who, uint32 ticket, bytes memory reason) private {
        _expectRefusal(who, reason);
        seats.claim(id, ticket, 0);
    }

    function _rank(address who, uint32 ticket) private view returns (uint256) {
        Seating memory s = seats.seating(id);
        return sortition.seatRank(who, ticket, id, s.number, s.fixedAt, s.seed);
    }

    function _ranked() private view returns (address better, address worse) {
        return _rank(verifier, 0) < _rank(nextVerifier, 0) ? (verifier, nextVerifier) : (nextVerifier, verifier);
    }
}
