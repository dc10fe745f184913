// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title StoredBytes
/// @notice Bytes as the code of an account: cheap to read as a whole, and for ever the same.
library StoredBytes {
    /// @dev Stops at once: nobody runs the bytes after it.
    bytes1 private constant STOP = 0x00;
    /// @dev Returns what follows its 11 bytes.
    bytes11 private constant LOADER = 0x600b5981380380925939f3;

    /// @notice The account could not be made.
    error NotStored();

    /// @notice An account whose code is a zero byte and `data`.
    function store(bytes memory data) internal returns (address place) {
        bytes memory creation = abi.encodePacked(LOADER, STOP, data);
        assembly ("memory-safe") {
            place := create(0, add(creation, 32), mload(creation))
        }
        if (place == address(0)) revert NotStored();
    }

    /// @notice What was stored.
    function load(address place) internal view returns (bytes memory data) {
        uint256 size = place.code.length - 1;
        data = new bytes(size);
        assembly ("memory-safe") {
            extcodecopy(place, add(data, 32), 1, size)
        }
    }
}
