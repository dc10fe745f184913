// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";
import {StakeVault} from "../../../contracts/incentives/StakeVault.sol";
import {Coin} from "./Tokens.sol";
import {VaultBase} from "./VaultBase.sol";

/// @notice What a constructor fixes for ever.
contract VaultDeploymentTest is VaultBase {
    function test_what_is_fixed_at_deployment() public {
        Coin coin = new Coin();
        StakeVault other = new StakeVault(address(coin), 3 days, mallory, alice);
        vm.assertEq(other.asset(), address(coin));
        vm.assertEq(other.exitDelay(), 3 days);
        vm.assertEq(other.trustedForwarder(), mallory);
        vm.assertEq(other.deployer(), alice);
        vm.assertFalse(other.wired());
        vm.assertEq(vault.asset(), address(0));
        vm.assertEq(vault.trustedForwarder(), address(forwarder));
    }

    function test_an_asset_without_code_is_refused() public {
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotAToken.selector, alice));
        this.newVault(alice, EXIT_DELAY);
    }

    function test_bounds_of_the_exit_delay() public {
        vm.assertEq(new StakeVault(address(0), 1 days, address(0), address(this)).exitDelay(), 1 days);
        vm.assertEq(new StakeVault(address(0), 365 days, address(0), address(this)).exitDelay(), 365 days);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.BadExitDelay.selector, 1 days - 1));
        this.newVault(address(0), 1 days - 1);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.BadExitDelay.selector, 365 days + 1));
        this.newVault(address(0), 365 days + 1);
    }

    function test_without_a_deployer_it_is_refused() public {
        vm.expectRevert(IStakeVault.Zero.selector);
        this.newVaultOf(address(0));
    }

    /// @dev As `newVault`.
    function newVaultOf(address deployer) external {
        new StakeVault(address(0), EXIT_DELAY, address(forwarder), deployer);
    }

    /// @dev A call of its own: a cheatcode stands in the place of `new`, and would itself be the call that has to
    /// revert.
    function newVault(address asset, uint64 exitDelay) external {
        new StakeVault(asset, exitDelay, address(forwarder), address(this));
    }
}
