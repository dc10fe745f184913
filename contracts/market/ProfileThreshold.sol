// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Acceptance} from "./Acceptance.sol";

/// @title ProfileThreshold
/// @notice Which threshold follows from one rerun, see docs/spec/profile.md.
library ProfileThreshold {
    /// @notice 2^-20 of the way travelled, squared: nobody can be asked to do better than the format of the numbers.
    uint256 internal constant FLOOR = 1 << 24;
    /// @notice 2^-6 of the way travelled, squared, as in second looks: within more a cheat goes anywhere.
    uint256 internal constant MOST = 1 << 52;

    /// @notice `max(FLOOR, margin^2 * ceil(distance * 2^64 / (base mod 2^160)))`; zero if that is no threshold: the two
    /// executions part in an integer, have no distance, went nowhere, or part by more than MOST allows.
    /// @param distance Between the ends of a portion and of a rerun.
    /// @param base Between end and start of the portion: its reference.
    /// @param margin Of the terms, below 2^16.
    function fromRerun(uint256 distance, uint256 base, uint256 margin) internal pure returns (uint64) {
        if (distance >= Acceptance.UNEQUAL || base >= Acceptance.FINITE) return 0;
        if (distance == 0) return uint64(FLOOR);
        uint256 travelled = base % Acceptance.UNEQUAL;
        if (travelled == 0) return 0;
        // Below 2^224, and its product with a margin's square below 2^256.
        uint256 ratio = ((distance << 64) - 1) / travelled + 1;
        uint256 threshold = margin * margin * ratio;
        if (threshold > MOST) return 0;
        return uint64(threshold < FLOOR ? FLOOR : threshold);
    }
}
