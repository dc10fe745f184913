// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice Binary32 arithmetic bit by bit, with one loop per idea: slow, checked arithmetic, no tables, nothing shared
/// with `Float32`.
/// @dev A finite number is (-1)^negative * significand * 2^exponent. Infinities and NaN are left to the tests.
library SlowFloat {
    struct Number {
        bool negative;
        uint256 significand;
        int256 exponent;
    }

    int256 private constant GRID = -149;

    function decode(uint256 word) internal pure returns (Number memory number) {
        uint256 field = (word / 2 ** 23) % 256;
        require(field != 255, "not finite");
        number.negative = word >= 2 ** 31;
        number.significand = word % 2 ** 23 + (field == 0 ? 0 : 2 ** 23);
        number.exponent = GRID + int256(field == 0 ? 0 : field - 1);
    }

    /// @notice Nearest number, ties to even. `sticky` says that the value is a little more than the significand says.
    function encode(Number memory number, bool sticky) internal pure returns (uint256 word) {
        uint256 significand = number.significand;
        int256 exponent = number.exponent;
        bool half = false;
        while (significand >= 2 ** 24 || exponent < GRID) {
            sticky = sticky || half;
            half = significand % 2 == 1;
            significand /= 2;
            ++exponent;
            if (significand == 0 && !half) {
                exponent = GRID; // less than a half of the smallest number, whatever follows
                break;
            }
        }
        if (half && (sticky || significand % 2 == 1)) ++significand;
        while (significand < 2 ** 23 && exponent > GRID) {
            significand *= 2;
            --exponent;
            if (significand == 0) exponent = GRID;
        }
        if (significand == 2 ** 24) (significand, exponent) = (2 ** 23, exponent + 1);
        uint256 field = significand < 2 ** 23 ? 0 : uint256(exponent - GRID + 1);
        word = field > 254 ? 255 * 2 ** 23 : field * 2 ** 23 + significand % 2 ** 23;
        if (number.negative) word += 2 ** 31;
    }

    function multiply(Number memory a, Number memory b) internal pure returns (Number memory) {
        return Number(a.negative != b.negative, a.significand * b.significand, a.exponent + b.exponent);
    }

    /// @notice The rounded sum; a zero sum is -0 only if both are negative.
    function add(Number memory a, Number memory b) internal pure returns (uint256) {
        if (a.significand == 0 && b.significand == 0) return a.negative && b.negative ? 2 ** 31 : 0;
        if (a.significand == 0) return encode(b, false);
        if (b.significand == 0) return encode(a, false);
        // Moves the number with the greater exponent up by at most 150 places, then the other one down, its last bit
        // sticky.
        if (a.exponent < b.exponent) (a, b) = (b, a);
        Number memory high = Number(a.negative, a.significand, a.exponent);
        Number memory low = Number(b.negative, b.significand, b.exponent);
        while (high.exponent > low.exponent && high.significand < 2 ** 150) {
            high.significand *= 2;
            --high.exponent;
        }
        while (low.exponent < high.exponent && low.significand > 1) {
            low.significand = low.significand / 2 | low.significand % 2;
            ++low.exponent;
        }
        if (high.negative == low.negative) {
            return encode(Number(high.negative, high.significand + low.significand, high.exponent), false);
        }
        if (high.significand == low.significand) return 0;
        return high.significand > low.significand
            ? encode(Number(high.negative, high.significand - low.significand, high.exponent), false)
            : encode(Number(low.negative, low.significand - high.significand, high.exponent), false);
    }

    function divide(Number memory a, Number memory b) internal pure returns (uint256) {
        uint256 quotient = a.significand * 2 ** 100 / b.significand;
        bool sticky = quotient * b.significand != a.significand * 2 ** 100;
        return encode(Number(a.negative != b.negative, quotient, a.exponent - b.exponent - 100), sticky);
    }

    /// @notice The root of a positive number, one bit after the other.
    function squareRoot(Number memory a) internal pure returns (uint256) {
        uint256 radicand = a.significand * 2 ** 101;
        int256 exponent = a.exponent - 101;
        if (exponent % 2 != 0) (radicand, exponent) = (radicand * 2, exponent - 1);
        uint256 root = 0;
        for (uint256 bit = 2 ** 64; bit > 0; bit /= 2) {
            if ((root + bit) * (root + bit) <= radicand) root += bit;
        }
        return encode(Number(false, root, exponent / 2), root * root != radicand);
    }

    /// @notice floor(|a|) and whether anything remains.
    function floor(Number memory a) internal pure returns (uint256 whole, bool more) {
        whole = a.significand;
        int256 exponent = a.exponent;
        for (; exponent < 0 && whole > 0; ++exponent) {
            more = more || whole % 2 == 1;
            whole /= 2;
        }
        for (; exponent > 0; --exponent) {
            whole *= 2;
        }
    }
}
