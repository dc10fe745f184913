// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Bid, IAuction} from "../../../contracts/incentives/IAuction.sol";
import {AuctionBase, IStakeVault} from "./AuctionBase.sol";
import {ERC2771Forwarder, Relaying} from "./Tokens.sol";

/// @notice Sealed bids and their stakes.
contract AuctionBidTest is AuctionBase, Relaying {
    uint256 private constant EVE = 0xe5e;
    address private immutable eve = vm.addr(EVE);

    function setUp() public override {
        super.setUp();
        _open();
    }

    function test_a_bid_locks_the_stake() public {
        vm.expectEmit(address(auction));
        emit IAuction.BidPlaced(id, ada, 1, _commitment(id, ada, 2 ether, 1 hours));
        vm.expectEmit(address(vault));
        emit IStakeVault.Locked(address(auction), id, ada, STAKE);
        _bid(ada, 2 ether, 1 hours);
        _expectStaked(ada);
        Bid memory b = auction.sealedBid(id, ada);
        vm.assertEq(bytes32(b.commitment), bytes32(bytes28(_commitment(id, ada, 2 ether, 1 hours))));
        vm.assertEq(b.number, 1);
        _bid(bob, 2 ether, 1 hours);
        vm.assertEq(auction.sealedBid(id, bob).number, 2);
        vm.assertEq(auction.round(id).bids, 2);
    }

    function test_one_bid_for_each_account() public {
        _bid(ada, 2 ether, 1 hours);
        _expectRefusal(ada, abi.encodeWithSelector(IAuction.AlreadyBid.selector, ada));
        auction.bid(id, "another");
        _expectStaked(ada);
    }

    function test_submitter_and_verifier_do_not_bid() public {
        address[2] memory parties = [submitter, verifier];
        for (uint256 i = 0; i < 2; ++i) {
            _expectRefusal(parties[i], abi.encodeWithSelector(IAuction.BidderIsParty.selector, parties[i]));
            auction.bid(id, "commitment");
        }
    }

    function test_up_to_the_last_second() public {
        uint48 last = auction.round(id).bidUntil;
        vm.warp(last);
        _bid(ada, 2 ether, 1 hours);
        vm.warp(last + 1);
        _expectRefusal(bob, abi.encodeWithSelector(IAuction.TooLate.selector, uint256(last)));
        auction.bid(id, "commitment");
    }

    function test_an_unknown_round_takes_no_bid() public {
        _expectRefusal(ada, abi.encodeWithSelector(IAuction.UnknownRound.selector, bytes32("round")));
        auction.bid("round", "commitment");
    }

    /// @dev What Ada has sealed for one round opens for no other: not for the next of the same task, nor elsewhere.
    function test_a_bid_is_not_replayed_in_another_round() public {
        bytes32 sealedForFirst = _commitment(id, ada, 2 ether, 1 hours);
        desk.cancel(TASK);
        _open();
        vm.prank(ada);
        auction.bid(id, sealedForFirst);
        _toReveals();
        vm.expectRevert(abi.encodeWithSelector(IAuction.WrongOpening.selector, ada));
        _reveal(ada, 2 ether, 1 hours);
    }

    function test_nobody_opens_a_bid_that_it_has_copied() public {
        _bid(ada, 2 ether, 1 hours);
        vm.prank(bob);
        auction.bid(id, _commitment(id, ada, 2 ether, 1 hours));
        _toReveals();
        vm.expectRevert(abi.encodeWithSelector(IAuction.WrongOpening.selector, bob));
        auction.reveal(id, bob, 2 ether, 1 hours, _salt(ada));
        _reveal(ada, 2 ether, 1 hours);
        vm.assertEq(auction.round(id).leader, ada);
    }

    function test_a_bid_may_be_relayed() public {
        vm.deal(address(this), MONEY);
        vault.deposit{value: MONEY}(eve, MONEY);
        bytes memory data = abi.encodeCall(auction.bid, (id, _commitment(id, eve, 2 ether, 1 hours)));
        ERC2771Forwarder.ForwardRequestData memory request = _request(forwarder, EVE, address(auction), 0, data);
        vm.prank(dan);
        forwarder.execute(request);
        vm.assertEq(auction.sealedBid(id, eve).number, 1);
        vm.assertEq(auction.sealedBid(id, dan).number, 0);
        _expectStaked(eve);
        vm.assertEq(vault.free(dan), MONEY);
        vm.prank(dan);
        vm.expectRevert();
        forwarder.execute(request);
    }

    /// @dev The forwarder is believed because the vault named it; the same bytes by anybody else say nothing.
    function test_nobody_bids_in_another_name() public {
        vm.prank(dan);
        (bool done,) =
            address(auction).call(abi.encodePacked(abi.encodeCall(auction.bid, (id, bytes32("commitment"))), eve));
        vm.assertTrue(done);
        vm.assertEq(auction.sealedBid(id, eve).number, 0);
        vm.assertEq(auction.sealedBid(id, dan).number, 1);
    }
}
