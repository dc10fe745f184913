// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Openings} from "./Opening.sol";

/// @title Distance
/// @notice Exact integer distances (docs/spec/verdict.md): fixed point with 40 fractional bits and those of the slot's
/// scale, squared, summed up.
library Distance {
    /// @notice What no finite distance reaches.
    uint256 internal constant INFINITE = type(uint256).max;

    /// @dev Sums that would reach this are INFINITE.
    uint256 private constant SATURATION = 2 ** 191;
    /// @dev Of two i32 words that differ: above what 2^32 pairs of f32 words can add up to, so that a sum counts both
    /// kinds.
    uint256 private constant UNEQUAL = 2 ** 160;
    uint256 private constant F32 = 1;
    uint256 private constant SIGN = 0x80000000;
    uint256 private constant MANTISSA = 0x007fffff;
    uint256 private constant HIDDEN_BIT = 0x00800000;
    /// @dev Biased exponent of 2^23, from which on (infinities and NaN too) a word of scale 0 has no fixed-point value:
    /// its distance from any other word is infinite.
    uint256 private constant EXPONENT_LIMIT = 150;
    /// @dev A word with biased exponent e is mantissa * 2^(e - 150), and its fixed point of scale 0 mantissa * 2^(e -
    /// 110).
    uint256 private constant EXPONENT_UNIT = 110;

    /// @notice `a + b`, INFINITE if it would reach 2^191.
    function add(uint256 a, uint256 b) internal pure returns (uint256) {
        if (a >= SATURATION || b >= SATURATION) return INFINITE;
        unchecked {
            // Two numbers below 2^191.
            uint256 sum = a + b;
            return sum < SATURATION ? sum : INFINITE;
        }
    }

    /// @notice Distance of the first `words` words of two leaves of a slot with that dtype and scale.
    function ofLeaves(bytes calldata x, bytes calldata y, uint256 words, uint256 dtype, uint256 scale)
        internal
        pure
        returns (uint256 sum)
    {
        unchecked {
            // At most 64 distances of at most 2^160.
            uint256 a;
            uint256 b;
            for (uint256 i = 0; i < words; ++i) {
                if (i % 8 == 0) (a, b) = (Openings.eightWords(x, i / 8), Openings.eightWords(y, i / 8));
                uint256 distance = ofWords(a >> 224, b >> 224, dtype, scale);
                if (distance == INFINITE) return INFINITE;
                sum += distance;
                (a, b) = (a << 32, b << 32);
            }
        }
    }

    /// @notice Distance of two words; `scale` is at most 23.
    function ofWords(uint256 x, uint256 y, uint256 dtype, uint256 scale) internal pure returns (uint256) {
        if (dtype != F32) return x == y ? 0 : UNEQUAL;
        uint256 xExponent = (x >> 23) & 0xff;
        uint256 yExponent = (y >> 23) & 0xff;
        unchecked {
            if (xExponent >= EXPONENT_LIMIT - scale || yExponent >= EXPONENT_LIMIT - scale) {
                // What is no NaN is no way from itself, however large: a mask of infinities that no step changes.
                bool isNumber = xExponent < 0xff || x & MANTISSA == 0;
                return x == y && isNumber ? 0 : INFINITE;
            }
            // `trunc(|x| * 2^(40 + scale))`, below 2^63, and below 2^174 before it is cut. Zero and subnormal numbers
            // have no hidden bit, but with or without it they are far below 2^-63.
            uint256 i = (((x & MANTISSA) | HIDDEN_BIT) << xExponent) >> (EXPONENT_UNIT - scale);
            uint256 j = (((y & MANTISSA) | HIDDEN_BIT) << yExponent) >> (EXPONENT_UNIT - scale);
            // Below zero the difference wraps, and its square is right again.
            uint256 difference = (x ^ y) & SIGN == 0 ? i - j : i + j;
            return difference * difference;
        }
    }
}
