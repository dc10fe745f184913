// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice How far packed bytes have been read: offsets in calldata.
struct Cursor {
    uint256 next;
    uint256 end;
}

/// @title PackedReader
/// @notice Reads packed bytes from front to back; none may be missing, and none left over.
library PackedReader {
    /// @notice The bytes end `missing` bytes too early.
    error MissingBytes(uint256 missing);
    /// @notice `left` bytes follow what was to be read.
    error LeftOver(uint256 left);

    /// @notice A cursor at the first of these bytes.
    function over(bytes calldata data) internal pure returns (Cursor memory cursor) {
        start(cursor, data);
    }

    /// @notice Moves a cursor to the first of these bytes.
    function start(Cursor memory cursor, bytes calldata data) internal pure {
        assembly ("memory-safe") {
            mstore(cursor, data.offset)
            mstore(add(cursor, 32), add(data.offset, data.length))
        }
    }

    /// @notice Reverts unless all has been read.
    function finish(Cursor memory cursor) internal pure {
        if (cursor.next != cursor.end) revert LeftOver(cursor.end - cursor.next);
    }

    /// @notice The next `size` bytes.
    /// @param size Below 2^64.
    function slice(Cursor memory cursor, uint256 size) internal pure returns (bytes calldata data) {
        uint256 offset = _take(cursor, size);
        assembly ("memory-safe") {
            data.offset := offset
            data.length := size
        }
    }

    /// @notice The next `count` hashes.
    /// @param count Below 2^58.
    function hashes(Cursor memory cursor, uint256 count) internal pure returns (bytes32[] calldata row) {
        uint256 offset = _take(cursor, 32 * count);
        assembly ("memory-safe") {
            row.offset := offset
            row.length := count
        }
    }

    /// @notice The next hash.
    function hash(Cursor memory cursor) internal pure returns (bytes32 result) {
        uint256 offset = _take(cursor, 32);
        assembly ("memory-safe") {
            result := calldataload(offset)
        }
    }

    /// @notice The next big-endian number.
    /// @param size Its bytes, 1 to 32.
    function number(Cursor memory cursor, uint256 size) internal pure returns (uint256 result) {
        uint256 offset = _take(cursor, size);
        assembly ("memory-safe") {
            result := shr(sub(256, mul(8, size)), calldataload(offset))
        }
    }

    function _take(Cursor memory cursor, uint256 size) private pure returns (uint256 offset) {
        offset = cursor.next;
        unchecked {
            // Offsets in calldata and sizes are below 2^64.
            uint256 next = offset + size;
            if (next > cursor.end) revert MissingBytes(next - cursor.end);
            cursor.next = next;
        }
    }
}
