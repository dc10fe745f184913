// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Clock} from "../../../contracts/dispute/Clock.sol";

/// @notice Clocks as the specification lays them out in storage: tests put disputes there that never began.
library ClockWords {
    function pack(Clock memory clock) internal pure returns (uint256) {
        return (uint256(uint160(clock.waiting)) << 96) | (uint256(clock.level) << 88) | (uint256(clock.height) << 80)
            | (uint256(clock.isAsserterOnTurn ? 1 : 0) << 72) | (uint256(clock.result) << 64)
            | (uint256(clock.spare) << 40) | clock.deadline;
    }
}
