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
        new Auction(vault, address(0), FUND_KEY, ENTRY_WORK, GROWTH);
        vm.expectRevert(abi.encodeWithSelector(IAuction.InvalidTerms.selector, "entryWork"));
        new Auction(vault, address(fund), FUND_KEY, 0, GROWTH);
        vm.expectRevert(abi.encodeWithSelector(IAuction.InvalidTerms.selector, "growth"));
        new Auction(vault, address(fund), FUND_KEY, ENTRY_WORK, 1);
    }
}
