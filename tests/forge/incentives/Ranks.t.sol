// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Ranks} from "../../../contracts/incentives/Ranks.sol";
import {Base} from "../Base.sol";

/// @notice How many ranks watch, at all sizes; with whole draws in Sortition.t.sol and LotteryVectors.t.sol.
contract RanksTest is Base {
    function testFuzz_a_limit_is_the_share_of_all_ranks(uint256 total, uint32 watchers, uint256 rank) public pure {
        total = bound(total, 1, type(uint256).max);
        if (total <= watchers) {
            vm.assertTrue(Ranks.isBelow(rank, total, watchers));
            return;
        }
        uint256 share = type(uint256).max / total;
        unchecked {
            // Only a power of two divides 2^256.
            if (total & (total - 1) == 0) ++share;
        }
        vm.assertEq(Ranks.isBelow(rank, total, watchers), rank < share * watchers);
        vm.assertFalse(Ranks.isBelow(share * watchers, total, watchers));
        if (watchers > 0) vm.assertTrue(Ranks.isBelow(share * watchers - 1, total, watchers));
    }

    /// @dev Where 2^256 is divided without a rest, or with the largest there is: one more or less than 2^256 would give
    /// another share.
    function test_limits_where_a_division_is_exact() public pure {
        for (uint256 k = 1; k < 256; ++k) {
            _expectLimit(1 << k, 1 << (256 - k));
        }
        // A prime factor of 2^256 + 1, and two of 2^256 - 1.
        uint256 factor = 1_238_926_361_552_897;
        _expectLimit(factor, type(uint256).max / factor);
        _expectLimit(3, type(uint256).max / 3);
        _expectLimit(65_537, type(uint256).max / 65_537);
    }

    function test_all_watch_if_they_are_no_more_than_watchers() public pure {
        vm.assertTrue(Ranks.isBelow(type(uint256).max, 3, 3));
        vm.assertTrue(Ranks.isBelow(type(uint256).max, 2, 3));
        vm.assertFalse(Ranks.isBelow(type(uint256).max, 4, 3));
    }

    function _expectLimit(uint256 total, uint256 share) private pure {
        vm.assertTrue(Ranks.isBelow(share - 1, total, 1));
        vm.assertFalse(Ranks.isBelow(share, total, 1));
    }
}
