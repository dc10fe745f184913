// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AuctionBase, AuctionTerms, IAuction} from "./AuctionBase.sol";

/// @notice Admission by what a solver has finished before.
contract ThroughputLimitTest is AuctionBase {
    uint128 private _work = ENTRY_WORK;

    function _terms() internal view override returns (AuctionTerms memory t) {
        t = super._terms();
        t.workUnits = _work;
    }

    function test_entry_work_is_open_to_everybody() public view {
        vm.assertTrue(auction.admits(ada, ENTRY_WORK, 60));
        vm.assertTrue(auction.admits(ada, 1, 1));
        vm.assertFalse(auction.admits(ada, ENTRY_WORK + 1, 365 days));
    }

    function test_an_accepted_task_proves_its_rate() public {
        _win(ada, 1000);
        uint256 rate = uint256(ENTRY_WORK) * 2 ** 32 / 1000;
        vm.expectEmit(address(auction));
        emit IAuction.RateProven(ada, rate);
        desk.recordAccepted(TASK);
        vm.assertEq(auction.rate(ada), rate);
        // Four times as fast, not more.
        vm.assertTrue(auction.admits(ada, 40 * ENTRY_WORK, 10_000));
        vm.assertFalse(auction.admits(ada, 40 * ENTRY_WORK, 9_999));
        vm.assertFalse(auction.admits(ada, 40 * ENTRY_WORK + ENTRY_WORK / 1e6, 10_000));
        vm.assertFalse(auction.admits(bob, 40 * ENTRY_WORK, 10_000));
    }

    function test_recording_twice_changes_nothing() public {
        _win(ada, 1000);
        desk.recordAccepted(TASK);
        vm.recordLogs();
        desk.recordAccepted(TASK);
        vm.assertEq(vm.getRecordedLogs().length, 0);
        vm.assertEq(auction.rate(ada), uint256(ENTRY_WORK) * 2 ** 32 / 1000);
    }

    function test_only_the_desk_of_the_task_records_and_only_for_its_winner() public {
        bytes memory nobody = abi.encodeWithSelector(IAuction.NoWinner.selector, bytes32(0));
        vm.expectRevert(nobody);
        desk.recordAccepted(TASK);
        _win(ada, 1000);
        _expectRefusal(ada, nobody);
        auction.recordAccepted(TASK);
        vm.expectRevert(nobody);
        fund.recordAccepted(TASK);
        // The winner has defaulted: its round isn't the last any more.
        _open();
        vm.expectRevert(abi.encodeWithSelector(IAuction.NoWinner.selector, id));
        desk.recordAccepted(TASK);
        _bid(bob, 1 ether, 1000);
        _toReveals();
        _reveal(bob, 1 ether, 1000);
        vm.expectRevert(abi.encodeWithSelector(IAuction.NoWinner.selector, id));
        desk.recordAccepted(TASK);
        vm.warp(_revealUntil() + WINDOW + 1);
        auction.expire(id);
        vm.expectRevert(abi.encodeWithSelector(IAuction.NoWinner.selector, id));
        desk.recordAccepted(TASK);
        vm.assertEq(auction.rate(bob), 0);
    }

    function _win(address who, uint32 promised) private {
        _open();
        _bid(who, 1 ether, promised);
        _toReveals();
        _reveal(who, 1 ether, promised);
        desk.conclude(TASK);
        desk.release(TASK, who);
    }
}
