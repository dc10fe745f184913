// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AuctionTerms, IAuction} from "./IAuction.sol";

/// @title AuctionRules
/// @notice Numbers of the auction, mirrored by `pol.incentives.auction` and tied to it by
/// fixtures/vectors/auction.json.
library AuctionRules {
    /// @notice Five blocks of 12 seconds: what is sent at once is heard.
    uint32 internal constant MIN_WINDOW = 60 seconds;
    /// @notice Longest that bids hold stakes before they are revealed.
    uint32 internal constant MAX_WINDOW = 90 days;
    /// @notice Whoever promises less is beaten by the pace of the chain. It also bounds the rate that an entry task can
    /// prove.
    uint32 internal constant MIN_PROMISE = 60 seconds;
    /// @notice Longest training.
    uint32 internal constant MAX_TRAINING_WINDOW = 365 days;
    /// @notice A bid that is not revealed costs this part of its stake.
    uint256 internal constant FORFEIT_PART = 16;

    /// @notice Reverts with the name of the first field that breaks a rule. Under terms that pass, some bid can win.
    function check(AuctionTerms calldata terms) internal pure {
        _require(terms.maximum > 0, "maximum");
        _require(terms.solverStake > 0, "solverStake");
        _require(uint256(terms.secondPrice) * MIN_PROMISE <= terms.maximum, "secondPrice");
        _require(terms.workUnits > 0, "workUnits");
        _require(terms.submitter != address(0), "submitter");
        _require(MIN_WINDOW <= terms.window && terms.window <= MAX_WINDOW, "window");
        _require(MIN_PROMISE <= terms.trainingWindow && terms.trainingWindow <= MAX_TRAINING_WINDOW, "trainingWindow");
    }

    /// @notice What bids are compared by: less is better.
    function score(uint128 price, uint32 promised, uint128 secondPrice) internal pure returns (uint256) {
        return price + uint256(secondPrice) * promised;
    }

    /// @notice What a winner is paid: with this price its score would equal `secondScore`, which is no smaller than its
    /// own.
    function priceOf(uint128 secondScore, uint32 promised, uint128 secondPrice) internal pure returns (uint128) {
        return secondScore - secondPrice * promised;
    }

    /// @notice Work units per 2^32 seconds.
    function rateOf(uint128 workUnits, uint32 promised) internal pure returns (uint256) {
        return (uint256(workUnits) << 32) / promised;
    }

    /// @notice What is lost of a stake whose bid nobody has revealed; rounded up, so that it is never nothing.
    function forfeited(uint128 stake) internal pure returns (uint256) {
        return (stake + FORFEIT_PART - 1) / FORFEIT_PART;
    }

    /// @notice The id of a round of this contract on this chain; it binds the terms.
    function roundId(address desk, bytes32 taskId, uint32 number, AuctionTerms calldata terms)
        internal
        view
        returns (bytes32)
    {
        return keccak256(abi.encode(block.chainid, address(this), desk, taskId, number, terms));
    }

    /// @notice What hides a bid. It can't be opened for another round, task, contract or chain, nor by another bidder.
    function commitment(bytes32 id, address bidder, uint128 price, uint32 promised, bytes32 salt)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(id, bidder, price, promised, salt));
    }

    function _require(bool holds, string memory field) private pure {
        if (!holds) revert IAuction.InvalidTerms(field);
    }
}
