// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Desk} from "../../../contracts/incentives/Desk.sol";
import {Auction, AuctionBase, AuctionTerms, IAuction} from "./AuctionBase.sol";

/// @notice What an auction is deployed with; opening and cancelling rounds.
contract AuctionOpenTest is AuctionBase {
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

    function test_only_desks_open() public {
        _expectRefusal(submitter, abi.encodeWithSelector(Desk.NotAllowed.selector, submitter));
        auction.open(TASK, _terms());
    }

    function test_one_round_at_a_time() public {
        bytes32 first = keccak256(abi.encode(block.chainid, address(auction), address(desk), TASK, uint32(1), _terms()));
        vm.expectEmit(address(auction));
        emit IAuction.RoundOpened(first, address(desk), TASK, 1, _terms(), uint48(vm.getBlockTimestamp() + WINDOW));
        _open();
        vm.expectRevert(abi.encodeWithSelector(IAuction.RoundNotOver.selector, id));
        desk.open(TASK, _terms());
        _toEnd();
        vm.expectRevert(abi.encodeWithSelector(IAuction.RoundNotOver.selector, id));
        desk.open(TASK, _terms());
    }

    function test_nobody_ends_what_it_has_not_opened() public {
        _open();
        _toEnd();
        vm.expectRevert(abi.encodeWithSelector(IAuction.UnknownRound.selector, bytes32(0)));
        auction.cancel(TASK);
        vm.expectRevert(abi.encodeWithSelector(IAuction.UnknownRound.selector, bytes32(0)));
        auction.conclude(TASK);
        vm.expectRevert(abi.encodeWithSelector(IAuction.UnknownRound.selector, bytes32(0)));
        fund.conclude(TASK);
        vm.expectRevert(abi.encodeWithSelector(IAuction.UnknownRound.selector, bytes32("another task")));
        auction.expire("another task");
    }

    function test_terms_under_which_nobody_could_bid_are_refused() public {
        AuctionTerms memory t = _terms();
        t.maximum = 0;
        _expectInvalid(t, "maximum");
        t = _terms();
        t.solverStake = 0;
        _expectInvalid(t, "solverStake");
        t = _terms();
        t.secondPrice = t.maximum / 60 + 1;
        _expectInvalid(t, "secondPrice");
        t.secondPrice = type(uint128).max;
        _expectInvalid(t, "secondPrice");
        t = _terms();
        t.workUnits = 0;
        _expectInvalid(t, "workUnits");
        t = _terms();
        t.submitter = address(0);
        _expectInvalid(t, "submitter");
        t = _terms();
        t.window = 59;
        _expectInvalid(t, "window");
        t.window = 90 days + 1;
        _expectInvalid(t, "window");
        t = _terms();
        t.trainingWindow = 59;
        _expectInvalid(t, "trainingWindow");
        t.trainingWindow = 365 days + 1;
        _expectInvalid(t, "trainingWindow");
    }

    function test_the_last_terms_that_pass() public {
        AuctionTerms memory t = _terms();
        (t.maximum, t.secondPrice, t.solverStake, t.workUnits) = (60, 1, 1, 1);
        (t.window, t.trainingWindow, t.verifier) = (60, 60, address(0));
        id = desk.open(TASK, t);
        _bid(ada, 0, 60);
        _toReveals();
        _reveal(ada, 0, 60);
        (address winner, uint128 price,) = desk.conclude(TASK);
        vm.assertEq(winner, ada);
        vm.assertEq(price, 0);
        (t.maximum, t.secondPrice) = (type(uint128).max, type(uint128).max / 60);
        (t.window, t.trainingWindow) = (90 days, 365 days);
        id = desk.open(TASK, t);
        desk.cancel(TASK);
        (t.maximum, t.secondPrice) = (1, 0);
        id = desk.open(TASK, t);
    }

    function test_a_round_without_bids_is_cancelled_at_any_time() public {
        _open();
        vm.expectEmit(address(auction));
        emit IAuction.RoundClosed(id, address(0), 0, 0);
        desk.cancel(TASK);
        vm.assertTrue(auction.round(id).closed);
        vm.expectRevert(abi.encodeWithSelector(IAuction.RoundOver.selector, id));
        desk.cancel(TASK);
        vm.expectRevert(abi.encodeWithSelector(IAuction.RoundOver.selector, id));
        desk.conclude(TASK);
        _expectRefusal(ada, abi.encodeWithSelector(IAuction.RoundOver.selector, id));
        auction.bid(id, "commitment");
        _open();
        vm.assertEq(auction.round(id).number, 2);
        _toEnd();
        desk.cancel(TASK);
    }

    function test_nobody_looks_at_bids_and_cancels() public {
        _open();
        _bid(ada, 1 ether, 1 hours);
        vm.expectRevert(abi.encodeWithSelector(IAuction.HasBids.selector, uint32(1)));
        desk.cancel(TASK);
        _toReveals();
        _reveal(ada, 1 ether, 1 hours);
        vm.expectRevert(abi.encodeWithSelector(IAuction.HasBids.selector, uint32(1)));
        desk.cancel(TASK);
    }

    function _expectInvalid(AuctionTerms memory t, string memory field) private {
        vm.expectRevert(abi.encodeWithSelector(IAuction.InvalidTerms.selector, field));
        desk.open(TASK, t);
    }
}
