// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Acceptance} from "./Acceptance.sol";
import {Rerun} from "./ProfileTypes.sol";
import {Claim} from "./TaskTypes.sol";

/// @title SecondLook
/// @notice What reruns of a segment excuse that the thresholds reject, see docs/spec/verdict.md ("Second look").
library SecondLook {
    /// @notice Never more than 2^-12 of the squared way.
    uint256 internal constant MOST = 12;

    /// @notice Whether a claim that the thresholds reject is to be looked at again: no component that they reject is
    /// beyond what a second look may excuse.
    function isDue(uint64[3] memory thresholds, Claim calldata claim) internal pure returns (bool) {
        if (claim.start == 0 || claim.end == 0) return false;
        for (uint256 c = 0; c < 3; ++c) {
            (uint256 distance, uint256 far) = (claim.distances[c], claim.references[c]);
            if (distance >= Acceptance.UNEQUAL || far >= Acceptance.FINITE) return false;
            uint256 travelled = far % Acceptance.UNEQUAL;
            if (distance << 64 > thresholds[c] * travelled && distance > travelled >> MOST) return false;
        }
        return true;
    }

    /// @notice Whether every component is accepted, by its threshold or by `distance <= min(margin^2 * furthest rerun,
    /// (reference mod 2^160) / 2^12)`; a rerun without a distance gives no limit.
    function accepts(uint64[3] memory thresholds, Claim calldata claim, Rerun[] calldata reruns, uint256 margin)
        internal
        pure
        returns (bool)
    {
        for (uint256 c = 0; c < 3; ++c) {
            uint256 travelled = claim.references[c] % Acceptance.UNEQUAL;
            if (claim.distances[c] << 64 <= thresholds[c] * travelled) continue;
            uint256 limit = _limit(reruns, c, margin);
            if (travelled >> MOST < limit) limit = travelled >> MOST;
            if (claim.distances[c] > limit) return false;
        }
        return true;
    }

    /// @dev Below 2^192.
    function _limit(Rerun[] calldata reruns, uint256 c, uint256 margin) private pure returns (uint256) {
        uint256 furthest = 0;
        for (uint256 j = 0; j < reruns.length; ++j) {
            uint256 distance = reruns[j].distances[c];
            if (distance >= Acceptance.UNEQUAL) return 0;
            if (distance > furthest) furthest = distance;
        }
        return margin * margin * furthest;
    }
}
