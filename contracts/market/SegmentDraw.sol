// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title SegmentDraw
/// @notice Which segments a seed draws, see docs/spec/verdict.md.
library SegmentDraw {
    /// @notice Most segments that one task may have verified: bounds the gas of a verdict.
    uint256 internal constant MAX_DRAWS = 32;

    /// @notice The first `draws` distinct values of `keccak256(seed || u32 j) mod segments`, j = 0, 1, ..
    /// @dev Ends only if `draws <= segments`. The worst admissible case, 32 of 32, takes about 130 hashes.
    function draw(bytes32 seed, uint256 segments, uint256 draws) internal pure returns (uint32[] memory drawn) {
        drawn = new uint32[](draws);
        uint256 count = 0;
        for (uint32 j = 0; count < draws; ++j) {
            uint32 candidate = uint32(uint256(keccak256(abi.encodePacked(seed, j))) % segments);
            if (!_contains(drawn, count, candidate)) drawn[count++] = candidate;
        }
    }

    function _contains(uint32[] memory drawn, uint256 count, uint32 candidate) private pure returns (bool) {
        for (uint256 i = 0; i < count; ++i) {
            if (drawn[i] == candidate) return true;
        }
        return false;
    }
}
