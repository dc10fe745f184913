// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Openings} from "./Opening.sol";

/// @title Distance
/// @notice Exact integer distances (docs/spec/verdict.md): fixed point with 40 fractional bits, squared, summed up.
library Distance {
    /// @notice What no finite distance reaches.
    uint256 internal constant INFINITE = type(uint256).max;

    /// @dev Sums that would reach this are INFINITE.
    uint256 private constant SATURATION = 2 ** 191;
    uint256 private constant F32 = 1;
    uint256 private constant HIDDEN_BIT = 1 << 23;
    /// @dev Biased exponent of 2^23, from which on (infinities and NaN too) a word has no fixed-point value.
    uint256 private constant EXPONENT_LIMIT = 150;
    /// @dev A word with biased exponent e is mantissa * 2^(e - 150), and its fixed point mantissa * 2^(e - 110).
    uint256 private constant EXPONENT_UNIT = 110;

    /// @notice `a + b`, INFINITE if it would reach 2^191.
    function add(uint256 a, uint256 b) internal pure returns (uint256) {
        if (a >= SATURATION || b >= SATURATION || a + b >= SATURATION) return INFINITE;
        return a + b;
    }

    /// @notice Distance of the first `words` words of two leaves of a tensor with that dtype.
    function ofLeaves(bytes calldata x, bytes calldata y, uint256 words, uint256 dtype)
        internal
        pure
        returns (uint256 sum)
    {
        unchecked {
            // At most 64 distances below 2^128.
            for (uint256 i = 0; i < words; ++i) {
                uint256 distance = ofWords(Openings.word(x, i), Openings.word(y, i), dtype);
                if (distance == INFINITE) return INFINITE;
                sum += distance;
            }
        }
    }

    /// @notice Distance of two words.
    function ofWords(uint32 x, uint32 y, uint256 dtype) internal pure returns (uint256) {
        if (dtype != F32) return x == y ? 0 : INFINITE;
        (bool xFinite, int256 xFixed) = toFixed(x);
        (bool yFinite, int256 yFixed) = toFixed(y);
        if (!xFinite || !yFinite) return INFINITE;
        unchecked {
            // Fixed-point values are below 2^63 in magnitude.
            int256 difference = xFixed - yFixed;
            return uint256(difference * difference);
        }
    }

    /// @notice `trunc(x * 2^40)` for finite |x| < 2^23; `finite` is false for all other words.
    function toFixed(uint32 x) internal pure returns (bool finite, int256 value) {
        uint256 exponent = (x >> 23) & 0xff;
        if (exponent >= EXPONENT_LIMIT) return (false, 0);
        uint256 magnitude = x & (HIDDEN_BIT - 1);
        // Subnormal numbers are far below 2^-40.
        if (exponent == 0) return (true, 0);
        magnitude |= HIDDEN_BIT;
        unchecked {
            // The branch is chosen by what is to be subtracted; the magnitude stays below 2^63.
            magnitude = exponent >= EXPONENT_UNIT
                ? magnitude << (exponent - EXPONENT_UNIT)
                : magnitude >> (EXPONENT_UNIT - exponent);
            return (true, x >> 31 == 0 ? int256(magnitude) : -int256(magnitude));
        }
    }
}
