// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";
import {VaultBase} from "./VaultBase.sol";

/// @notice Locked money leaves, and is free after the delay.
contract VaultExitTest is VaultBase {
    uint64 private until;

    function setUp() public override {
        super.setUp();
        desk.lock(KEY, alice, 3 ether);
        until = uint64(vm.getBlockTimestamp()) + EXIT_DELAY;
    }

    function test_the_last_second() public {
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
}
