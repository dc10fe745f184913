// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Conversions between binary32 and integers or shorter formats
/// @notice Round to nearest even, integers toward zero and saturating, NaN as in docs/spec/arithmetic.md.
/// @dev As in `Float32`, a binary32 number is its 32-bit pattern, right-aligned in a uint256 whose other bits are zero;
/// integers of 32 and 64 bits likewise. Nothing loops and nothing reverts.
library Conversion {
    uint256 private constant NAN = 0x7fc00000;
    uint256 private constant INF = 0x7f800000;
    uint256 private constant SIGN = 0x80000000;
    uint256 private constant MAGNITUDE = 0x7fffffff;
    uint256 private constant FRACTION = 0x7fffff;
    uint256 private constant HIDDEN = 0x800000;

    /// @dev Byte i is the number of bits of i, for i < 32.
    uint256 private constant BIT_LENGTH = 0x0001020203030303040404040404040405050505050505050505050505050505;

    uint256 private constant HALF_INF = 0x47800000; // 2^16, the first power of two that f16 does not have

    /// @dev f32 to u32; what is below 0 and NaN give 0.
    function toU32(uint256 a) internal pure returns (uint256) {
        if (a > INF) return 0; // negative or NaN
        return a >= 0x4f800000 ? 0xffffffff : _whole(a);
    }

    /// @dev u32 to f32.
    function fromU32(uint256 a) internal pure returns (uint256) {
        return _fromMagnitude(a);
    }

    /// @dev f32 to i64, as 64 bits; NaN gives 0.
    function toI64(uint256 a) internal pure returns (uint256) {
        unchecked {
            uint256 magnitude = a & MAGNITUDE;
            if (magnitude > INF) return 0;
            uint256 negative = a >> 31;
            if (magnitude >= 0x5f000000) return 0x7fffffffffffffff + negative; // the greatest, or one more, the least
            magnitude = _whole(magnitude);
            return negative == 0 ? magnitude : (0 - magnitude) & 0xffffffffffffffff;
        }
    }

    /// @dev i64, as 64 bits, to f32.
    function fromI64(uint256 a) internal pure returns (uint256) {
        unchecked {
            return a >> 63 == 0 ? _fromMagnitude(a) : _fromMagnitude(2 ** 64 - a) | SIGN;
        }
    }

    /// @dev The nearest bf16 number: its lower 16 bits are zero.
    function toBf16(uint256 a) internal pure returns (uint256) {
        unchecked {
            if (a & MAGNITUDE > INF) return NAN;
            // A carry out of the fraction belongs in the exponent, at the end of which is infinity.
            return (a + 0x7fff + ((a >> 16) & 1)) & 0xffff0000;
        }
    }

    /// @dev The nearest f16 number.
    function toF16(uint256 a) internal pure returns (uint256) {
        unchecked {
            uint256 magnitude = a & MAGNITUDE;
            if (magnitude > INF) return NAN;
            uint256 field = magnitude >> 23;
            // Below 2^-24, the least number: only above its half it is nearer than 0.
            if (field < 103) return (a & SIGN) | (magnitude > 0x33000000 ? 0x33800000 : 0);
            // f16 has 13 bits less, and for every power of two below 2^-14 one less again. Rounds the pattern in place;
            // where the last bit kept is the exponent's last one, at a field of 103, it is set, as the hidden bit is.
            uint256 drop = field < 113 ? 126 - field : 13;
            uint256 unit = 1 << drop;
            magnitude = (magnitude + (unit >> 1) - 1 + ((magnitude >> drop) & 1)) & ~(unit - 1);
            return (a & SIGN) | (magnitude < HALF_INF ? magnitude : INF);
        }
    }

    /// @dev floor(a) for 0 <= a < 2^64.
    function _whole(uint256 a) private pure returns (uint256) {
        return (((a & FRACTION) | HIDDEN) << (a >> 23)) >> 150; // 0 below 1, hidden bit or not
    }

    /// @dev Rounds an integer below 2^65.
    function _fromMagnitude(uint256 value) private pure returns (uint256 result) {
        assembly ("memory-safe") {
            // Its number of bits, found by halving 80 possible values down to 5 bits and reading the rest from a table.
            let bits := mul(40, gt(value, 0xffffffffff))
            bits := add(bits, mul(20, gt(shr(bits, value), 0xfffff)))
            bits := add(bits, mul(10, gt(shr(bits, value), 0x3ff)))
            bits := add(bits, mul(5, gt(shr(bits, value), 0x1f)))
            bits := add(bits, byte(shr(bits, value), BIT_LENGTH))
            // 24 bits more, so that there are as many to drop as the value has: what remains are 24 bits, to nearest
            // even. The hidden bit, and a carry out of the significand, add to the exponent field.
            let wide := shl(24, value)
            let kept := and(shr(bits, wide), 1)
            result := shr(bits, add(wide, add(sub(shl(sub(bits, 1), 1), 1), kept)))
            result := mul(gt(value, 0), add(shl(23, add(bits, 125)), result))
        }
    }
}
