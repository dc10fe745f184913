// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStakeVault, VaultBase} from "./VaultBase.sol";

/// @notice What answers for a duty: it is locked, unlocked, leaves after the delay, or goes to the pot and is paid. Alice
/// has three locked.
contract VaultDutyTest is VaultBase {
    uint64 private until;

    function setUp() public override {
        super.setUp();
        desk.lock(KEY, alice, 3 ether);
        until = uint64(vm.getBlockTimestamp()) + EXIT_DELAY;
    }

    /// @dev A fee of zero or an empty refund must not stop a desk.
    function test_nothing_changes_nothing() public {
        vm.recordLogs();
        desk.lock(KEY, bob, 0);
        desk.unlock(KEY, bob, 0);
        desk.startExit(KEY, bob, 0);
        desk.forfeit(KEY, bob, 0);
        desk.pay(KEY, bob, 0);
        desk.pay(KEY, address(0), 0);
        desk.move(KEY, address(otherDesk), KEY, 0);
        vm.assertEq(vm.getRecordedLogs().length, 0);
        _expectFree(bob, BROUGHT);
        _expectLeaving(bob, 0, 0);
    }

    function test_the_last_second() public {
        vm.expectEmit(address(vault));
        emit IStakeVault.Leaving(address(desk), KEY, alice, 3 ether, until);
        desk.startExit(KEY, alice, 3 ether);
        vm.warp(until - 1);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotYet.selector, until));
        vault.finishExit(address(desk), KEY, alice);
        vm.warp(until);
        vm.expectEmit(address(vault));
        emit IStakeVault.Left(address(desk), KEY, alice, 3 ether);
        vm.prank(mallory);
        vault.finishExit(address(desk), KEY, alice);
        _expectFree(alice, BROUGHT);
        _expectLeaving(alice, 0, 0);
    }

    function test_nothing_leaves_twice() public {
        desk.startExit(KEY, alice, 3 ether);
        vm.warp(until);
        vault.finishExit(address(desk), KEY, alice);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotYet.selector, 0));
        vault.finishExit(address(desk), KEY, alice);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotYet.selector, 0));
        vault.finishExit(address(otherDesk), KEY, alice);
    }

    /// @dev Or who enrols again and resigns again would leave sooner with the later part.
    function test_what_is_leaving_waits_for_what_follows() public {
        desk.startExit(KEY, alice, 1 ether);
        vm.warp(until - 1);
        desk.startExit(KEY, alice, 2 ether);
        _expectLeaving(alice, 3 ether, until - 1 + EXIT_DELAY);
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotYet.selector, until - 1 + EXIT_DELAY));
        vault.finishExit(address(desk), KEY, alice);
    }

    function test_nothing_has_left_before_the_first_exit() public {
        vm.recordLogs();
        desk.startExit(KEY, alice, 1);
        vm.assertEq(vm.getRecordedLogs().length, 1);
        // However little it is.
        vm.warp(until);
        desk.startExit(KEY, alice, 1);
        _expectLeaving(alice, 1, until + EXIT_DELAY);
        _expectFree(alice, BROUGHT - 3 ether + 1);
    }

    function test_no_more_than_answers_for_the_duty() public {
        _expectShort(alice, 3 ether, 3 ether + 1);
        desk.forfeit(KEY, alice, 3 ether + 1);
        desk.startExit(KEY, alice, 2 ether);
        _expectShort(alice, 3 ether, 3 ether + 1);
        desk.forfeit(KEY, alice, 3 ether + 1);
        _expectShort(bob, 0, 1);
        desk.forfeit(KEY, bob, 1);
    }

    function test_all_of_both() public {
        desk.startExit(KEY, alice, 2 ether);
        desk.forfeit(KEY, alice, 3 ether);
        _expectLocked(alice, 0);
        _expectLeaving(alice, 0, 0);
        _expectPot(3 ether);
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotYet.selector, 0));
        vault.finishExit(address(desk), KEY, alice);
    }

    /// @dev Whoever calls first changes nothing: what has left is not there, finished or not.
    function test_what_has_left_does_not_answer_with_what_is_locked() public {
        desk.startExit(KEY, alice, 2 ether);
        vm.warp(until);
        _expectShort(alice, 1 ether, 1 ether + 1);
        desk.forfeit(KEY, alice, 1 ether + 1);
        desk.forfeit(KEY, alice, 1 ether);
        vault.finishExit(address(desk), KEY, alice);
        _expectFree(alice, BROUGHT - 1 ether);
    }

    function test_the_pot_is_of_the_desk_and_the_key() public {
        desk.forfeit(KEY, alice, 1 ether);
        vm.assertEq(vault.pot(address(desk), OTHER_KEY), 0);
        vm.assertEq(vault.pot(address(otherDesk), KEY), 0);
        _expectShort(address(otherDesk), 0, 1);
        otherDesk.pay(KEY, mallory, 1);
        _expectShort(address(otherDesk), 0, 1);
        otherDesk.move(KEY, address(otherDesk), KEY, 1);
    }

    function test_nobody_is_not_paid() public {
        desk.forfeit(KEY, alice, 3 ether);
        vm.expectRevert(IStakeVault.Zero.selector);
        desk.pay(KEY, address(0), 1);
    }

    function test_a_pot_moves_to_another_desk() public {
        desk.forfeit(KEY, alice, 3 ether);
        vm.expectEmit(address(vault));
        emit IStakeVault.Moved(address(desk), KEY, address(otherDesk), OTHER_KEY, 1 ether);
        desk.move(KEY, address(otherDesk), OTHER_KEY, 1 ether);
        _expectPot(2 ether);
        vm.assertEq(vault.pot(address(otherDesk), OTHER_KEY), 1 ether);
        desk.move(KEY, address(otherDesk), OTHER_KEY, 0.5 ether);
        vm.assertEq(vault.pot(address(otherDesk), OTHER_KEY), 1.5 ether);
        vm.expectEmit(address(vault));
        emit IStakeVault.Paid(address(otherDesk), OTHER_KEY, bob, 1.5 ether);
        otherDesk.pay(OTHER_KEY, bob, 1.5 ether);
        _expectFree(bob, BROUGHT + 1.5 ether);
    }

    function test_a_pot_moves_to_no_stranger() public {
        desk.forfeit(KEY, alice, 3 ether);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotADesk.selector, mallory));
        desk.move(KEY, mallory, KEY, 1 ether);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotADesk.selector, mallory));
        desk.move(KEY, mallory, KEY, 0);
    }
}
