// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AuctionRules} from "./AuctionRules.sol";
import {IAuction} from "./IAuction.sol";

/// @title ThroughputLimit
/// @notice Who is believed to train how fast: newcomers begin with small tasks, and each accepted one opens tasks that
/// are `growth` times faster.
/// @dev The rate is of the promise, not of the time that was needed: whoever trains before it bids has needed no time
/// at all.
abstract contract ThroughputLimit is IAuction {
    /// @notice Tasks of no more work units are open to everybody.
    uint128 public immutable entryWork;
    /// @notice How many times faster than its best task one may promise to be.
    uint32 public immutable growth;

    /// @inheritdoc IAuction
    mapping(address account => uint256) public rate;

    constructor(uint128 entryWork_, uint32 growth_) {
        if (entryWork_ == 0) revert InvalidTerms("entryWork");
        if (growth_ < 2) revert InvalidTerms("growth");
        entryWork = entryWork_;
        growth = growth_;
    }

    /// @inheritdoc IAuction
    function admits(address account, uint128 workUnits, uint32 promised) public view returns (bool) {
        return workUnits <= entryWork || AuctionRules.rateOf(workUnits, promised) <= rate[account] * growth;
    }

    /// @dev `account` has kept a promise.
    function _prove(address account, uint128 workUnits, uint32 promised) internal {
        uint256 proven = AuctionRules.rateOf(workUnits, promised);
        if (proven <= rate[account]) return;
        rate[account] = proven;
        emit RateProven(account, proven);
    }
}
