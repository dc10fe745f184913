// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC2771Forwarder} from "@openzeppelin/contracts/metatx/ERC2771Forwarder.sol";
import {AuctionTerms, Bid, IAuction, Round} from "../../../contracts/incentives/IAuction.sol";
import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";
import {AuctionBase} from "./AuctionBase.sol";

/// @notice Sealed bids and their stakes.
contract AuctionBidTest is AuctionBase {
    bytes32 private constant REQUEST = keccak256(
        "ForwardRequest(address from,address to,uint256 value,uint256 gas,uint256 nonce,uint48 deadline,bytes data)"
    );

    uint256 private constant EVE = 0xe5e;

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
        vm.prank(ada);
        vm.expectRevert(abi.encodeWithSelector(IAuction.AlreadyBid.selector, ada));
        auction.bid(id, "another");
        _expectStaked(ada);
    }

    function test_submitter_and_verifier_do_not_bid() public {
        address[2] memory parties = [submitter, verifier];
        for (uint256 i = 0; i < 2; ++i) {
            vm.prank(parties[i]);
            vm.expectRevert(abi.encodeWithSelector(IAuction.BidderIsParty.selector, parties[i]));
            auction.bid(id, "commitment");
        }
    }

    function test_a_bid_without_money_for_its_stake_is_refused() public {
        vm.prank(ada);
        vault.withdraw(ada, MONEY - STAKE + 1);
        vm.prank(ada);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.Short.selector, ada, STAKE - 1, STAKE));
        auction.bid(id, "commitment");
        vm.assertEq(auction.round(id).bids, 0);
        vm.assertEq(auction.sealedBid(id, ada).number, 0);
    }

    function test_up_to_the_last_second() public {
        uint48 last = auction.round(id).bidUntil;
        vm.warp(last);
        _bid(ada, 2 ether, 1 hours);
        vm.warp(last + 1);
        vm.prank(bob);
        vm.expectRevert(abi.encodeWithSelector(IAuction.TooLate.selector, uint256(last)));
        auction.bid(id, "commitment");
    }

    function test_an_unknown_round_takes_no_bid() public {
        vm.prank(ada);
        vm.expectRevert(abi.encodeWithSelector(IAuction.UnknownRound.selector, bytes32("round")));
        auction.bid("round", "commitment");
    }

    function test_who_bids_may_become_the_solver() public {
        _bid(ada, 2 ether, 1 hours);
        _bid(bob, 1 ether, 1 hours);
        vm.assertEq(auction.sealedBid(id, ada).number, 1);
        vm.assertEq(auction.round(id).leader, address(0));
        _toReveals();
        _reveal(ada, 2 ether, 1 hours);
        vm.assertEq(auction.round(id).leader, ada);
        _reveal(bob, 1 ether, 1 hours);
        vm.assertEq(auction.sealedBid(id, ada).number, 0);
        vm.assertEq(auction.round(id).leader, bob);
        desk.conclude(TASK);
        vm.assertEq(auction.round(id).leader, bob);
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

    function test_the_id_of_a_round_binds_everything() public {
        AuctionTerms memory t = _terms();
        t.thresholds = keccak256("other thresholds");
        desk.cancel(TASK);
        uint256 before = block.chainid;
        bytes32[4] memory ids;
        ids[0] = id;
        ids[1] = desk.open("other task", _terms());
        ids[2] = fund.open(TASK, _terms());
        ids[3] = desk.open("third task", t);
        for (uint256 i = 0; i < 4; ++i) {
            for (uint256 j = 0; j < i; ++j) {
                vm.assertNotEq(ids[i], ids[j]);
            }
        }
        vm.assertEq(
            ids[3], keccak256(abi.encode(before, address(auction), address(desk), bytes32("third task"), uint32(1), t))
        );
        vm.assertNotEq(
            ids[3],
            keccak256(abi.encode(before, address(auction), address(desk), bytes32("third task"), uint32(1), _terms()))
        );
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
        address signer = eve();
        vm.deal(address(this), MONEY);
        vault.deposit{value: MONEY}(signer, MONEY);
        ERC2771Forwarder.ForwardRequestData memory request;
        request.from = signer;
        request.to = address(auction);
        request.gas = 300_000;
        request.deadline = uint48(vm.getBlockTimestamp() + 1 hours);
        request.data = abi.encodeCall(auction.bid, (id, _commitment(id, signer, 2 ether, 1 hours)));
        request.signature = _sign(request);
        vm.prank(dan);
        forwarder.execute(request);
        vm.assertEq(auction.sealedBid(id, signer).number, 1);
        vm.assertEq(auction.sealedBid(id, dan).number, 0);
        _expectStaked(signer);
        vm.assertEq(vault.free(dan), MONEY);
        vm.prank(dan);
        vm.expectRevert();
        forwarder.execute(request);
    }

    /// @dev The forwarder is believed because the vault named it; the same bytes by anybody else say nothing.
    function test_nobody_bids_in_another_name() public {
        vm.prank(dan);
        (bool done,) =
            address(auction).call(abi.encodePacked(abi.encodeCall(auction.bid, (id, bytes32("commitment"))), eve()));
        vm.assertTrue(done);
        vm.assertEq(auction.sealedBid(id, eve()).number, 0);
        vm.assertEq(auction.sealedBid(id, dan).number, 1);
    }

    function testFuzz_bids_are_counted(uint8 count) public {
        Round memory before = auction.round(id);
        for (uint256 i = 0; i < count % 16; ++i) {
            address bidder = address(uint160(0x1000 + i));
            vm.deal(address(this), STAKE);
            vault.deposit{value: STAKE}(bidder, STAKE);
            _bid(bidder, 1 ether, 1 hours);
            vm.assertEq(auction.sealedBid(id, bidder).number, i + 1);
            vm.assertEq(_locked(bidder), STAKE);
            vm.assertEq(vault.free(bidder), 0);
        }
        before.bids = count % 16;
        vm.assertEq(keccak256(abi.encode(auction.round(id))), keccak256(abi.encode(before)));
    }

    function eve() private pure returns (address) {
        return vm.addr(EVE);
    }

    function _sign(ERC2771Forwarder.ForwardRequestData memory request) private view returns (bytes memory) {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("pol forwarder"),
                keccak256("1"),
                block.chainid,
                address(forwarder)
            )
        );
        bytes32 content = keccak256(
            abi.encode(
                REQUEST,
                request.from,
                request.to,
                request.value,
                request.gas,
                forwarder.nonces(request.from),
                request.deadline,
                keccak256(request.data)
            )
        );
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(EVE, keccak256(abi.encodePacked(hex"1901", domain, content)));
        return abi.encodePacked(r, s, v);
    }
}
