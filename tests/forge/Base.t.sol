// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Base} from "./Base.sol";

/// @notice The clamp must stay inside its bounds, or fuzz tests would test something else.
contract BaseTest is Base {
    function testFuzz_bound_stays_inside(uint256 value, uint256 low, uint256 high) public pure {
        (low, high) = low <= high ? (low, high) : (high, low);
        uint256 result = bound(value, low, high);
        vm.assertTrue(low <= result && result <= high);
    }
}
