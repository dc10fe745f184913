// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AuctionBase, AuctionTerms, IAuction, IStakeVault, Round} from "./AuctionBase.sol";

/// @notice Revealing: who leads, who is free, and what can't be revealed.
contract AuctionRevealTest is AuctionBase {
    function setUp() public override {
        super.setUp();
        _open();
    }

    function test_a_leader_that_is_beaten_is_free_at_once() public {
        _bid(ada, 2 ether, 1 hours);
        _bid(bob, 3 ether, 30 minutes);
        _toReveals();
        _reveal(ada, 2 ether, 1 hours);
        vm.expectEmit(address(auction));
        emit IAuction.BidRevealed(id, bob, 3 ether, 30 minutes, true);
        vm.expectEmit(address(vault));
        emit IStakeVault.Unlocked(address(auction), id, ada, STAKE);
        _reveal(bob, 3 ether, 30 minutes);
        _expectFree(ada);
        _expectStaked(bob);
        Round memory r = auction.round(id);
        vm.assertEq(r.leader, bob);
        vm.assertEq(r.bestScore, 4.8 ether);
        vm.assertEq(r.secondScore, 5.6 ether);
    }

    /// @dev Who was beaten can't be asked for anything, so it can't refuse anything either.
    function test_a_leader_that_has_withdrawn_everything_is_displaced() public {
        _bid(ada, 2 ether, 1 hours);
        _bid(bob, 1 ether, 1 hours);
        vm.prank(ada);
        vault.withdraw(ada, MONEY - STAKE);
        vm.etch(ada, hex"5f5ffd");
        _toReveals();
        _reveal(ada, 2 ether, 1 hours);
        _reveal(bob, 1 ether, 1 hours);
        vm.assertEq(vault.free(ada), STAKE);
        vm.assertEq(auction.round(id).leader, bob);
    }

    function test_equal_scores_go_to_the_earlier_commitment_whoever_reveals_first() public {
        // Equal scores of different prices and promises.
        for (uint256 first = 0; first < 2; ++first) {
            if (first > 0) {
                desk.conclude(TASK);
                desk.release(TASK, ada);
                _open();
            }
            _bid(ada, 2 ether, 1 hours);
            _bid(bob, 3.8 ether, 30 minutes);
            _toReveals();
            if (first == 0) _reveal(ada, 2 ether, 1 hours);
            _reveal(bob, 3.8 ether, 30 minutes);
            if (first == 1) _reveal(ada, 2 ether, 1 hours);
            vm.assertEq(auction.round(id).leader, ada);
            vm.assertEq(auction.round(id).secondScore, 5.6 ether);
            _expectStaked(ada);
            _expectFree(bob);
        }
    }

    function test_reveals_begin_after_the_last_bid_and_have_an_end() public {
        _bid(ada, 2 ether, 1 hours);
        _bid(bob, 2 ether, 1 hours);
        uint256 last = auction.round(id).bidUntil;
        vm.warp(last);
        vm.expectRevert(abi.encodeWithSelector(IAuction.TooEarly.selector, last));
        _reveal(ada, 2 ether, 1 hours);
        vm.warp(last + WINDOW);
        _reveal(ada, 2 ether, 1 hours);
        vm.warp(last + WINDOW + 1);
        vm.expectRevert(abi.encodeWithSelector(IAuction.TooLate.selector, last + WINDOW));
        _reveal(bob, 2 ether, 1 hours);
    }

    function test_only_what_was_committed_is_revealed() public {
        _bid(ada, 2 ether, 1 hours);
        _toReveals();
        bytes memory wrong = abi.encodeWithSelector(IAuction.WrongOpening.selector, ada);
        vm.expectRevert(wrong);
        _reveal(ada, 2 ether - 1, 1 hours);
        vm.expectRevert(wrong);
        _reveal(ada, 2 ether, 1 hours - 1);
        vm.expectRevert(wrong);
        auction.reveal(id, ada, 2 ether, 1 hours, _salt(bob));
        _reveal(ada, 2 ether, 1 hours);
    }

    function test_nothing_is_revealed_twice_or_without_a_bid() public {
        _bid(ada, 2 ether, 1 hours);
        _bid(cyd, 2 ether, 1 hours);
        _toReveals();
        _reveal(ada, 2 ether, 1 hours);
        vm.expectRevert(abi.encodeWithSelector(IAuction.NoSealedBid.selector, ada));
        _reveal(ada, 2 ether, 1 hours);
        vm.expectRevert(abi.encodeWithSelector(IAuction.NoSealedBid.selector, bob));
        _reveal(bob, 2 ether, 1 hours);
        vm.assertEq(auction.round(id).revealed, 1);
        _expectStaked(ada);
    }

    function test_promises_have_bounds() public {
        _bid(ada, 1, 59);
        _bid(bob, 1, 2 hours + 1);
        _bid(cyd, 1, 60);
        _bid(dan, 1, 2 hours);
        _toReveals();
        vm.expectRevert(
            abi.encodeWithSelector(IAuction.PromiseOutOfRange.selector, uint32(59), uint32(60), uint32(2 hours))
        );
        _reveal(ada, 1, 59);
        vm.expectRevert(
            abi.encodeWithSelector(
                IAuction.PromiseOutOfRange.selector, uint32(2 hours + 1), uint32(60), uint32(2 hours)
            )
        );
        _reveal(bob, 1, 2 hours + 1);
        _reveal(dan, 1, 2 hours);
        _reveal(cyd, 1, 60);
        vm.assertEq(auction.round(id).leader, cyd);
    }

    function test_no_score_is_above_the_maximum() public {
        _bid(ada, 6.4 ether + 1, 1 hours);
        _bid(bob, 6.4 ether, 1 hours);
        _bid(cyd, type(uint128).max, 2 hours);
        _toReveals();
        vm.expectRevert(abi.encodeWithSelector(IAuction.ScoreTooHigh.selector, 10 ether + 1, uint128(10 ether)));
        _reveal(ada, 6.4 ether + 1, 1 hours);
        vm.expectRevert(
            abi.encodeWithSelector(
                IAuction.ScoreTooHigh.selector, uint256(type(uint128).max) + 7.2 ether, uint128(10 ether)
            )
        );
        _reveal(cyd, type(uint128).max, 2 hours);
        _reveal(bob, 6.4 ether, 1 hours);
        vm.assertEq(auction.round(id).leader, bob);
        vm.assertEq(auction.round(id).secondScore, 10 ether);
    }

    /// @dev Else whoever bids could look at all others first and then decide, for nothing, whether its bid is one.
    function test_a_bid_that_cannot_win_moves_no_price_and_costs_its_part() public {
        desk.cancel(TASK);
        AuctionTerms memory t = _terms();
        t.workUnits = ENTRY_WORK + 1;
        id = desk.open(TASK, t);
        _bid(bob, 1 ether, 1 hours);
        _toReveals();
        vm.expectRevert(abi.encodeWithSelector(IAuction.NotAdmitted.selector, bob, uint256(0)));
        _reveal(bob, 1 ether, 1 hours);
        vm.assertEq(auction.round(id).secondScore, 10 ether);
        vm.assertEq(auction.round(id).leader, address(0));
        _toEnd();
        vm.expectEmit(address(auction));
        emit IAuction.BidForfeited(id, bob, (STAKE + 15) / 16);
        auction.forfeit(id, bob);
        vm.assertEq(vault.free(bob), MONEY - (STAKE + 15) / 16);
    }
}
