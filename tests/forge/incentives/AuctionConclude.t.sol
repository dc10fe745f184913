// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AuctionBase, AuctionTerms, IAuction} from "./AuctionBase.sol";

/// @notice Ends of a round: a winner and its price, nobody, or a desk that sleeps; and bids that nobody reveals.
contract AuctionConcludeTest is AuctionBase {
    uint256 private constant LOST = 0.3125 ether + 1;

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

    function test_only_after_the_time_for_revealing_and_once() public {
        _bid(ada, 2 ether, 1 hours);
        uint256 last = _revealUntil();
        vm.warp(last);
        vm.expectRevert(abi.encodeWithSelector(IAuction.TooEarly.selector, last));
        auction.forfeit(id, ada);
        vm.warp(last + 1);
        auction.forfeit(id, ada);
        bytes memory none = abi.encodeWithSelector(IAuction.NoSealedBid.selector, ada);
        vm.expectRevert(none);
        auction.forfeit(id, ada);
        vm.expectRevert(none);
        auction.forfeit("another round", ada);
    }

    function test_the_part_is_rounded_up() public {
        uint128[5] memory stakes = [uint128(1), 15, 16, 17, 32];
        uint256[5] memory lost = [uint256(1), 1, 1, 2, 2];
        desk.cancel(TASK);
        for (uint256 i = 0; i < stakes.length; ++i) {
            AuctionTerms memory t = _terms();
            t.solverStake = stakes[i];
            id = desk.open(TASK, t);
            _bid(ada, 2 ether, 1 hours);
            _toEnd();
            uint256 before = vault.pot(address(fund), FUND_KEY);
            auction.forfeit(id, ada);
            vm.assertEq(vault.pot(address(fund), FUND_KEY) - before, lost[i]);
            desk.conclude(TASK);
        }
    }
}
