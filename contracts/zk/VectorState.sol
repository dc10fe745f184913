// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {LEAF_BYTES, MerkleBranch, TAG_LEAF, TAG_STATE} from "../commitments/MerkleBranch.sol";

/// @title VectorState
/// @notice A state whose tensors are one vector of fixed-point numbers: its root, and the integers (docs/spec/zk.md,
/// "The tie").
library VectorState {
    uint256 private constant WORD_BYTES = 4;
    uint256 private constant F32 = 1;
    /// @dev A float32 is mantissa * 2^(exponent - 150).
    uint256 private constant BIAS = 150;
    uint256 private constant LARGEST = 1 << 23;

    /// @notice The layout is not a list of tensor types of float32.
    error InvalidLayout(uint256 offset);
    /// @notice The layout has tensors of `expected` bytes, there are `actual`.
    error WrongSize(uint256 actual, uint256 expected);
    /// @notice Word `index` isn't the one float32 of a multiple of 2^-scale from -2^(23-scale) up to, not including,
    /// 2^(23-scale).
    error NotFixedPoint(uint256 index);

    /// @notice Root of the state that holds `words` in tensors of these types, one after the other.
    /// @param types Types as in a tensor's header: `u8 dtype || u8 rank || u32 dims[rank]`.
    /// @param words Float32, little-endian.
    function root(bytes calldata types, bytes calldata words) internal pure returns (bytes32) {
        bytes32[] memory tensors = new bytes32[](types.length / 2);
        uint256 count = 0;
        uint256 begin = 0;
        uint256 offset = 0;
        while (offset < types.length) {
            (uint256 end, uint256 size) = _type(types, offset);
            if (begin + size > words.length) revert WrongSize(words.length, begin + size);
            tensors[count++] = MerkleBranch.tensorRoot(types[offset:end], _tree(words[begin:begin + size]));
            (begin, offset) = (begin + size, end);
        }
        if (count == 0) revert InvalidLayout(0);
        if (begin != words.length) revert WrongSize(words.length, begin);
        uint256 row = MerkleBranch.freeRow();
        for (uint256 i = 0; i < count; ++i) {
            bytes32 tensor = tensors[i];
            assembly ("memory-safe") {
                mstore(add(row, shl(5, i)), tensor)
            }
        }
        return MerkleBranch.listRoot(TAG_STATE, uint32(count), MerkleBranch.treeOf(row, count));
    }

    /// @notice The integers that the words stand for, as multiples of 2^-scale.
    function integers(bytes calldata words, uint8 scale) internal pure returns (int256[] memory vector) {
        vector = new int256[](words.length / WORD_BYTES);
        for (uint256 i = 0; i < vector.length; ++i) {
            vector[i] = _integer(_word(words, i), scale, i);
        }
    }

    function _type(bytes calldata types, uint256 offset) private pure returns (uint256 end, uint256 size) {
        if (offset + 2 > types.length || uint8(types[offset]) != F32) revert InvalidLayout(offset);
        end = offset + 2 + 4 * uint256(uint8(types[offset + 1]));
        if (end > types.length) revert InvalidLayout(offset);
        size = WORD_BYTES;
        for (uint256 place = offset + 2; place < end; place += 4) {
            // Eight dimensions of 32 bits do not overflow, and there is no room in a transaction for more.
            size *= uint32(bytes4(types[place:place + 4]));
            if (size == 0 || size > type(uint32).max) revert InvalidLayout(place);
        }
    }

    /// @dev Tree over the leaves of one tensor.
    function _tree(bytes calldata data) private pure returns (bytes32) {
        uint256 leaves = (data.length + LEAF_BYTES - 1) / LEAF_BYTES;
        bytes32[] memory hashes = new bytes32[](leaves);
        bytes memory buffer = new bytes(LEAF_BYTES + 1);
        buffer[0] = bytes1(TAG_LEAF);
        for (uint256 i = 0; i < leaves; ++i) {
            uint256 begin = i * LEAF_BYTES;
            uint256 size = data.length - begin < LEAF_BYTES ? data.length - begin : LEAF_BYTES;
            assembly ("memory-safe") {
                calldatacopy(add(buffer, 33), add(data.offset, begin), size)
            }
            for (uint256 past = size; past < LEAF_BYTES; ++past) {
                buffer[past + 1] = 0;
            }
            hashes[i] = keccak256(buffer);
        }
        uint256 row = MerkleBranch.freeRow();
        for (uint256 i = 0; i < leaves; ++i) {
            bytes32 leaf = hashes[i];
            assembly ("memory-safe") {
                mstore(add(row, shl(5, i)), leaf)
            }
        }
        return MerkleBranch.treeOf(row, leaves);
    }

    function _word(bytes calldata words, uint256 index) private pure returns (uint256 word) {
        bytes4 raw = bytes4(words[index * WORD_BYTES:]);
        word = uint256(uint8(raw[0])) | uint256(uint8(raw[1])) << 8 | uint256(uint8(raw[2])) << 16
            | uint256(uint8(raw[3])) << 24;
    }

    /// @dev Each integer has one word: zero has no sign.
    function _integer(uint256 word, uint8 scale, uint256 index) private pure returns (int256) {
        if (word == 0) return 0;
        uint256 exponent = word >> 23 & 0xff;
        uint256 mantissa = word & 0x7fffff | 0x800000;
        bool negative = word >> 31 == 1;
        if (exponent == 0 || exponent == 255) revert NotFixedPoint(index);
        uint256 up = exponent + scale;
        if (up > BIAS || up < BIAS - 23) revert NotFixedPoint(index);
        uint256 down = BIAS - up;
        if (mantissa & ((1 << down) - 1) != 0) revert NotFixedPoint(index);
        uint256 magnitude = mantissa >> down;
        if (magnitude > LARGEST || (magnitude == LARGEST && !negative)) revert NotFixedPoint(index);
        return negative ? -int256(magnitude) : int256(magnitude);
    }
}
