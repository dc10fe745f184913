// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ForcedErrors, IJackpot, ISortition, Jackpot, LotteryBase, Sortition} from "./LotteryBase.sol";

/// @notice What constructors fix for ever.
contract LotteryDeploymentTest is LotteryBase {
    function test_a_deployment_needs_a_price_and_a_watcher() public {
        vm.expectRevert(ISortition.BadDeployment.selector);
        this.newSortition(0, 1);
        vm.expectRevert(ISortition.BadDeployment.selector);
        this.newSortition(1, 0);
        Sortition fresh = new Sortition(vault, 1, 1);
        vm.assertEq(fresh.unit(), 1);
        vm.assertEq(fresh.watchers(), 1);
    }

    function test_a_deployment_needs_shares_a_rate_and_windows() public {
        vm.expectRevert(IJackpot.BadDeployment.selector);
        this.newJackpot(2 * WATCHERS - 1, RATE, 60, 1);
        vm.expectRevert(IJackpot.BadDeployment.selector);
        this.newJackpot(2 * WATCHERS, RATE, 59, 1);
        vm.expectRevert(IJackpot.BadDeployment.selector);
        this.newJackpot(2 * WATCHERS, RATE, 1 days + 1, 1);
        vm.expectRevert(IJackpot.BadDeployment.selector);
        this.newJackpot(2 * WATCHERS, RATE, 60, 0);
        vm.expectRevert(abi.encodeWithSelector(ForcedErrors.RateOutOfBounds.selector, RATE + 1));
        this.newJackpot(2 * WATCHERS, RATE + 1, 60, 1);
        Jackpot fresh = new Jackpot(vault, sortition, 2 * WATCHERS, RATE, 77, 9);
        vm.assertEq(address(fresh.sortition()), address(sortition));
        vm.assertEq(fresh.shares(), 2 * WATCHERS);
        vm.assertEq(fresh.rate(), RATE);
        vm.assertEq(fresh.commitWindow(), 77);
        vm.assertEq(fresh.catchWindow(), 9);
    }

    /// @dev A call of its own: a cheatcode stands in the place of `new`, and would itself be the call that has to
    /// revert.
    function newSortition(uint128 unit, uint32 watchers) external {
        new Sortition(vault, unit, watchers);
    }

    /// @dev As above.
    function newJackpot(uint32 shares, uint32 rate, uint32 commitWindow, uint32 catchWindow) external {
        new Jackpot(vault, sortition, shares, rate, commitWindow, catchWindow);
    }
}
