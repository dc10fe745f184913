// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @dev Number of zero bits above the first set bit of `value`, 256 for 0: one opcode of chains from Osaka on.
function leadingZeros(uint256 value) pure returns (uint256 zeros) {
    assembly ("memory-safe") {
        zeros := clz(value)
    }
}

/// @dev The same. The second argument is for chains without the opcode (../prague/LeadingZeros.sol); nothing that only it needs is
/// computed here.
function leadingZerosNear(uint256 value, uint256) pure returns (uint256 zeros) {
    assembly ("memory-safe") {
        zeros := clz(value)
    }
}
