// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";
import {VaultBase} from "./VaultBase.sol";

/// @notice Free money becomes locked, and free again.
contract VaultLockTest is VaultBase {
    function test_locked_money_is_not_free() public {
        vm.expectEmit(address(vault));
        emit IStakeVault.Locked(address(desk), KEY, alice, 3 ether);
        desk.lock(KEY, alice, 3 ether);
        _expectFree(alice, BROUGHT - 3 ether);
        _expectLocked(alice, 3 ether);
        desk.lock(KEY, alice, 1 ether);
        _expectLocked(alice, 4 ether);
        _expectLocked(bob, 0);
    }

    function test_unlocked_money_is_free() public {
        desk.lock(KEY, alice, 3 ether);
        vm.expectEmit(address(vault));
        emit IStakeVault.Unlocked(address(desk), KEY, alice, 2 ether);
        desk.unlock(KEY, alice, 2 ether);
        _expectFree(alice, BROUGHT - 1 ether);
        _expectLocked(alice, 1 ether);
        _expectShort(alice, 1 ether, 1 ether + 1);
        desk.unlock(KEY, alice, 1 ether + 1);
        desk.unlock(KEY, alice, 1 ether);
        _expectFree(alice, BROUGHT);
    }

    /// @dev A fee of zero or an empty refund must not stop a desk.
    function test_nothing_changes_nothing() public {
        vm.recordLogs();
        desk.lock(KEY, alice, 0);
        desk.unlock(KEY, alice, 0);
        desk.startExit(KEY, alice, 0);
        desk.forfeit(KEY, alice, 0);
        desk.pay(KEY, alice, 0);
        desk.pay(KEY, address(0), 0);
        desk.move(KEY, address(otherDesk), KEY, 0);
        vm.assertEq(vm.getRecordedLogs().length, 0);
        _expectFree(alice, BROUGHT);
        _expectLeaving(alice, 0, 0);
    }
}
