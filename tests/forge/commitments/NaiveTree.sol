// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice docs/spec/commitments.md once more, as plainly as possible: the oracle for MerkleBranch and the builder of
/// test data.
library NaiveTree {
    bytes32 internal constant PADDING = keccak256("pol/pad/1");

    function levels(bytes32[] memory leaves) internal pure returns (bytes32[][] memory rows) {
        uint256 depth = 0;
        while (2 ** depth < leaves.length) depth++;
        rows = new bytes32[][](depth + 1);
        rows[0] = new bytes32[](2 ** depth);
        for (uint256 i = 0; i < rows[0].length; i++) {
            rows[0][i] = i < leaves.length ? leaves[i] : PADDING;
        }
        for (uint256 d = 1; d <= depth; d++) {
            rows[d] = new bytes32[](2 ** (depth - d));
            for (uint256 i = 0; i < rows[d].length; i++) {
                rows[d][i] = keccak256(abi.encodePacked(uint8(1), rows[d - 1][2 * i], rows[d - 1][2 * i + 1]));
            }
        }
    }

    function tree(bytes32[] memory leaves) internal pure returns (bytes32) {
        bytes32[][] memory rows = levels(leaves);
        return rows[rows.length - 1][0];
    }

    function branch(bytes32[] memory leaves, uint256 index) internal pure returns (bytes32[] memory siblings) {
        bytes32[][] memory rows = levels(leaves);
        siblings = new bytes32[](rows.length - 1);
        for (uint256 d = 0; d < siblings.length; d++) {
            siblings[d] = rows[d][(index >> d) ^ 1];
        }
    }

    /// @dev The roots that an opening shows under the subtree of `height` at leaf `lo`.
    function children(bytes32[] memory leaves, uint256 lo, uint256 height) internal pure returns (bytes memory row) {
        bytes32[][] memory rows = levels(leaves);
        uint256 opened = height < 4 ? height : 4;
        for (uint256 i = 0; i < 2 ** opened && lo + (i << (height - opened)) < leaves.length; i++) {
            row = abi.encodePacked(row, rows[height - opened][(lo >> (height - opened)) + i]);
        }
    }

    /// @dev The bytes of a data leaf: little-endian words, zeros past the end.
    function leaf(uint32[] memory words, uint256 index) internal pure returns (bytes memory data) {
        data = new bytes(256);
        for (uint256 i = 0; i < 64 && 64 * index + i < words.length; i++) {
            for (uint256 j = 0; j < 4; j++) {
                data[4 * i + j] = bytes1(uint8(words[64 * index + i] >> (8 * j)));
            }
        }
    }

    function leafHashes(uint32[] memory words) internal pure returns (bytes32[] memory hashes) {
        hashes = new bytes32[]((words.length + 63) / 64);
        for (uint256 i = 0; i < hashes.length; i++) {
            hashes[i] = keccak256(abi.encodePacked(uint8(0), leaf(words, i)));
        }
    }

    function tensorRoot(bytes memory tensorType, uint32[] memory words) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(uint8(2), tensorType, tree(leafHashes(words))));
    }

    function listRoot(uint8 tag, bytes32[] memory roots) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(tag, uint32(roots.length), tree(roots)));
    }
}
