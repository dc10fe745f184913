// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @dev Root of a missing leaf: `H("pol/pad/1")`.
bytes32 constant PAD = keccak256("pol/pad/1");

// Domains: the first byte of every hashed string (docs/spec/commitments.md).
uint8 constant TAG_LEAF = 0x00;
uint8 constant TAG_INNER = 0x01;
uint8 constant TAG_TENSOR = 0x02;
uint8 constant TAG_STATE = 0x03;
uint8 constant TAG_NODE = 0x04;
uint8 constant TAG_SLOT = 0x05;
uint8 constant TAG_PROGRAM = 0x06;
uint8 constant TAG_TRACE = 0x07;
uint8 constant TAG_CONSTANTS = 0x08;
uint8 constant TAG_RECEIPT = 0x0f;

/// @dev Bytes of a data leaf, and words in it.
uint256 constant LEAF_BYTES = 256;
uint256 constant LEAF_WORDS = 64;

/// @title MerkleBranch
/// @notice Positional keccak trees: a branch proves where something stands, because its length is the depth of the
/// tree.
library MerkleBranch {
    /// @notice The branch has `actual` hashes, the tree is `expected` deep.
    error WrongBranchLength(uint256 actual, uint256 expected);
    /// @notice Index `index` does not exist in a list of `count`.
    error IndexOutOfRange(uint256 index, uint256 count);

    /// @dev Byte i, counted from the highest one, is the number of bits of i, for i below 16.
    uint256 private constant BITS = 0x0001020203030303040404040404040400000000000000000000000000000000;

    /// @notice The smallest `d` with `2^d >= count`, for counts up to 2^64.
    function depth(uint256 count) internal pure returns (uint256 d) {
        assembly ("memory-safe") {
            // Bits of `count - 1`, one bit of the result after the other, until what is left of them is less than 16.
            let rest := sub(count, gt(count, 0))
            d := shl(5, lt(0xffffffff, rest))
            d := or(d, shl(4, lt(0xffff, shr(d, rest))))
            d := or(d, shl(3, lt(0xff, shr(d, rest))))
            d := or(d, shl(2, lt(0xf, shr(d, rest))))
            d := add(d, byte(shr(d, rest), BITS))
        }
    }

    /// @notice `H(01 || left || right)`.
    function inner(bytes32 left, bytes32 right) internal pure returns (bytes32 result) {
        assembly ("memory-safe") {
            // Free memory as scratch space: nothing is allocated.
            let offset := mload(0x40)
            mstore8(offset, TAG_INNER)
            mstore(add(offset, 1), left)
            mstore(add(offset, 33), right)
            result := keccak256(offset, 65)
        }
    }

    /// @notice The root that `leaf` at `index` and its siblings, from the bottom up, lead to.
    function climb(bytes32 leaf, uint256 index, bytes32[] calldata branch) internal pure returns (bytes32 result) {
        result = leaf;
        assembly ("memory-safe") {
            // Free memory: the two children go left and right of each other behind the tag. `left` is a multiple of 64,
            // so that one bit is the side.
            let left := and(add(mload(0x40), 127), not(63))
            let hashed := sub(left, 1)
            mstore8(hashed, TAG_INNER)
            let sibling := branch.offset
            let end := add(sibling, shl(5, branch.length))
            // Bit 5 of this is the side.
            let path := shl(5, index)
            // Four levels a round: first those that are left over.
            for { let first := add(sibling, shl(5, and(branch.length, 3))) } lt(sibling, first) {
                sibling := add(sibling, 32)
            } {
                let place := or(left, and(path, 32))
                mstore(place, result)
                mstore(xor(place, 32), calldataload(sibling))
                result := keccak256(hashed, 65)
                path := shr(1, path)
            }
            for {} lt(sibling, end) { sibling := add(sibling, 128) } {
                let place := or(left, and(path, 32))
                mstore(place, result)
                mstore(xor(place, 32), calldataload(sibling))
                result := keccak256(hashed, 65)
                path := shr(1, path)
                place := or(left, and(path, 32))
                mstore(place, result)
                mstore(xor(place, 32), calldataload(add(sibling, 32)))
                result := keccak256(hashed, 65)
                path := shr(1, path)
                place := or(left, and(path, 32))
                mstore(place, result)
                mstore(xor(place, 32), calldataload(add(sibling, 64)))
                result := keccak256(hashed, 65)
                path := shr(1, path)
                place := or(left, and(path, 32))
                mstore(place, result)
                mstore(xor(place, 32), calldataload(add(sibling, 96)))
                result := keccak256(hashed, 65)
                path := shr(1, path)
            }
        }
    }

    /// @notice As `climb`, for a tree over `count` leaves: a branch of any other length and an index past the end are
    /// refused.
    function climbIn(bytes32 leaf, uint256 index, bytes32[] calldata branch, uint256 count)
        internal
        pure
        returns (bytes32)
    {
        if (index >= count) revert IndexOutOfRange(index, count);
        uint256 expected = depth(count);
        if (branch.length != expected) revert WrongBranchLength(branch.length, expected);
        return climb(leaf, index, branch);
    }

    /// @notice Root over `2^depth_` adjacent subtrees of height `height`: those in `row`, and padding after them.
    /// @param row Their roots, 32 bytes each; the caller has checked that there are at least one and at most
    /// `2^depth_`.
    function root(bytes calldata row, uint256 depth_, uint256 height) internal pure returns (bytes32) {
        uint256 size = 32 << depth_;
        bytes32 missing = row.length < size ? padding(height) : bytes32(0);
        uint256 hashes;
        assembly ("memory-safe") {
            // Free memory: a word of which `_fold` needs a byte, then the row.
            hashes := add(mload(0x40), 32)
            calldatacopy(hashes, row.offset, row.length)
            for { let i := row.length } lt(i, size) { i := add(i, 32) } {
                mstore(add(hashes, i), missing)
            }
        }
        return _fold(hashes, size);
    }

    /// @notice Free memory for the hashes that `treeOf` reads; nothing is allocated.
    function freeRow() internal pure returns (uint256 row) {
        assembly ("memory-safe") {
            // A byte for `_fold` is in the word before the row.
            row := add(mload(0x40), 32)
        }
    }

    /// @notice `tree(row)`, as `root` with subtrees of height 0, of the `count` hashes that have been written to
    /// `freeRow`.
    function treeOf(uint256 row, uint256 count) internal pure returns (bytes32) {
        uint256 size = 32 << depth(count);
        bytes32 missing = PAD;
        assembly ("memory-safe") {
            for { let i := shl(5, count) } lt(i, size) { i := add(i, 32) } {
                mstore(add(row, i), missing)
            }
        }
        return _fold(row, size);
    }

    /// @notice Root of a subtree of height `height` that holds nothing but padding.
    function padding(uint256 height) internal pure returns (bytes32 result) {
        result = PAD;
        for (uint256 i = 0; i < height; ++i) {
            result = inner(result, result);
        }
    }

    /// @notice `H(tag || content)`: data leaves, descriptors and program headers.
    function tagged(uint8 tag, bytes calldata content) internal pure returns (bytes32 result) {
        assembly ("memory-safe") {
            let offset := mload(0x40)
            mstore8(offset, tag)
            calldatacopy(add(offset, 1), content.offset, content.length)
            result := keccak256(offset, add(1, content.length))
        }
    }

    /// @notice `H(02 || type || tree)`, where `tensorType` is `u8 dtype || u8 rank || u32 dims[rank]`.
    function tensorRoot(bytes calldata tensorType, bytes32 tree) internal pure returns (bytes32 result) {
        assembly ("memory-safe") {
            // Free memory: nothing is allocated.
            let offset := mload(0x40)
            mstore8(offset, TAG_TENSOR)
            calldatacopy(add(offset, 1), tensorType.offset, tensorType.length)
            mstore(add(offset, add(1, tensorType.length)), tree)
            result := keccak256(offset, add(33, tensorType.length))
        }
    }

    /// @notice `H(tag || u32 count || tree)`: a state, a trace or the constants.
    function listRoot(uint8 tag, uint32 count, bytes32 tree) internal pure returns (bytes32 result) {
        assembly ("memory-safe") {
            // Scratch space.
            mstore(0, or(shl(248, tag), shl(216, and(count, 0xffffffff))))
            mstore(5, tree)
            result := keccak256(0, 37)
        }
    }

    /// @dev Root over the `size` bytes at `hashes`, a power of two of hashes, which shrink to half their width in
    /// place. The byte before them is scratch space.
    function _fold(uint256 hashes, uint256 size) private pure returns (bytes32 result) {
        assembly ("memory-safe") {
            let pair := sub(hashes, 1)
            for { let width := shr(1, size) } gt(width, 32) { width := shr(1, width) } {
                let children := pair
                // Two parents a round: there is an even number of them.
                for {
                    let end := add(hashes, width)
                    let parent := hashes
                } lt(parent, end) { parent := add(parent, 64) } {
                    // The byte before a pair belongs to the pair before it, which has been hashed.
                    mstore8(children, TAG_INNER)
                    mstore(parent, keccak256(children, 65))
                    children := add(children, 64)
                    mstore8(children, TAG_INNER)
                    mstore(add(parent, 32), keccak256(children, 65))
                    children := add(children, 64)
                }
            }
            result := mload(hashes)
            if gt(size, 32) {
                mstore8(pair, TAG_INNER)
                result := keccak256(pair, 65)
            }
        }
    }
}
