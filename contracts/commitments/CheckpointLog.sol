// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title CheckpointLog
/// @notice Verifies inclusion and consistency proofs of an append-only Merkle tree as in RFC 9162, section 2 (SHA-256).
/// @dev The data of a leaf is a 32-byte state root. Every function answers false to a bad proof and never reverts
/// because of one, except when it runs out of gas. Binding bytes: docs/spec/commitments.md, "Checkpoint log".
library CheckpointLog {
    /// @notice Hash of a leaf: `sha256(0x00 || root)`.
    function leafHash(bytes32 root) internal pure returns (bytes32) {
        return sha256(abi.encodePacked(bytes1(0x00), root));
    }

    /// @notice Hash of an inner node: `sha256(0x01 || left || right)`.
    function nodeHash(bytes32 left, bytes32 right) internal pure returns (bytes32) {
        return sha256(abi.encodePacked(bytes1(0x01), left, right));
    }

    /// @notice Is `entry` the `index`-th entry of the log of `size` entries with root `root`? (RFC 9162, section
    /// 2.1.3.2)
    function isIncluded(bytes32 entry, uint256 index, uint256 size, bytes32 root, bytes32[] calldata path)
        internal
        pure
        returns (bool)
    {
        if (index >= size) return false;
        uint256 fn = index;
        uint256 sn = size - 1;
        bytes32 hash = leafHash(entry);
        for (uint256 i = 0; i < path.length; ++i) {
            if (sn == 0) return false;
            if (fn & 1 == 1 || fn == sn) {
                hash = nodeHash(path[i], hash);
                // Levels at which this node has no sibling are skipped: the last node of an odd level moves up
                // unchanged.
                while (fn & 1 == 0 && fn != 0) {
                    fn >>= 1;
                    sn >>= 1;
                }
            } else {
                hash = nodeHash(hash, path[i]);
            }
            fn >>= 1;
            sn >>= 1;
        }
        return sn == 0 && hash == root;
    }

    /// @notice Is the log of `size` entries with root `root` an extension of the one of `oldSize` entries with root
    /// `oldRoot`? (RFC 9162, section 2.1.4.2)
    /// @dev The RFC leaves two cases open: every log extends the empty one, and a log extends itself; both with an
    /// empty path.
    function isConsistent(uint256 oldSize, bytes32 oldRoot, uint256 size, bytes32 root, bytes32[] calldata path)
        internal
        pure
        returns (bool)
    {
        if (oldSize > size) return false;
        if (oldSize == 0) return path.length == 0;
        if (oldSize == size) return path.length == 0 && oldRoot == root;
        if (path.length == 0) return false;

        uint256 fn = oldSize - 1;
        uint256 sn = size - 1;
        while (fn & 1 == 1) {
            fn >>= 1;
            sn >>= 1;
        }
        // For a power of two the old root is itself the first node of the walk, and the path leaves it out.
        uint256 i = oldSize & (oldSize - 1) == 0 ? 0 : 1;
        bytes32 oldHash = i == 0 ? oldRoot : path[0];
        bytes32 hash = oldHash;
        for (; i < path.length; ++i) {
            if (sn == 0) return false;
            if (fn & 1 == 1 || fn == sn) {
                oldHash = nodeHash(path[i], oldHash);
                hash = nodeHash(path[i], hash);
                while (fn & 1 == 0 && fn != 0) {
                    fn >>= 1;
                    sn >>= 1;
                }
            } else {
                hash = nodeHash(hash, path[i]);
            }
            fn >>= 1;
            sn >>= 1;
        }
        return sn == 0 && oldHash == oldRoot && hash == root;
    }
}
