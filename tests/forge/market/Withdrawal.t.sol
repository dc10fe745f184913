// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Ledger} from "../../../contracts/market/Ledger.sol";
import {TaskMarket} from "../../../contracts/market/TaskMarket.sol";
import {Terms} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice A submitter whose wallet calls back while it is paid, or refuses.
contract HostileSubmitter {
    TaskMarket private immutable market;
    bytes private callback;
    bool public refuses;
    uint256 public reentries;

    constructor(TaskMarket market_) payable {
        market = market_;
    }

    function submitAndCancel(Terms calldata terms) external returns (bytes32 id) {
        id = market.submitTask{value: 10 ether}(terms);
        market.cancelTask(id);
    }

    function withdraw(bytes calldata callback_, bool refuses_) external {
        (callback, refuses) = (callback_, refuses_);
        market.withdraw();
    }

    receive() external payable {
        if (refuses) revert("no");
        (bool reentered,) = address(market).call(callback);
        if (reentered) ++reentries;
    }
}

contract WithdrawalTest is MarketBase {
    function test_nothing_is_paid_twice() public {
        _submit();
        vm.startPrank(submitter);
        market.cancelTask(id);
        vm.expectEmit(address(market));
        emit Ledger.Withdrawn(submitter, 10 ether);
        market.withdraw();
        vm.assertEq(submitter.balance, 1_000 ether);
        vm.expectRevert(Ledger.NothingToWithdraw.selector);
        market.withdraw();
    }

    function test_strangers_withdraw_nothing() public {
        _submit();
        vm.prank(challenger);
        vm.expectRevert(Ledger.NothingToWithdraw.selector);
        market.withdraw();
    }

    function test_reentering_pays_nothing_more() public {
        _submit();
        HostileSubmitter hostile = new HostileSubmitter{value: 10 ether}(market);
        bytes32 own = hostile.submitAndCancel(_terms());
        hostile.withdraw(abi.encodeCall(Ledger.withdraw, ()), false);
        vm.assertEq(hostile.reentries(), 0);
        vm.assertEq(address(hostile).balance, 10 ether);
        vm.assertEq(market.credits(address(hostile)), 0);
        own = hostile.submitAndCancel(_terms());
        hostile.withdraw(abi.encodeCall(TaskMarket.cancelTask, (own)), false);
        vm.assertEq(hostile.reentries(), 0);
        vm.assertEq(address(market).balance, 10 ether);
        _expectConserved();
    }

    function test_who_refuses_keeps_its_credit_and_stops_nobody() public {
        HostileSubmitter hostile = new HostileSubmitter{value: 10 ether}(market);
        hostile.submitAndCancel(_terms());
        vm.expectRevert(Ledger.PaymentRefused.selector);
        hostile.withdraw("", true);
        vm.assertEq(market.credits(address(hostile)), 10 ether);
        hostile.withdraw("", false);
        vm.assertEq(address(hostile).balance, 10 ether);
    }

    function test_plain_ether_is_refused() public {
        vm.prank(submitter);
        (bool taken,) = address(market).call{value: 1 ether}("");
        vm.assertFalse(taken);
    }
}
