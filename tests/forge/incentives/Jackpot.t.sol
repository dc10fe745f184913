// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Desk, IJackpot, IStakeVault, Jackpot, LotteryBase, SeatingDesk, Sortition} from "./LotteryBase.sol";

/// @notice A fund that reserves, pays catches and takes back the rest. Three tickets are enrolled, so all of them
/// watch.
contract JackpotTest is LotteryBase {
    bytes32 private constant TASK = "task";
    uint128 private constant RESERVE = 6 ether + 5;

    function setUp() public override {
        super.setUp();
        _enrol(alice, 2);
        _enrol(bob, 1);
        _donate(mallory, 10 ether);
        _pass(1);
    }

    function test_desks_are_named_once_by_the_deployer() public {
        Jackpot fresh = new Jackpot(vault, sortition, SHARES, RATE, 60, 1);
        address[] memory desks = new address[](1);
        desks[0] = bob;
        _expectRefusal(mallory, abi.encodeWithSelector(Desk.NotAllowed.selector, mallory));
        fresh.wire(desk, desks);
        vm.expectEmit(address(fresh));
        emit IJackpot.Wired(address(desk), desks);
        fresh.wire(desk, desks);
        vm.assertEq(address(fresh.seatings()), address(desk));
        vm.assertTrue(fresh.mayReserve(bob));
        vm.assertFalse(fresh.mayReserve(address(desk)));
    }

    function test_anybody_gives_to_the_fund() public {
        _bring(bob, 3 ether);
        vm.expectEmit(address(jackpot));
        emit IJackpot.Donated(bob, 2 ether);
        vm.prank(bob);
        jackpot.donate(2 ether);
        vm.assertEq(jackpot.available(), 12 ether);
        vm.assertEq(vault.free(bob), 1 ether);
        _expectRefusal(bob, abi.encodeWithSelector(IStakeVault.Short.selector, bob, 1 ether, 2 ether));
        jackpot.donate(2 ether);
    }

    function test_a_reserve_is_kept_and_released() public {
        vm.expectEmit(address(jackpot));
        emit IJackpot.Reserved(TASK, RESERVE);
        desk.reserve(TASK, RESERVE);
        vm.assertEq(jackpot.reserved(), RESERVE);
        vm.assertEq(jackpot.available(), 10 ether - RESERVE);
        (uint128 amount, uint32 catches) = jackpot.reserves(TASK);
        vm.assertEq(amount, RESERVE);
        vm.assertEq(catches, 0);
        vm.expectEmit(address(jackpot));
        emit IJackpot.Released(TASK, RESERVE);
        desk.release(TASK);
        vm.assertEq(jackpot.reserved(), 0);
        vm.assertEq(jackpot.available(), 10 ether);
        vm.recordLogs();
        desk.release(TASK);
        vm.assertEq(vm.getRecordedLogs().length, 0);
        desk.reserve(TASK, 10 ether);
        vm.assertEq(jackpot.available(), 0);
    }

    function test_reserves_are_bounded_by_the_fund_and_by_shares() public {
        desk.reserve(TASK, RESERVE);
        vm.expectRevert(abi.encodeWithSelector(IJackpot.AlreadyReserved.selector, TASK));
        desk.reserve(TASK, RESERVE);
        vm.expectRevert(abi.encodeWithSelector(IJackpot.FundShort.selector, 10 ether - RESERVE, RESERVE));
        desk.reserve("another", RESERVE);
        vm.expectRevert(abi.encodeWithSelector(IJackpot.TooSmall.selector, SHARES - 1));
        desk.reserve("another", SHARES - 1);
        desk.reserve("another", SHARES);
    }

    function test_only_named_desks_reserve_and_release() public {
        _expectRefusal(mallory, abi.encodeWithSelector(Desk.NotAllowed.selector, mallory));
        jackpot.reserve(TASK, RESERVE);
        _expectRefusal(mallory, abi.encodeWithSelector(Desk.NotAllowed.selector, mallory));
        jackpot.release(TASK);
    }

    function test_commitments_are_taken_at_the_end_of_the_watch() public {
        _toWatch(TASK, RESERVE, true);
        (,,, uint64 until) = desk.seating(TASK);
        vm.warp(until - COMMIT_WINDOW);
        _expectNotWatched(TASK);
        vm.warp(until - COMMIT_WINDOW + 1);
        vm.expectEmit(address(jackpot));
        emit IJackpot.Watched(TASK, 1, alice, 1, "first");
        _watch(alice, TASK, 1, "first");
        vm.warp(until);
        _watch(alice, TASK, 1, "last");
        vm.assertEq(jackpot.commitments(TASK, 1, alice, 1), "last");
        vm.warp(until + 1);
        _expectNotWatched(TASK);
        _expectNotWatched("no task");
    }

    function test_nobody_commits_before_the_beacon_has_drawn() public {
        desk.open(TASK, submitter, solver);
        _expectNotWatched(TASK);
        desk.seat(TASK, verifier, "commitment", SEED, RESERVE);
        _expectNotWatched(TASK);
    }

    function test_parties_of_the_task_do_not_watch_it() public {
        address[3] memory parties = [submitter, solver, verifier];
        for (uint256 i = 0; i < 3; ++i) {
            _enrol(parties[i], 1);
        }
        _pass(1);
        _toWatch(TASK, RESERVE, true);
        _toCommit();
        for (uint256 i = 0; i < 3; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IJackpot.IsParty.selector, TASK, parties[i]));
            _watch(parties[i], TASK, 0, "found");
        }
    }

    function test_only_drawn_tickets_watch() public {
        _toWatch(TASK, RESERVE, true);
        _toCommit();
        vm.expectRevert(abi.encodeWithSelector(IJackpot.NotDrawn.selector, alice, 2));
        _watch(alice, TASK, 2, "found");
        vm.expectRevert(abi.encodeWithSelector(IJackpot.NotDrawn.selector, mallory, 0));
        _watch(mallory, TASK, 0, "found");
        _resign(alice, 1);
        vm.expectRevert(abi.encodeWithSelector(IJackpot.NotDrawn.selector, alice, 1));
        _watch(alice, TASK, 1, "found");
        _watch(alice, TASK, 0, "found");
    }

    function test_catches_are_paid_up_to_the_end_of_their_window_and_the_rest_goes_back() public {
        (bytes32 secret,) = _toFound();
        _toClosed(TASK, secret);
        uint64 until = _now() + CATCH_WINDOW;
        vm.warp(until);
        vm.expectEmit(address(jackpot));
        emit IJackpot.Caught(TASK, 1, alice, 0, 1 ether);
        _claim(TASK, alice, 0, SALT);
        vm.expectRevert(abi.encodeWithSelector(IJackpot.TooEarly.selector, until));
        jackpot.sweep(TASK);
        vm.warp(until + 1);
        _expectRevertClaim(abi.encodeWithSelector(IJackpot.TooLate.selector, until), bob, 0, SALT);
        vm.expectEmit(address(jackpot));
        emit IJackpot.Released(TASK, RESERVE - 1 ether);
        vm.prank(mallory);
        jackpot.sweep(TASK);
        vm.assertEq(jackpot.reserved(), 0);
        vm.assertEq(jackpot.available(), 9 ether);
        vm.expectRevert(abi.encodeWithSelector(IJackpot.NotReserved.selector, TASK));
        jackpot.sweep(TASK);
        _expectRevertClaim(abi.encodeWithSelector(IJackpot.NotReserved.selector, TASK), bob, 0, SALT);
        vm.expectRevert(abi.encodeWithSelector(IJackpot.AlreadyReserved.selector, TASK));
        desk.reserve(TASK, RESERVE);
    }

    function test_nothing_is_paid_or_swept_before_the_task_is_closed() public {
        _toFound();
        _expectRevertClaim(abi.encodeWithSelector(IJackpot.NotClosed.selector, TASK), alice, 0, SALT);
        vm.expectRevert(abi.encodeWithSelector(IJackpot.NotClosed.selector, TASK));
        jackpot.sweep(TASK);
    }

    /// @dev Six shares, three tickets, three seatings: the last three catches get nothing.
    function test_no_more_than_all_shares_are_paid() public {
        bytes32 secret;
        uint32[3] memory at;
        desk.open(TASK, submitter, solver);
        for (uint32 number = 1; number <= 3; ++number) {
            if (number > 1) desk.unseat(TASK);
            secret = _toWatchAgain(TASK, number == 1 ? RESERVE : 0, true);
            at[number - 1] = _index(TASK, number, secret);
            _toCommit();
            for (uint32 i = 0; i < 3; ++i) {
                _watch(_holder(i), TASK, i % 2, _found(_holder(i), TASK, number, at[number - 1]));
            }
        }
        _toClosed(TASK, secret);
        for (uint32 i = 0; i < 9; ++i) {
            if (i >= SHARES) vm.expectRevert(abi.encodeWithSelector(IJackpot.AllPaid.selector, TASK));
            jackpot.claim(TASK, i / 3 + 1, _holder(i % 3), i % 3 % 2, at[i / 3], SALT, abi.encode(3));
        }
        vm.assertEq(vault.free(alice), 4 ether);
        vm.assertEq(vault.free(bob), 2 ether);
        vm.assertEq(jackpot.reserved(), 5);
    }

    /// @dev Whoever watched while it could, is paid though it has resigned since: its bond still answers for it.
    function test_resigning_after_the_watch_keeps_the_catch() public {
        (bytes32 secret,) = _toFound();
        _resign(bob, 1);
        _toClosed(TASK, secret);
        _claim(TASK, bob, 0, SALT);
        vm.assertEq(vault.free(bob), 1 ether);
    }

    /// @dev At the largest amount and rate, and the shares that are allowed: nothing overflows.
    function testFuzz_the_tax_is_five_quarters_of_the_cost(uint128 amount, uint32 watchers, uint32 rate) public {
        watchers = uint32(bound(watchers, 1, 1 << 30));
        rate = uint32(bound(rate, 1 << 24, 1 << 30));
        Jackpot fund = new Jackpot(vault, new Sortition(vault, UNIT, watchers), 2 * watchers, rate, 60, 1);
        uint256 tax = fund.tax(amount);
        // Half of the reserve is what it costs on average when the error is planted.
        vm.assertGe(tax * 8 * (1 << 32), uint256(amount) * rate * 5);
        vm.assertLt(tax * 8 * (1 << 32), uint256(amount) * rate * 5 + 8 * (1 << 32));
    }

    /// @dev Alice with her first ticket and Bob have found the planted error.
    function _toFound() private returns (bytes32 secret, uint32 index) {
        secret = _toWatch(TASK, RESERVE, true);
        index = _index(TASK, 1, secret);
        _toCommit();
        _watch(alice, TASK, 0, _found(alice, TASK, 1, index));
        _watch(bob, TASK, 0, _found(bob, TASK, 1, index));
    }

    /// @dev Alice holds the tickets 0 and 1 of three, Bob one.
    function _holder(uint32 i) private view returns (address) {
        return i < 2 ? alice : bob;
    }

    function _expectRevertClaim(bytes memory reason, address who, uint32 ticket, bytes32 salt) private {
        (,,,,,,,,, uint32 index) = desk.seats(TASK, 1);
        vm.expectRevert(reason);
        jackpot.claim(TASK, 1, who, ticket, index, salt, abi.encode(1));
    }

    function _expectNotWatched(bytes32 taskId) private {
        vm.expectRevert(abi.encodeWithSelector(IJackpot.NotWatched.selector, taskId));
        _watch(alice, taskId, 0, "found");
    }
}
