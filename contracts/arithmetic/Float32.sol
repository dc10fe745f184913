// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {leadingZeros, leadingZerosNear} from "./LeadingZeros.sol";

/// @title IEEE-754 binary32, bit for bit
/// @notice Round to nearest even, subnormals kept, every NaN result is 0x7fc00000 (docs/spec/arithmetic.md).
/// @dev A number is its 32-bit pattern, right-aligned in a uint256 whose other bits are zero; callers guarantee the
/// zeros.
///
/// A finite number with exponent field f and fraction t is taken apart as `significand * 2^(exponent - 149)` with
///   normal    (f > 0): significand = 2^23 + t, exponent = f - 1
///   subnormal (f = 0): significand = t,        exponent = 0
/// so that exponent 0 is the grid of subnormals and no case is special after decoding. Signed values are 256-bit two's
/// complement, which wraps: that is the reason for `unchecked` everywhere. The operations build an exact (or exact but
/// for a sticky last bit) integer and leave normalising, rounding and overflow to `_round`.
library Float32 {
    uint256 internal constant NAN = 0x7fc00000;
    uint256 internal constant INF = 0x7f800000;

    uint256 private constant SIGN = 0x80000000;
    uint256 private constant MAGNITUDE = 0x7fffffff;
    uint256 private constant FRACTION = 0x7fffff;
    uint256 private constant HIDDEN = 0x800000;
    uint256 private constant MAX_FIELD = 255;

    /// @dev Bit i is set if i is a field that `add` handles in its short way: 1 to 230.
    uint256 private constant ADD_RANGE = 0x7ffffffffffffffffffffffffffffffffffffffffffffffffffffffffe;
    /// @dev The same for the factors of `fma`: 1 to 206.
    uint256 private constant FMA_RANGE = 0x7ffffffffffffffffffffffffffffffffffffffffffffffffffe;
    /// @dev The same for the places of the two terms of `fma`: 25 to 230.
    uint256 private constant FMA_PLACES = 0x7ffffffffffffffffffffffffffffffffffffffffffffffffffe000000;
    /// @dev -(2^231 + 1). Added to a 256-bit number together with its bit 232, it rounds the upper 24 bits to nearest
    /// even, but for 1 that is still to be added: upward, a carry out of the word would be lost.
    uint256 private constant ROUNDING = 0xffffff7fffffffffffffffffffffffffffffffffffffffffffffffffffffffff;
    /// @dev Byte i is sqrt(1 + (i + 1/2) / 16) * 127.5, and from i = 16 on sqrt(2 + (i - 16 + 1/2) / 8) * 127.5.
    uint256 private constant ROOTS = 0x8185898d9094979b9ea1a4a7aaadb0b3b7bdc2c7ccd1d6dbdfe4e8ecf1f5f9fd;

    /// @dev a + b.
    function add(uint256 a, uint256 b) internal pure returns (uint256 result) {
        uint256 x;
        uint256 y;
        uint256 sum;
        uint256 sign;
        uint256 usual;
        assembly ("memory-safe") {
            x := and(shr(23, a), MAX_FIELD)
            y := and(shr(23, b), MAX_FIELD)
            usual := and(and(shr(x, ADD_RANGE), shr(y, ADD_RANGE)), 1)
        }
        if (usual == 0) return _addRare(a, b);
        assembly ("memory-safe") {
            // In units of 2^-150 the field of a normal number is the shift of its significand. b takes the sign that it
            // has beside a.
            let opposite := sub(0, shr(31, xor(a, b)))
            sum := shl(y, or(and(b, FRACTION), HIDDEN))
            sum := add(shl(x, or(and(a, FRACTION), HIDDEN)), sub(xor(sum, opposite), opposite))
            let negative := sar(255, sum)
            sum := sub(xor(sum, negative), negative)
            sign := and(xor(a, negative), SIGN)
        }
        uint256 zeros = leadingZerosNear(sum, _usualPlace(x, y));
        // Below 2^25 the sum, even as both terms are, counts the steps between subnormal numbers twice.
        if (zeros > 230) return sum == 0 ? 0 : sign | (sum >> 1);
        assembly ("memory-safe") {
            sum := shl(zeros, sum)
            sum := shr(232, add(add(sum, and(shr(232, sum), 1)), ROUNDING))
            // The field is 232 - zeros; the hidden bit adds 1 to it, as a carry out of the significand would.
            result := or(sign, add(sub(add(shl(23, 231), 1), shl(23, zeros)), sum))
        }
    }

    /// @dev a - b.
    function sub(uint256 a, uint256 b) internal pure returns (uint256) {
        return add(a, b ^ SIGN);
    }

    /// @dev a * b.
    function mul(uint256 a, uint256 b) internal pure returns (uint256 result) {
        uint256 usual;
        assembly ("memory-safe") {
            // Fields in their places; 0 at either end of their range.
            let x := mod(and(a, INF), INF)
            let y := mod(and(b, INF), INF)
            let product := mul(or(and(a, FRACTION), HIDDEN), or(and(b, FRACTION), HIDDEN))
            let below := lt(product, 0x800000000000) // 2^47: the product is in [2^46, 2^48)
            product := shl(below, product)
            // 48 bits to 24, to nearest even. The hidden bit and a carry out of the significand add to the field.
            product := shr(24, add(product, add(0x7fffff, and(shr(24, product), 1))))
            result := sub(add(add(x, y), product), add(shl(23, below), 0x3f800000))
            // If the result is that of rounding to a normal number, it is right.
            usual := mul(mul(x, y), lt(sub(result, HIDDEN), 0x7f000000))
            result := or(and(xor(a, b), SIGN), result)
        }
        if (usual == 0) return _mulRare(a, b);
    }

    /// @dev a / b.
    function div(uint256 a, uint256 b) internal pure returns (uint256 result) {
        uint256 usual;
        assembly ("memory-safe") {
            let x := mod(and(a, INF), INF)
            let y := mod(and(b, INF), INF)
            let dividend := or(and(a, FRACTION), HIDDEN)
            let divisor := or(and(b, FRACTION), HIDDEN)
            let below := lt(dividend, divisor)
            // 25 bits, and no quotient lies in the middle of two numbers, so that the last one alone rounds.
            let quotient := shr(1, add(div(shl(add(24, below), dividend), divisor), 1))
            result := add(sub(add(x, quotient), add(y, shl(23, below))), 0x3f000000)
            usual := mul(mul(x, y), lt(sub(result, HIDDEN), 0x7f000000))
            result := or(and(xor(a, b), SIGN), result)
        }
        if (usual == 0) return _divRare(a, b);
    }

    /// @dev a * b + c with one rounding.
    function fma(uint256 a, uint256 b, uint256 c) internal pure returns (uint256 result) {
        uint256 x;
        uint256 y;
        uint256 sum;
        uint256 sign;
        uint256 usual;
        assembly ("memory-safe") {
            x := and(shr(23, a), MAX_FIELD)
            y := and(shr(23, b), MAX_FIELD)
            usual := and(shr(x, FMA_RANGE), shr(y, FMA_RANGE))
            // In units of 2^-174: the shift of a 24-bit significand is the place of its number. That of the product has
            // 48 bits.
            x := sub(add(x, y), 102)
            y := add(and(shr(23, c), MAX_FIELD), 24)
            usual := and(and(usual, and(shr(x, FMA_PLACES), shr(y, FMA_PLACES))), 1)
        }
        if (usual == 0) return _fmaRare(a, b, c);
        assembly ("memory-safe") {
            sign := xor(a, b)
            let opposite := sub(0, shr(31, xor(sign, c)))
            sum := shl(y, or(and(c, FRACTION), HIDDEN))
            sum := add(
                shl(sub(x, 24), mul(or(and(a, FRACTION), HIDDEN), or(and(b, FRACTION), HIDDEN))),
                sub(xor(sum, opposite), opposite)
            )
            let negative := sar(255, sum)
            sum := sub(xor(sum, negative), negative)
            sign := and(xor(sign, negative), SIGN)
        }
        uint256 zeros = leadingZerosNear(sum, _usualPlace(x, y));
        if (zeros > 206) return sum == 0 ? 0 : sign | _subnormal(sum);
        assembly ("memory-safe") {
            sum := shl(zeros, sum)
            sum := shr(232, add(add(sum, and(shr(232, sum), 1)), ROUNDING))
            // As in `add`; the field is 208 - zeros.
            result := or(sign, add(sub(add(shl(23, 207), 1), shl(23, zeros)), sum))
        }
    }

    /// @dev Square root; NaN for negative numbers, -0 for -0.
    function sqrt(uint256 a) internal pure returns (uint256 result) {
        uint256 rare;
        assembly ("memory-safe") {
            let less := sub(a, HIDDEN) // 1 less in the field
            rare := gt(less, 0x7effffff) // not a positive normal number
            // The radicand is in [1, 4) times 2^200: doubled if the field is even, that is, less than HIDDEN is odd.
            let low := and(less, 0xffffff)
            let radicand := shl(177, shl(gt(low, FRACTION), or(low, HIDDEN)))
            // The table is within 2^-5.7; three steps of Newton bring that below 2^-52 relative, from above. The root
            // of a 24-bit number is at least 2^-51 away from the middle of two others, so that it rounds as the exact
            // one does. The last step isn't halved.
            let root := shl(93, byte(shr(19, low), ROOTS))
            root := shr(1, add(root, div(radicand, root)))
            root := shr(1, add(root, div(radicand, root)))
            root := add(root, div(radicand, root))
            root := shr(78, add(root, add(shl(77, 1), shl(101, 63))))
            result := add(and(shr(1, less), INF), root)
        }
        if (rare != 0) return _sqrtRare(a);
    }

    /// @dev The smaller one; NaN if either is NaN; -0 < +0.
    function min(uint256 a, uint256 b) internal pure returns (uint256) {
        if (isNaN(a) || isNaN(b)) return NAN;
        return _ordered(a) < _ordered(b) ? a : b;
    }

    /// @dev The larger one; NaN if either is NaN; -0 < +0.
    function max(uint256 a, uint256 b) internal pure returns (uint256) {
        if (isNaN(a) || isNaN(b)) return NAN;
        return _ordered(a) < _ordered(b) ? b : a;
    }

    /// @dev a == b; false for NaN; the zeros are equal.
    function eq(uint256 a, uint256 b) internal pure returns (bool) {
        return (a == b && !isNaN(a)) || (a | b) & MAGNITUDE == 0;
    }

    /// @dev a < b; false for NaN; the zeros are equal.
    function lt(uint256 a, uint256 b) internal pure returns (bool) {
        if (isNaN(a) || isNaN(b)) return false;
        return _ordered(a) < _ordered(b) && (a | b) & MAGNITUDE != 0;
    }

    /// @dev a <= b; false for NaN; the zeros are equal.
    function le(uint256 a, uint256 b) internal pure returns (bool) {
        if (isNaN(a) || isNaN(b)) return false;
        return _ordered(a) <= _ordered(b) || (a | b) & MAGNITUDE == 0;
    }

    /// @dev -a.
    function neg(uint256 a) internal pure returns (uint256) {
        return isNaN(a) ? NAN : a ^ SIGN;
    }

    /// @dev |a|.
    function abs(uint256 a) internal pure returns (uint256) {
        return isNaN(a) ? NAN : a & MAGNITUDE;
    }

    /// @dev The nearest integral value, ties to even, with the sign of a.
    function rint(uint256 a) internal pure returns (uint256) {
        unchecked {
            uint256 x = (a >> 23) & MAX_FIELD;
            if (x > 149) return isNaN(a) ? NAN : a; // every bit is worth at least 1
            // |a| < 1: only above 1/2 is it 1.
            if (x < 127) return (a & SIGN) | (a & MAGNITUDE > 0x3f000000 ? 0x3f800000 : 0);
            // Rounds the pattern in place. At x = 127 the unit's bit is the exponent's last one: set, as the hidden bit
            // is.
            uint256 unit = 1 << (150 - x);
            return (a + (unit >> 1) - 1 + ((a >> (150 - x)) & 1)) & ~(unit - 1);
        }
    }

    /// @dev f32 to i32 toward zero; saturates; NaN gives 0.
    function toInt(uint256 a) internal pure returns (uint256) {
        unchecked {
            if (isNaN(a)) return 0;
            uint256 x = (a >> 23) & MAX_FIELD;
            if (x > 157) return MAGNITUDE + (a >> 31); // |a| >= 2^31: the greatest i32, or the least, which is one more
            uint256 magnitude = (((a & FRACTION) | HIDDEN) << x) >> 150; // 0 for x < 127, hidden bit or not
            return _signed(a, magnitude) & 0xffffffff;
        }
    }

    /// @dev i32 to f32.
    function fromInt(uint256 a) internal pure returns (uint256) {
        unchecked {
            if (a == 0) return 0;
            assembly ("memory-safe") {
                a := signextend(3, a)
            }
            return _round(a << 24, 149 - 24);
        }
    }

    /// @dev Whether the pattern is any NaN.
    function isNaN(uint256 a) internal pure returns (bool) {
        return a & MAGNITUDE > INF;
    }

    /// @dev Rounds `value * 2^(exponent - 149)` to binary32; both are signed. Needs 2^24 <= |value| < 2^104, and if
    /// `value` is inexact, that its last bit is sticky.
    function _round(uint256 value, uint256 exponent) private pure returns (uint256 result) {
        uint256 negative;
        assembly ("memory-safe") {
            negative := shr(255, value)
            value := add(xor(value, sub(0, negative)), negative)
        }
        uint256 zeros = leadingZeros(value);
        assembly ("memory-safe") {
            let drop := sub(232, zeros) // so that 24 bits remain

            // Below the grid of subnormals: drop more, down to exponent 0. A value is below 2^104, so 255 drops
            // everything.
            exponent := add(exponent, drop)
            if slt(exponent, 0) {
                drop := sub(drop, exponent)
                if gt(drop, 255) { drop := 255 }
                exponent := 0
            }

            // To nearest, ties to even: add a half less one, plus one if the last place kept is odd. A normal
            // significand's hidden bit, and a carry out of it, add to the exponent field.
            let kept := shr(drop, value)
            result := shr(drop, add(value, add(sub(shl(sub(drop, 1), 1), 1), and(kept, 1))))
            result := add(result, shl(23, exponent))
            if gt(result, INF) { result := INF }
            result := or(result, shl(31, negative))
        }
    }

    /// @dev The lowest of five places, counted in bits, where the first bit of the sum of two significands usually is
    /// that were shifted by x and y: the sum carries or loses up to three places.
    function _usualPlace(uint256 x, uint256 y) private pure returns (uint256 place) {
        assembly ("memory-safe") {
            place := add(xor(x, mul(xor(x, y), gt(y, x))), 20)
        }
    }

    /// @dev Rounds a number below 2^49 in units of 2^-174 to the steps between subnormal numbers: they are 2^25 apart.
    function _subnormal(uint256 sum) private pure returns (uint256 result) {
        assembly ("memory-safe") {
            result := shr(25, add(sum, add(0xffffff, and(shr(25, sum), 1))))
        }
    }

    /// @dev The root of what is not a positive normal number.
    function _sqrtRare(uint256 a) private pure returns (uint256) {
        unchecked {
            if (a & MAGNITUDE == 0 || a == INF) return a;
            if (a > INF) return NAN;
            // A subnormal number with its first bit at p is normal times 2^24, with the field p + 2, of which the
            // hidden bit is one. The root of that is 2^12 times the wanted one, which is normal too.
            uint256 zeros = leadingZeros(a);
            return sqrt(((256 - zeros) << 23) + (a << (zeros - 232))) - (12 << 23);
        }
    }

    /// @dev Exponent and significand of a finite number.
    function _significand(uint256 a) private pure returns (uint256 exponent, uint256 significand) {
        assembly ("memory-safe") {
            let field := and(shr(23, a), MAX_FIELD)
            let normal := gt(field, 0)
            exponent := sub(field, normal)
            significand := or(and(a, FRACTION), shl(23, normal))
        }
    }

    /// @dev `magnitude` with the sign of a.
    function _signed(uint256 a, uint256 magnitude) private pure returns (uint256 value) {
        assembly ("memory-safe") {
            let negative := and(shr(31, a), 1)
            value := add(xor(magnitude, sub(0, negative)), negative)
        }
    }

    /// @dev Maps patterns to integers so that numbers keep their order; -0 comes before +0.
    function _ordered(uint256 a) private pure returns (uint256 key) {
        assembly ("memory-safe") {
            key := xor(a, or(SIGN, mul(shr(31, a), MAGNITUDE)))
        }
    }

    /// @dev a + b in general.
    function _addRare(uint256 a, uint256 b) private pure returns (uint256) {
        unchecked {
            if (isNaN(a) || isNaN(b)) return NAN;
            if (a ^ b == SIGN) return a & MAGNITUDE == INF ? NAN : 0; // x - x
            if ((a | b) & MAGNITUDE == 0) return a; // zeros of one sign
            if (a & MAGNITUDE < b & MAGNITUDE) (a, b) = (b, a);
            (uint256 x, uint256 sum) = _significand(a);
            (uint256 y, uint256 addend) = _significand(b);
            // More than 25 places apart, b is below a quarter of the last place of a and changes nothing.
            if (x - y > 25 || a & MAGNITUDE == INF) return a;
            return _round((_signed(a, sum) << 26) + (_signed(b, addend) << (26 - (x - y))), x - 26);
        }
    }

    /// @dev a * b where an operand or the result is not a normal number.
    function _mulRare(uint256 a, uint256 b) private pure returns (uint256) {
        unchecked {
            uint256 sign = (a ^ b) & SIGN;
            bool zero = a & MAGNITUDE == 0 || b & MAGNITUDE == 0;
            if (a & INF == INF || b & INF == INF) return isNaN(a) || isNaN(b) || zero ? NAN : sign | INF;
            if (zero) return sign;
            uint256 x;
            uint256 y;
            (x, a) = _significand(a);
            (y, b) = _significand(b);
            return _round(_signed(sign, a * b) << 24, x + y - (149 + 24));
        }
    }

    /// @dev a / b where an operand or the result is not a normal number.
    function _divRare(uint256 a, uint256 b) private pure returns (uint256) {
        unchecked {
            uint256 sign = (a ^ b) & SIGN;
            if (isNaN(a) || isNaN(b)) return NAN;
            if (a & INF == INF) return b & INF == INF ? NAN : sign | INF;
            if (b & INF == INF) return sign;
            uint256 x;
            uint256 y;
            (x, a) = _significand(a);
            (y, b) = _significand(b);
            if (b == 0) return a == 0 ? NAN : sign | INF;
            if (a == 0) return sign;
            uint256 quotient;
            assembly ("memory-safe") {
                // 1 <= a and b < 2^24: at least 26 bits and a sticky one
                a := shl(51, a)
                quotient := or(div(a, b), gt(mod(a, b), 0))
            }
            return _round(_signed(sign, quotient), x - y + (149 - 51));
        }
    }

    /// @dev a * b + c in general.
    function _fmaRare(uint256 a, uint256 b, uint256 c) private pure returns (uint256) {
        unchecked {
            uint256 sign = (a ^ b) & SIGN;
            if (a & INF == INF || b & INF == INF) {
                uint256 product = _mulRare(a, b);
                // The last is infinity - infinity.
                return isNaN(product) || isNaN(c) || product ^ c == SIGN ? NAN : product;
            }
            // Beside an infinite c no finite product counts, however large.
            if (c & INF == INF) return isNaN(c) ? NAN : c;
            if (a & MAGNITUDE == 0 || b & MAGNITUDE == 0) return c & MAGNITUDE == 0 ? sign & c : c;
            (uint256 x, uint256 sum) = _significand(a);
            (uint256 y, uint256 addend) = _significand(b);
            sum = _signed(sign, sum * addend) << 26;
            x = x + y - 149;
            (y, addend) = _significand(c);
            uint256 apart = x - y;
            if (apart + 50 > 76) {
                // The product is below a quarter of the last place of c, or, if c is zero, of the smallest subnormal.
                if (int256(apart) < 0) return addend == 0 ? sign : c;
                // One of a and b is normal, so the product is at least 2^23, and c only says on which side of it the
                // sum lies. c moved up to the bits right below the product says the same.
                apart = 26;
            }
            sum += _signed(c, addend) << (26 - apart);
            return sum == 0 ? 0 : _round(sum, x - 26);
        }
    }
}
