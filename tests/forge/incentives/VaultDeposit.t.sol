// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";
import {StakeVault} from "../../../contracts/incentives/StakeVault.sol";
import {VaultBase} from "./VaultBase.sol";

/// @notice The native currency comes in; how tokens come in is in VaultToken.t.sol.
contract VaultDepositTest is VaultBase {
    function test_another_amount_than_the_value_is_refused() public {
        vm.startPrank(alice);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.WrongTransfer.selector, 2 ether, 1 ether));
        vault.deposit{value: 1 ether}(alice, 2 ether);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.WrongTransfer.selector, 1 ether, 2 ether));
        vault.deposit{value: 2 ether}(alice, 1 ether);
    }

    function test_nothing_and_nobody_are_refused() public {
        vm.startPrank(alice);
        vm.expectRevert(IStakeVault.Zero.selector);
        vault.deposit{value: 0}(alice, 0);
        vm.expectRevert(IStakeVault.Zero.selector);
        vault.deposit{value: 1}(address(0), 1);
    }

    function test_nothing_comes_before_the_desks_are_named() public {
        StakeVault bare = new StakeVault(address(0), EXIT_DELAY, address(forwarder), address(this));
        vm.prank(alice);
        vm.expectRevert(IStakeVault.NotWired.selector);
        bare.deposit{value: 1}(alice, 1);
    }

    function test_a_permit_of_the_native_currency_is_refused() public {
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.WrongTransfer.selector, 1, 0));
        vault.depositWithPermit(alice, 1, type(uint256).max, 27, 0, 0);
    }

    function test_plain_ether_is_refused() public {
        vm.prank(alice);
        (bool taken,) = address(vault).call{value: 1}("");
        vm.assertFalse(taken);
    }
}
