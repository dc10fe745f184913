// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISortition, IStakeVault, LotteryBase, Sortition} from "./LotteryBase.sol";

/// @notice Tickets cost a bond, count from the next second on, and go at once; their bond goes late.
contract SortitionTest is LotteryBase {
    bytes32 private constant TASK = "task";

    function test_enrolling_locks_a_bond_and_counts_from_the_next_second_on() public {
        _bring(alice, 5 * UNIT);
        vm.expectEmit(address(sortition));
        emit ISortition.Enrolled(alice, 3, 3);
        vm.prank(alice);
        sortition.enrol(3);
        vm.assertEq(vault.locked(address(sortition), "bond", alice), 3 * UNIT);
        vm.assertEq(vault.free(alice), 2 * UNIT);
        vm.assertEq(sortition.ticketsNow(alice), 3);
        vm.assertEq(sortition.totalNow(), 3);
        vm.assertEq(sortition.tickets(alice, _now()), 0);
        vm.assertEq(sortition.total(_now()), 0);
        _pass(1);
        vm.assertEq(sortition.tickets(alice, _now() - 1), 0);
        vm.assertEq(sortition.tickets(alice, _now()), 3);
        vm.assertEq(sortition.total(_now()), 3);
        vm.expectEmit(address(sortition));
        emit ISortition.Enrolled(alice, 2, 5);
        vm.prank(alice);
        sortition.enrol(2);
        vm.assertEq(sortition.tickets(alice, _now()), 3);
        vm.assertEq(sortition.ticketsNow(alice), 5);
    }

    function test_enrolling_needs_free_money_and_a_count() public {
        _expectRefusal(alice, abi.encodeWithSelector(ISortition.BadCount.selector, alice, 0));
        sortition.enrol(0);
        _bring(alice, UNIT);
        _expectRefusal(alice, abi.encodeWithSelector(IStakeVault.Short.selector, alice, UNIT, 2 * UNIT));
        sortition.enrol(2);
    }

    function test_resigning_counts_at_once_and_the_bond_leaves_late() public {
        _enrol(alice, 5);
        _pass(10);
        uint64 t = _now();
        vm.expectEmit(address(sortition));
        emit ISortition.Resigned(alice, 2, 3);
        _resign(alice, 2);
        vm.assertEq(sortition.tickets(alice, t), 3);
        vm.assertEq(sortition.total(t), 5);
        _pass(1);
        vm.assertEq(sortition.total(_now()), 3);
        vm.assertEq(vault.locked(address(sortition), "bond", alice), 3 * UNIT);
        (uint256 leaving, uint64 until) = vault.leaving(address(sortition), "bond", alice);
        vm.assertEq(leaving, 2 * UNIT);
        vm.assertEq(until, t + EXIT_DELAY);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotYet.selector, until));
        vault.finishExit(address(sortition), "bond", alice);
        vm.warp(until);
        vault.finishExit(address(sortition), "bond", alice);
        vm.assertEq(vault.free(alice), 2 * UNIT);
    }

    function test_nobody_resigns_more_than_it_has() public {
        _enrol(alice, 5);
        vm.expectRevert(abi.encodeWithSelector(ISortition.TooFewTickets.selector, alice, 5, 6));
        _resign(alice, 6);
        vm.expectRevert(abi.encodeWithSelector(ISortition.BadCount.selector, alice, 0));
        _resign(alice, 0);
    }

    function test_no_time_but_from_one_to_now() public {
        for (uint256 i = 0; i < 2; ++i) {
            uint64 t = i == 0 ? 0 : _now() + 1;
            vm.expectRevert(abi.encodeWithSelector(ISortition.NoSuchTime.selector, t));
            sortition.tickets(alice, t);
            vm.expectRevert(abi.encodeWithSelector(ISortition.NoSuchTime.selector, t));
            sortition.total(t);
        }
        vm.assertEq(sortition.tickets(alice, 1), 0);
        vm.assertEq(sortition.tickets(alice, _now()), 0);
    }

    function test_a_seat_goes_by_the_ranks_of_tickets_that_count() public {
        _enrol(alice, 2);
        _pass(1);
        uint64 t = _now();
        bytes32 purpose = keccak256(abi.encode("seat", TASK, uint32(1)));
        for (uint32 ticket = 0; ticket < 2; ++ticket) {
            vm.assertEq(
                sortition.seatRank(alice, ticket, TASK, 1, t, SEED),
                uint256(keccak256(abi.encode(SEED, purpose, alice, ticket)))
            );
        }
        vm.expectRevert(abi.encodeWithSelector(ISortition.TooFewTickets.selector, alice, 2, 3));
        sortition.seatRank(alice, 2, TASK, 1, t, SEED);
        vm.expectRevert(abi.encodeWithSelector(ISortition.TooFewTickets.selector, alice, 2, uint256(1) << 32));
        sortition.seatRank(alice, type(uint32).max, TASK, 1, t, SEED);
        vm.expectRevert(abi.encodeWithSelector(ISortition.TooFewTickets.selector, alice, 0, 1));
        sortition.seatRank(alice, 0, TASK, 1, t - 1, SEED);
    }

    /// @dev Tickets drawn in 100 seatings of 100 tickets: 300 expected, with a standard error of 17; 180 of them those
    /// of the larger, with one of 13.
    function test_as_many_watch_as_are_meant_to_on_average() public {
        _enrol(alice, 60);
        _enrol(bob, 40);
        _pass(1);
        uint256[2] memory drawn;
        for (uint32 seating = 1; seating <= 100; ++seating) {
            for (uint32 ticket = 0; ticket < 60; ++ticket) {
                if (sortition.isWatcher(alice, ticket, TASK, seating, _now(), SEED)) ++drawn[0];
                if (sortition.isWatcher(bob, ticket, TASK, seating, _now(), SEED)) ++drawn[1];
            }
        }
        vm.assertGt(drawn[0] + drawn[1], 300 - 51);
        vm.assertLt(drawn[0] + drawn[1], 300 + 51);
        vm.assertGt(drawn[0], 180 - 40);
        vm.assertLt(drawn[0], 180 + 40);
    }
}
