// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Auction} from "../../../contracts/incentives/Auction.sol";
import {Round} from "../../../contracts/incentives/IAuction.sol";
import {StakeVault} from "../../../contracts/incentives/StakeVault.sol";
import {Base} from "../Base.sol";
import {AuctionHandler} from "./AuctionHandler.sol";

/// @notice What holds after every action, whoever acts and whenever.
/// forge-config: default.invariant.check-interval = 16
contract AuctionInvariantsTest is Base {
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    AuctionHandler private handler;
    uint256[10] private seen;

    function setUp() public {
        handler = new AuctionHandler();
    }

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function targetSelectors() external view returns (FuzzSelector[] memory targets) {
        bytes4[16] memory weighted = [
            AuctionHandler.open.selector,
            AuctionHandler.bid.selector,
            AuctionHandler.bid.selector,
            AuctionHandler.bid.selector,
            AuctionHandler.bid.selector,
            AuctionHandler.reveal.selector,
            AuctionHandler.reveal.selector,
            AuctionHandler.reveal.selector,
            AuctionHandler.conclude.selector,
            AuctionHandler.finish.selector,
            AuctionHandler.forfeit.selector,
            AuctionHandler.expire.selector,
            AuctionHandler.cancel.selector,
            AuctionHandler.intrude.selector,
            AuctionHandler.pass.selector,
            AuctionHandler.pass.selector
        ];
        targets = new FuzzSelector[](1);
        targets[0].addr = address(handler);
        targets[0].selectors = new bytes4[](weighted.length);
        for (uint256 i = 0; i < weighted.length; ++i) {
            targets[0].selectors[i] = weighted[i];
        }
    }

    /// @dev One campaign for all rules.
    function invariant_the_auction_holds() public view {
        _all();
    }

    /// @dev At the end of every run.
    function afterInvariant() public {
        rule_no_round_is_without_an_end();
        _all();
    }

    /// @dev A stake is locked for a bid that is sealed, and for the leader of a round that isn't over; for nothing
    /// else.
    function rule_stakes_are_those_of_open_bids() public view {
        for (uint256 i = 0; i < handler.books(); ++i) {
            AuctionHandler.Book memory b = handler.book(i);
            AuctionHandler.Entry[] memory list = handler.entries(b.id);
            (, uint256 best,,) = handler.tally(b.id);
            for (uint256 k = 0; k < list.length; ++k) {
                bool open = list[k].fate == AuctionHandler.Fate.Sealed || (k + 1 == best && !b.over);
                vm.assertEq(_locked(b.id, list[k].bidder), open ? b.terms.solverStake : 0);
            }
        }
    }

    function rule_every_unit_belongs_to_somebody() public view {
        (Auction auction, StakeVault vault) = (handler.theAuction(), handler.theVault());
        uint256 sum = handler.idle() + handler.lost();
        for (uint256 k = 0; k < handler.BIDDERS(); ++k) {
            address bidder = handler.bidder(k);
            sum += vault.free(bidder);
            for (uint256 i = 0; i < handler.books(); ++i) {
                sum += _locked(handler.book(i).id, bidder);
            }
            for (uint256 i = 1; i <= handler.TASKS(); ++i) {
                sum += vault.locked(handler.theDesk(), bytes32(i), bidder);
            }
        }
        vm.assertEq(sum, handler.deposited());
        vm.assertEq(sum, address(vault).balance);
        vm.assertEq(vault.pot(auction.fund(), auction.fundKey()), handler.lost());
    }

    /// @dev Of what is revealed nothing has a smaller score, and nothing with the same score came earlier.
    function rule_the_leader_is_the_best_of_the_plain_list() public view {
        for (uint256 i = 0; i < handler.books(); ++i) {
            AuctionHandler.Book memory b = handler.book(i);
            Round memory r = handler.theAuction().round(b.id);
            (uint256 open, uint256 best, uint256 second,) = handler.tally(b.id);
            AuctionHandler.Entry[] memory list = handler.entries(b.id);
            if (best == 0 || (b.over && b.winner == address(0))) {
                vm.assertEq(r.leader, address(0));
            } else {
                vm.assertEq(r.leader, list[best - 1].bidder);
                vm.assertEq(r.leaderBid, best);
                vm.assertEq(r.bestScore, handler.scoreOf(b.terms, list[best - 1]));
            }
            vm.assertEq(r.secondScore, second);
            vm.assertEq(r.bids, list.length);
            vm.assertLe(r.revealed + open, r.bids);
        }
    }

    /// @dev The winner is the best of the list, is paid the second score, no less than its bid and no more than the
    /// maximum.
    function rule_one_winner_at_a_bounded_price() public view {
        for (uint256 i = 0; i < handler.books(); ++i) {
            AuctionHandler.Book memory b = handler.book(i);
            if (b.winner == address(0)) {
                vm.assertEq(b.price, 0);
                continue;
            }
            (, uint256 best, uint256 second,) = handler.tally(b.id);
            vm.assertEq(b.winner, handler.entries(b.id)[best - 1].bidder);
            vm.assertEq(b.price + uint256(b.terms.secondPrice) * b.promised, second);
            vm.assertLe(b.offered, b.price);
            vm.assertLe(b.price, b.terms.maximum);
        }
    }

    function rule_only_admissible_bids_are_revealed() public view {
        for (uint256 i = 0; i < handler.books(); ++i) {
            AuctionHandler.Book memory b = handler.book(i);
            AuctionHandler.Entry[] memory list = handler.entries(b.id);
            for (uint256 k = 0; k < list.length; ++k) {
                // Rates only grow: what was admissible still is.
                if (list[k].fate == AuctionHandler.Fate.Revealed) {
                    vm.assertTrue(handler.admissible(b.terms, list[k]));
                    vm.assertTrue(handler.theAuction().admits(list[k].bidder, b.terms.workUnits, list[k].promised));
                }
            }
        }
    }

    function rule_rates_are_those_of_accepted_tasks() public view {
        for (uint256 k = 0; k < handler.BIDDERS(); ++k) {
            vm.assertEq(handler.theAuction().rate(handler.bidder(k)), handler.bestRate(handler.bidder(k)));
        }
    }

    function rule_a_task_has_one_round_at_a_time() public view {
        uint256[4] memory open;
        for (uint256 i = 0; i < handler.books(); ++i) {
            AuctionHandler.Book memory b = handler.book(i);
            vm.assertEq(handler.theAuction().round(b.id).closed, b.over);
            if (!b.over) ++open[uint256(b.taskId)];
        }
        for (uint256 i = 1; i <= handler.TASKS(); ++i) {
            vm.assertLe(open[i], 1);
        }
    }

    function rule_events_rebuild_the_state() public view {
        Auction auction = handler.theAuction();
        for (uint256 i = 0; i < handler.books(); ++i) {
            bytes32 id = handler.book(i).id;
            vm.assertEq(keccak256(abi.encode(handler.replay().round(id))), keccak256(abi.encode(auction.round(id))));
            for (uint256 k = 0; k < handler.BIDDERS(); ++k) {
                address bidder = handler.bidder(k);
                vm.assertEq(
                    keccak256(abi.encode(handler.replay().sealedBid(id, bidder))),
                    keccak256(abi.encode(auction.sealedBid(id, bidder)))
                );
                vm.assertEq(handler.replay().rate(bidder), auction.rate(bidder));
            }
        }
        for (uint256 i = 1; i <= handler.TASKS(); ++i) {
            vm.assertEq(
                handler.replay().lastRound(handler.theDesk(), bytes32(i)),
                auction.lastRound(handler.theDesk(), bytes32(i))
            );
        }
    }

    /// @dev Whatever has happened, strangers alone end every round and free every stake.
    function rule_no_round_is_without_an_end() public {
        handler.finishAll();
    }

    /// @dev Long fixed runs, to know that the invariants are tested where it matters.
    function test_long_runs_reach_everything() public {
        for (uint256 run = 0; run < 3; ++run) {
            setUp();
            for (uint256 i = 0; i < 400; ++i) {
                _act(uint256(keccak256(abi.encode("dice", run, i))));
                if (i % 20 == 0) _all();
            }
            _all();
            rule_no_round_is_without_an_end();
            _all();
            _note();
        }
        for (uint256 i = 0; i < seen.length; ++i) {
            vm.assertTrue(seen[i] > 0, vm.toString(i));
        }
        vm.assertGt(handler.most(), 4);
    }

    function _all() private view {
        rule_stakes_are_those_of_open_bids();
        rule_every_unit_belongs_to_somebody();
        rule_the_leader_is_the_best_of_the_plain_list();
        rule_one_winner_at_a_bounded_price();
        rule_only_admissible_bids_are_revealed();
        rule_rates_are_those_of_accepted_tasks();
        rule_a_task_has_one_round_at_a_time();
        rule_events_rebuild_the_state();
    }

    function _act(uint256 dice) private {
        (uint256 a, uint256 b, uint256 c) = (dice >> 32, dice >> 64, dice >> 128);
        uint256 kind = dice % 32;
        if (kind < 3) handler.open(a, b);
        else if (kind < 12) handler.bid(a, b, c);
        else if (kind < 22) handler.reveal(a, b);
        else if (kind < 24) handler.conclude(a);
        else if (kind < 26) handler.finish(a, b % 3 > 0);
        else if (kind < 27) handler.forfeit(a, b);
        else if (kind < 28) (b % 4 == 0) ? handler.cancel(a) : handler.expire(a);
        else if (kind < 29) handler.intrude(a, b, c);
        else handler.pass(b % (c % 16 == 0 ? 2000 : 400));
    }

    function _note() private {
        uint256[10] memory counts = [
            handler.wins(),
            handler.ties(),
            handler.displaced(),
            handler.forfeits(),
            handler.expired(),
            handler.cancelled(),
            handler.withoutWinner(),
            handler.proven(),
            handler.refused(),
            handler.lost()
        ];
        for (uint256 i = 0; i < counts.length; ++i) {
            seen[i] += counts[i];
        }
    }

    function _locked(bytes32 id, address bidder) private view returns (uint256) {
        return handler.theVault().locked(address(handler.theAuction()), id, bidder);
    }
}
