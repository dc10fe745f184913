// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch} from "../commitments/MerkleBranch.sol";
import {Position} from "./Position.sol";

/// @title OpeningSize
/// @notice How much an opening shows (docs/spec/dispute.md, How much is opened).
library OpeningSize {
    /// @dev Levels of a subtree up to this height fit one word of shares.
    uint256 internal constant MAX_HEIGHT = 31;

    /// @notice Levels that an opening shows of `height` ones: as few openings as `width` allows, cut evenly.
    function of_(uint256 height, uint256 width) internal pure returns (uint256) {
        if (height == 0) return 0;
        uint256 openings_ = openings(height, width);
        unchecked {
            // At most 64 levels.
            return (height + openings_ - 1) / openings_;
        }
    }

    /// @notice Openings that so many levels take: as few as `width` allows.
    function openings(uint256 height, uint256 width) internal pure returns (uint256) {
        unchecked {
            // At most 64 levels, and at least one an opening.
            return (height + width - 1) / width;
        }
    }

    /// @notice The shares of all heights up to 31: that of height h is byte h, counted from the highest one.
    function table(uint256 width) internal pure returns (uint256 shares) {
        for (uint256 height = 0; height <= MAX_HEIGHT; ++height) {
            shares |= of_(height, width) << (8 * (MAX_HEIGHT - height));
        }
    }

    /// @notice Share of a height up to 31.
    function shareOf(uint256 shares, uint256 height) internal pure returns (uint256 share) {
        assembly ("memory-safe") {
            share := byte(height, shares)
        }
    }

    /// @notice Into how many parts a range of `size` is cut.
    function parts(uint256 size, uint256 width) internal pure returns (uint256) {
        uint256 most = 1 << of_(MerkleBranch.depth(size), width);
        return size < most ? size : most;
    }

    /// @notice Subtrees of height `height` that begin at leaf `lo` or later, and before leaf `leaves`; no more than
    /// `most`.
    /// @param lo Before `leaves`.
    function existing(uint256 lo, uint256 leaves, uint256 height, uint256 most) internal pure returns (uint256) {
        unchecked {
            // Numbers of leaves: up to 2^31.
            uint256 count = (leaves - lo + (1 << height) - 1) >> height;
            return count < most ? count : most;
        }
    }
}
