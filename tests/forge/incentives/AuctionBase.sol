// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Auction} from "../../../contracts/incentives/Auction.sol";
import {AuctionRules} from "../../../contracts/incentives/AuctionRules.sol";
import {Forwarder} from "../../../contracts/incentives/Forwarder.sol";
import {AuctionTerms, IAuction, Round} from "../../../contracts/incentives/IAuction.sol";
import {StakeVault} from "../../../contracts/incentives/StakeVault.sol";
import {Base} from "../Base.sol";
import {AuctionDesk, IStakeVault} from "./AuctionDesk.sol";

/// @notice A vault, an auction and a desk with one task for which nobody has bid yet; four solvers with money in the
/// vault.
abstract contract AuctionBase is Base {
    uint128 internal constant ENTRY_WORK = 1e12;
    uint32 internal constant GROWTH = 4;
    bytes32 internal constant FUND_KEY = "fund";
    bytes32 internal constant TASK = "task";
    uint128 internal constant STAKE = 5 ether + 1;
    uint32 internal constant WINDOW = 10 minutes;
    uint256 internal constant MONEY = 100 ether;

    Forwarder internal forwarder;
    StakeVault internal vault;
    AuctionDesk internal desk;
    AuctionDesk internal fund;
    Auction internal auction;
    address internal submitter = account("submitter");
    address internal verifier = account("verifier");
    address internal ada = account("ada");
    address internal bob = account("bob");
    address internal cyd = account("cyd");
    address internal dan = account("dan");
    bytes32 internal id;

    function setUp() public virtual {
        vm.warp(1_000_000);
        forwarder = new Forwarder();
        vault = new StakeVault(address(0), 60 days, address(forwarder), address(this));
        desk = new AuctionDesk(vault);
        fund = new AuctionDesk(vault);
        auction = new Auction(vault, address(fund), FUND_KEY, ENTRY_WORK, GROWTH);
        desk.setAuction(auction);
        fund.setAuction(auction);
        address[] memory desks = new address[](3);
        (desks[0], desks[1], desks[2]) = (address(auction), address(desk), address(fund));
        vault.wire(desks);
        address[6] memory parties = [submitter, verifier, ada, bob, cyd, dan];
        for (uint256 i = 0; i < parties.length; ++i) {
            vm.deal(address(this), MONEY);
            vault.deposit{value: MONEY}(parties[i], MONEY);
        }
    }

    function _terms() internal view virtual returns (AuctionTerms memory t) {
        t.maximum = 10 ether;
        t.solverStake = STAKE;
        t.secondPrice = 0.001 ether;
        t.workUnits = ENTRY_WORK;
        t.submitter = submitter;
        t.verifier = verifier;
        t.window = WINDOW;
        t.trainingWindow = 2 hours;
        t.thresholds = keccak256(abi.encode([uint64(1), 2, 3]));
    }

    function _open() internal {
        id = desk.open(TASK, _terms());
    }

    /// @dev What a bidder knows about its own bid.
    function _commitment(bytes32 roundId, address bidder, uint128 price, uint32 promised)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(roundId, bidder, price, promised, _salt(bidder)));
    }

    function _salt(address bidder) internal pure returns (bytes32) {
        return keccak256(abi.encode("salt", bidder));
    }

    function _bid(address bidder, uint128 price, uint32 promised) internal {
        vm.prank(bidder);
        auction.bid(id, _commitment(id, bidder, price, promised));
    }

    function _reveal(address bidder, uint128 price, uint32 promised) internal {
        auction.reveal(id, bidder, price, promised, _salt(bidder));
    }

    function _toReveals() internal {
        vm.warp(auction.round(id).bidUntil + 1);
    }

    /// @dev Past the time for revealing.
    function _toEnd() internal {
        vm.warp(_revealUntil() + 1);
    }

    function _revealUntil() internal view returns (uint256) {
        Round memory r = auction.round(id);
        return uint256(r.bidUntil) + r.window;
    }

    function _locked(address who) internal view returns (uint256) {
        return vault.locked(address(auction), id, who);
    }

    /// @dev All money of `who` is where it can use it.
    function _expectFree(address who) internal view {
        vm.assertEq(vault.free(who), MONEY);
        vm.assertEq(_locked(who), 0);
    }

    function _expectStaked(address who) internal view {
        vm.assertEq(vault.free(who), MONEY - STAKE);
        vm.assertEq(_locked(who), STAKE);
    }
}
