// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AuctionBase} from "../incentives/AuctionBase.sol";

/// @notice Gas of the calls of the auction, on record in .ci/gas.json as `Gas.t.sol`: execution alone, without calldata
/// and the 21,000 of a transaction; the vault included, the desk not. Four bids.
contract AuctionGas is AuctionBase {
    modifier metered() {
        vm.pauseGasMetering();
        _open();
        _;
        vm.pauseGasMetering();
    }

    function test_auction_open() public metered {
        _begin(address(desk));
        auction.open("another task", _terms());
    }

    function test_auction_bid() public metered {
        bytes32 commitment = _commitment(id, ada, 2 ether, 1 hours);
        _begin(ada);
        auction.bid(id, commitment);
    }

    function test_auction_reveal_and_lead() public metered {
        _toReveal();
        _begin(dan);
        _reveal(dan, 1 ether, 1 hours);
    }

    function test_auction_reveal_and_lose() public metered {
        _toReveal();
        vm.startPrank(dan);
        _reveal(dan, 1 ether, 1 hours);
        vm.stopPrank();
        _begin(cyd);
        _reveal(cyd, 5 ether, 1 hours);
    }

    function test_auction_conclude() public metered {
        _toReveal();
        _toEnd();
        _begin(address(desk));
        auction.conclude(TASK);
    }

    function test_auction_forfeit() public metered {
        _toReveal();
        _toEnd();
        _begin(dan);
        auction.forfeit(id, dan);
    }

    function test_auction_expire() public metered {
        _toReveal();
        _toEnd();
        vm.warp(vm.getBlockTimestamp() + auction.round(id).window + 1);
        _begin(dan);
        auction.expire(id);
    }

    function test_auction_record_accepted() public metered {
        _toReveal();
        _toEnd();
        desk.conclude(TASK);
        _begin(address(desk));
        auction.recordAccepted(TASK);
    }

    /// @dev Ada and Bob have revealed; Cyd and Dan haven't.
    function _toReveal() private {
        _bid(ada, 3 ether, 1 hours);
        _bid(bob, 4 ether, 1 hours);
        _bid(cyd, 5 ether, 1 hours);
        _bid(dan, 1 ether, 1 hours);
        _toReveals();
        _reveal(ada, 3 ether, 1 hours);
        _reveal(bob, 4 ether, 1 hours);
    }

    function _begin(address caller) private {
        vm.cool(address(auction));
        vm.cool(address(vault));
        vm.prank(caller);
        vm.resumeGasMetering();
    }
}
