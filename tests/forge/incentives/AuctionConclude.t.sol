// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IAuction} from "../../../contracts/incentives/IAuction.sol";
import {AuctionBase} from "./AuctionBase.sol";

/// @notice Ends of a round: a winner and its price, nobody, or a desk that sleeps.
contract AuctionConcludeTest is AuctionBase {
    function setUp() public override {
        super.setUp();
        _open();
    }

    function test_the_time_for_revealing_is_waited_for_unless_all_have() public {
        _bid(ada, 2 ether, 1 hours);
        _bid(bob, 3 ether, 1 hours);
        uint256 last = auction.round(id).bidUntil;
        vm.warp(last);
        vm.expectRevert(abi.encodeWithSelector(IAuction.TooEarly.selector, last + WINDOW));
        desk.conclude(TASK);
        vm.warp(last + 1);
        _reveal(ada, 2 ether, 1 hours);
        vm.warp(last + WINDOW);
        vm.expectRevert(abi.encodeWithSelector(IAuction.TooEarly.selector, last + WINDOW));
        desk.conclude(TASK);
        _reveal(bob, 3 ether, 1 hours);
        desk.conclude(TASK);
    }

    function test_a_round_without_bids_ends_with_the_time_for_bids() public {
        uint256 last = auction.round(id).bidUntil;
        vm.warp(last);
        vm.expectRevert(abi.encodeWithSelector(IAuction.TooEarly.selector, last));
        desk.conclude(TASK);
        vm.warp(last + 1);
        vm.expectEmit(address(auction));
        emit IAuction.RoundClosed(id, address(0), 0, 0);
        (address winner, uint128 price, uint64 deadline) = desk.conclude(TASK);
        vm.assertEq(winner, address(0));
        vm.assertEq(uint256(price) + deadline, 0);
    }

    function test_a_round_is_concluded_once() public {
        _bid(ada, 2 ether, 1 hours);
        _toReveals();
        _reveal(ada, 2 ether, 1 hours);
        desk.conclude(TASK);
        vm.expectRevert(abi.encodeWithSelector(IAuction.RoundOver.selector, id));
        desk.conclude(TASK);
        _toEnd();
        vm.expectRevert(abi.encodeWithSelector(IAuction.RoundOver.selector, id));
        auction.expire(id);
    }

    /// @dev A desk that never concludes holds no stake for ever.
    function test_a_round_that_its_desk_forgets_expires() public {
        _bid(ada, 2 ether, 1 hours);
        _bid(bob, 2 ether, 1 hours);
        _toReveals();
        _reveal(ada, 2 ether, 1 hours);
        uint256 last = _revealUntil() + WINDOW;
        vm.warp(last);
        vm.expectRevert(abi.encodeWithSelector(IAuction.TooEarly.selector, last));
        auction.expire(id);
        vm.warp(last + 1);
        vm.expectEmit(address(auction));
        emit IAuction.RoundClosed(id, address(0), 0, 0);
        vm.prank(dan);
        auction.expire(id);
        _expectFree(ada);
        vm.assertEq(auction.round(id).leader, address(0));
        vm.expectRevert(abi.encodeWithSelector(IAuction.RoundOver.selector, id));
        desk.conclude(TASK);
        auction.forfeit(id, bob);
        _open();
    }

    function test_a_round_without_a_leader_expires_too() public {
        vm.warp(_revealUntil() + WINDOW + 1);
        auction.expire(id);
        vm.assertTrue(auction.round(id).closed);
    }
}
