// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AuctionTerms, IAuction} from "../../../contracts/incentives/IAuction.sol";
import {AuctionBase} from "./AuctionBase.sol";

/// @notice Ends of a round: a winner and its price, nobody, or a desk that sleeps.
contract AuctionConcludeTest is AuctionBase {
    function setUp() public override {
        super.setUp();
        _open();
    }

    function test_the_winner_is_paid_the_second_score() public {
        _bid(ada, 2 ether, 1 hours);
        _bid(bob, 3 ether, 30 minutes);
        _bid(cyd, 3 ether, 1 hours);
        _toReveals();
        _reveal(ada, 2 ether, 1 hours);
        _reveal(bob, 3 ether, 30 minutes);
        _reveal(cyd, 3 ether, 1 hours);
        uint64 deadline = uint64(vm.getBlockTimestamp()) + 30 minutes;
        vm.expectEmit(address(auction));
        // Ada's score is 5.6, Bob's seconds cost 1.8.
        emit IAuction.RoundClosed(id, bob, 3.8 ether, deadline);
        (address winner, uint128 price, uint64 until) = desk.conclude(TASK);
        vm.assertEq(winner, bob);
        vm.assertEq(price, 3.8 ether);
        vm.assertEq(until, deadline);
        vm.assertEq(_locked(bob), 0);
        vm.assertEq(vault.locked(address(desk), TASK, bob), STAKE);
        vm.assertEq(vault.free(bob), MONEY - STAKE);
        vm.assertTrue(auction.round(id).closed);
    }

    /// @dev Not the maximum price: then a slower promise than the true one would be paid as much.
    function test_a_single_bid_is_paid_what_makes_its_score_the_maximum() public {
        _bid(ada, 2 ether, 1 hours);
        _toReveals();
        _reveal(ada, 2 ether, 1 hours);
        (, uint128 price,) = desk.conclude(TASK);
        vm.assertEq(price, 10 ether - 3.6 ether);
    }

    function test_equal_scores_are_paid_what_the_winner_bid() public {
        _bid(ada, 2 ether, 1 hours);
        _bid(bob, 2 ether, 1 hours);
        _toReveals();
        _reveal(bob, 2 ether, 1 hours);
        _reveal(ada, 2 ether, 1 hours);
        (address winner, uint128 price,) = desk.conclude(TASK);
        vm.assertEq(winner, ada);
        vm.assertEq(price, 2 ether);
    }

    function test_a_bid_that_is_not_revealed_is_no_second_score() public {
        _bid(ada, 2 ether, 1 hours);
        _bid(bob, 3 ether, 1 hours);
        _toReveals();
        _reveal(ada, 2 ether, 1 hours);
        _toEnd();
        (, uint128 price,) = desk.conclude(TASK);
        vm.assertEq(price, 6.4 ether);
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

    function test_no_bids_then_a_new_round() public {
        _toReveals();
        desk.conclude(TASK);
        bytes32 first = id;
        _open();
        vm.assertNotEq(id, first);
        vm.assertEq(auction.round(id).number, 2);
        _bid(ada, 2 ether, 1 hours);
    }

    function test_bids_that_nobody_reveals_win_nothing() public {
        _bid(ada, 2 ether, 1 hours);
        _toEnd();
        (address winner,,) = desk.conclude(TASK);
        vm.assertEq(winner, address(0));
        _open();
        _bid(ada, 2 ether, 1 hours);
        vm.assertEq(vault.free(ada), MONEY - 2 * STAKE);
    }

    function test_a_winner_that_defaults_makes_room_for_a_new_round() public {
        _bid(ada, 2 ether, 1 hours);
        _bid(bob, 3 ether, 1 hours);
        _toReveals();
        _reveal(ada, 2 ether, 1 hours);
        _reveal(bob, 3 ether, 1 hours);
        (,, uint64 deadline) = desk.conclude(TASK);
        vm.warp(deadline + 1);
        _open();
        _bid(bob, 3 ether, 1 hours);
        _toReveals();
        _reveal(bob, 3 ether, 1 hours);
        (address winner,,) = desk.conclude(TASK);
        vm.assertEq(winner, bob);
        vm.assertEq(vault.locked(address(desk), TASK, ada), STAKE);
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

    /// @dev The promise counts from the conclusion, which anybody can ask the desk for.
    function test_a_late_conclusion_counts_from_then() public {
        _bid(ada, 2 ether, 1 hours);
        _toReveals();
        _reveal(ada, 2 ether, 1 hours);
        vm.warp(_revealUntil() + 3 * WINDOW);
        (address winner,, uint64 deadline) = desk.conclude(TASK);
        vm.assertEq(winner, ada);
        vm.assertEq(deadline, vm.getBlockTimestamp() + 1 hours);
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

    function testFuzz_price_is_bounded(
        uint128 maximum,
        uint128 secondPrice,
        uint128[2] memory price,
        uint32[2] memory s
    ) public {
        AuctionTerms memory t = _terms();
        t.maximum = uint128(bound(maximum, 1, type(uint128).max));
        t.secondPrice = uint128(bound(secondPrice, 0, t.maximum / 60));
        t.trainingWindow = 365 days;
        desk.cancel(TASK);
        id = desk.open(TASK, t);
        address[2] memory bidders = [ada, bob];
        for (uint256 i = 0; i < 2; ++i) {
            uint256 longest = t.secondPrice == 0 ? 365 days : t.maximum / t.secondPrice;
            s[i] = uint32(bound(s[i], 60, longest < 365 days ? longest : 365 days));
            price[i] = uint128(bound(price[i], 0, t.maximum - t.secondPrice * s[i]));
            _bid(bidders[i], price[i], s[i]);
        }
        _toReveals();
        _reveal(bob, price[1], s[1]);
        _reveal(ada, price[0], s[0]);
        uint256 scoreOfAda = price[0] + uint256(t.secondPrice) * s[0];
        uint256 scoreOfBob = price[1] + uint256(t.secondPrice) * s[1];
        uint256 expected = scoreOfAda <= scoreOfBob ? 0 : 1;
        (address winner, uint128 paid,) = desk.conclude(TASK);
        vm.assertEq(winner, bidders[expected]);
        vm.assertLe(price[expected], paid);
        vm.assertLe(paid, t.maximum);
        vm.assertEq(paid + uint256(t.secondPrice) * s[expected], scoreOfAda <= scoreOfBob ? scoreOfBob : scoreOfAda);
    }
}
