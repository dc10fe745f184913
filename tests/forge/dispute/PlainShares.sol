// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice How openings are cut and committed to (docs/spec/dispute.md, Levels), written as plainly as possible.
library PlainShares {
    function depth(uint256 count) internal pure returns (uint256 result) {
        while (2 ** result < count) result++;
    }

    /// @dev Levels that lie open of `height`, of which `width` do at most.
    function share(uint256 height, uint256 width) internal pure returns (uint256) {
        if (height == 0) return 0;
        uint256 moves = height / width + (height % width > 0 ? 1 : 0);
        return height / moves + (height % moves > 0 ? 1 : 0);
    }

    function parts(uint256 size, uint256 width) internal pure returns (uint256) {
        uint256 most = 2 ** share(depth(size), width);
        return size < most ? size : most;
    }

    /// @dev Root of a subtree in which there is nothing.
    function padding(uint256 height) internal pure returns (bytes32 hash) {
        hash = keccak256("pol/pad/1");
        for (uint256 i = 0; i < height; i++) {
            hash = keccak256(abi.encodePacked(uint8(1), hash, hash));
        }
    }

    /// @dev `count` hashes that belong to nothing else.
    function row(uint256 count, uint256 seed) internal pure returns (bytes32[] memory hashes) {
        hashes = new bytes32[](count);
        for (uint256 i = 0; i < count; i++) {
            hashes[i] = keccak256(abi.encode(seed, i));
        }
    }

    /// @dev All rows of a tree over hashes, which are filled up to a power of two, from the bottom up.
    function tree(bytes32[] memory hashes, bytes32 missing) internal pure returns (bytes32[][] memory rows) {
        rows = new bytes32[][](depth(hashes.length) + 1);
        rows[0] = new bytes32[](2 ** (rows.length - 1));
        for (uint256 i = 0; i < rows[0].length; i++) {
            rows[0][i] = i < hashes.length ? hashes[i] : missing;
        }
        for (uint256 d = 1; d < rows.length; d++) {
            rows[d] = new bytes32[](rows[d - 1].length / 2);
            for (uint256 i = 0; i < rows[d].length; i++) {
                rows[d][i] = keccak256(abi.encodePacked(uint8(1), rows[d - 1][2 * i], rows[d - 1][2 * i + 1]));
            }
        }
    }

    function root(bytes32[] memory hashes, bytes32 missing) internal pure returns (bytes32) {
        bytes32[][] memory rows = tree(hashes, missing);
        return rows[rows.length - 1][0];
    }

    /// @dev The siblings above a leaf, from the bottom up.
    function branch(bytes32[] memory hashes, bytes32 missing, uint256 index) internal pure returns (bytes memory path) {
        bytes32[][] memory rows = tree(hashes, missing);
        for (uint256 d = 0; d + 1 < rows.length; d++) {
            path = abi.encodePacked(path, rows[d][(index >> d) ^ 1]);
        }
    }

    /// @dev The pieces of an opening of accumulators: nine values each, of which the last one is the next piece's
    /// first.
    function pieces(uint32 agreed, uint32[] memory values) internal pure returns (bytes[] memory cut) {
        cut = new bytes[]((values.length + 7) / 8);
        for (uint256 i = 0; i < cut.length; i++) {
            cut[i] = abi.encodePacked(i == 0 ? agreed : values[8 * i - 1]);
            for (uint256 j = 8 * i; j < 8 * i + 8; j++) {
                cut[i] = abi.encodePacked(cut[i], j < values.length ? values[j] : 0);
            }
        }
    }

    function leaves(bytes[] memory cut) internal pure returns (bytes32[] memory hashes) {
        hashes = new bytes32[](cut.length);
        for (uint256 i = 0; i < cut.length; i++) {
            hashes[i] = keccak256(abi.encodePacked(uint8(0), cut[i]));
        }
    }
}
