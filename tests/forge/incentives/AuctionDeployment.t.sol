// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Auction} from "../../../contracts/incentives/Auction.sol";
import {IAuction} from "../../../contracts/incentives/IAuction.sol";
import {AuctionBase} from "./AuctionBase.sol";

/// @notice What an auction is deployed with.
contract AuctionDeploymentTest is AuctionBase {
    function test_the_deployment_is_told() public {
        auction = new Auction(vault, address(fund), FUND_KEY, 1, 2);
        vm.assertEq(address(auction.vault()), address(vault));
        vm.assertEq(auction.trustedForwarder(), address(forwarder));
        vm.assertEq(auction.fund(), address(fund));
        vm.assertEq(auction.fundKey(), FUND_KEY);
        vm.assertEq(auction.entryWork(), 1);
        vm.assertEq(auction.growth(), 2);
    }

    function test_the_deployment_is_checked() public {
        vm.expectRevert(abi.encodeWithSelector(IAuction.InvalidTerms.selector, "fund"));
        this.newAuction(address(0), ENTRY_WORK, GROWTH);
        vm.expectRevert(abi.encodeWithSelector(IAuction.InvalidTerms.selector, "entryWork"));
        this.newAuction(address(fund), 0, GROWTH);
        vm.expectRevert(abi.encodeWithSelector(IAuction.InvalidTerms.selector, "growth"));
        this.newAuction(address(fund), ENTRY_WORK, 1);
    }

    /// @dev A call of its own: a cheatcode stands in the place of `new`, and would itself be the call that has to
    /// revert.
    function newAuction(address fund_, uint128 entryWork, uint32 growth) external {
        new Auction(vault, fund_, FUND_KEY, entryWork, growth);
    }
}
