// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Ranks
/// @notice Who is drawn for a duty: docs/spec/incentives.md, "Weights and draws".
/// @dev The seed is that of a beacon's round which was fixed before; callers choose nothing that goes into a rank.
library Ranks {
    /// @notice What is drawn with a seed: `name` is "seat" or "watch".
    function purpose(string memory name, bytes32 taskId, uint32 seating) internal pure returns (bytes32) {
        return keccak256(abi.encode(name, taskId, seating));
    }

    /// @notice The rank of one ticket.
    function rank(bytes32 seed, bytes32 purpose_, address account, uint32 ticket) internal pure returns (uint256) {
        return uint256(keccak256(abi.encode(seed, purpose_, account, ticket)));
    }

    /// @notice Whether a ticket with this rank watches: so do `watchers` of `total` tickets on average, and all if
    /// there are no more.
    function isBelow(uint256 rank_, uint256 total, uint256 watchers) internal pure returns (bool) {
        if (total <= watchers) return true;
        // floor(2^256 / total), which is 1 + floor((2^256 - total) / total). Times less than `total`, so it stays below
        // 2^256.
        return rank_ < ((type(uint256).max - total + 1) / total + 1) * watchers;
    }
}
