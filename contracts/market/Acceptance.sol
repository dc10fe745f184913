// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Claim} from "./TaskTypes.sol";

/// @title Acceptance
/// @notice The rule by which the chain accepts a segment, see docs/spec/verdict.md.
library Acceptance {
    /// @notice Sums at or above this bound are infinite.
    uint256 internal constant FINITE = 1 << 191;
    /// @notice What two i32 words that differ count. Below it is the part of a sum that comes from f32 words; with
    /// 64-bit thresholds neither side of the comparison can overflow.
    uint256 internal constant UNEQUAL = 1 << 160;

    /// @notice What the chain says about a segment. In exact mode, where thresholds are zero, the solver's end has to
    /// be the replayed one as well: states that differ may have no distance. The sums count there too: equal states may
    /// hold what is not finite.
    function accepts(bool exact, uint64[3] memory thresholds, Claim calldata claim) internal pure returns (bool) {
        // Zero in the solver's log is no state: nothing about it could be disputed, so nothing about it may be
        // accepted.
        if (claim.start == 0 || claim.end == 0) return false;
        if (exact && claim.replay != claim.end) return false;
        return isAccepted(thresholds, claim.distances, claim.references);
    }

    /// @notice The solver has done what the program says, bit for bit, whatever that is worth.
    function isRepeated(Claim calldata claim) internal pure returns (bool) {
        return claim.start != 0 && claim.end != 0 && claim.replay == claim.end;
    }

    /// @notice Accept if and only if in every component no integer differs, the reference is finite and
    /// `distance * 2^64 <= threshold * (reference mod 2^160)`.
    function isAccepted(uint64[3] memory thresholds, uint256[3] calldata distances, uint256[3] calldata references)
        internal
        pure
        returns (bool)
    {
        for (uint256 c = 0; c < 3; ++c) {
            if (distances[c] >= UNEQUAL || references[c] >= FINITE) return false;
            if (distances[c] << 64 > thresholds[c] * (references[c] % UNEQUAL)) return false;
        }
        return true;
    }
}
