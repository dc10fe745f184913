// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @dev Byte i is the number of bits of i, for i < 32.
uint256 constant BIT_LENGTH = 0x0001020203030303040404040404040405050505050505050505050505050505;

/// @dev Number of zero bits above the first set bit of `value`, 256 for 0.
function leadingZeros(uint256 value) pure returns (uint256 zeros) {
    assembly ("memory-safe") {
        // Halves the places where the bit may be, down to 8, then 5, and reads the rest from the table.
        let length := shl(7, gt(value, 0xffffffffffffffffffffffffffffffff))
        length := or(length, shl(6, gt(shr(length, value), 0xffffffffffffffff)))
        length := or(length, shl(5, gt(shr(length, value), 0xffffffff)))
        length := or(length, shl(4, gt(shr(length, value), 0xffff)))
        length := or(length, shl(3, gt(shr(length, value), 0xff)))
        length := add(length, mul(3, gt(shr(length, value), 0x1f)))
        zeros := sub(256, add(length, byte(shr(length, value), BIT_LENGTH)))
    }
}

/// @dev The same, for less than half of the gas if the first set bit is one of the five from bit `near` on.
function leadingZerosNear(uint256 value, uint256 near) pure returns (uint256 zeros) {
    uint256 length;
    assembly ("memory-safe") {
        length := byte(shr(near, value), BIT_LENGTH) // 0 also for 32 and above
        zeros := sub(256, add(near, length))
    }
    if (length == 0) return leadingZeros(value);
}
