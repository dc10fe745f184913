// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title IEEE-754 binary32, bit for bit
/// @notice Round to nearest even, subnormals kept, every NaN result is 0x7fc00000 (docs/spec/arithmetic.md).
/// @dev A number is its 32-bit pattern, right-aligned in a uint256 whose other bits are zero; callers guarantee the zeros.
///
/// A finite number with exponent field f and fraction t is taken apart as `significand * 2^(exponent - 149)` with
///   normal    (f > 0): significand = 2^23 + t, exponent = f - 1
///   subnormal (f = 0): significand = t,        exponent = 0
/// so that exponent 0 is the grid of subnormals and no case is special after decoding. Signed values are 256-bit two's
/// complement, which wraps: that is the reason for `unchecked` everywhere. The operations build an exact (or exact but for a
/// sticky last bit) integer and leave normalising, rounding and overflow to `_round`.
library Float32 {
    uint256 internal constant NAN = 0x7fc00000;
    uint256 internal constant INF = 0x7f800000;

    uint256 private constant SIGN = 0x80000000;
    uint256 private constant MAGNITUDE = 0x7fffffff;
    uint256 private constant FRACTION = 0x7fffff;
    uint256 private constant HIDDEN = 0x800000;
    uint256 private constant MAX_FIELD = 255;

    /// @dev Byte i is the number of bits of i, for i < 32.
    uint256 private constant BIT_LENGTH = 0x0001020203030303040404040404040405050505050505050505050505050505;

    /// @dev a + b.
    function add(uint256 a, uint256 b) internal pure returns (uint256 result) {
        uint256 usual;
        assembly ("memory-safe") {
            // `large` is the operand of greater magnitude: the sum has its sign.
            let large := a
            let small := b
            if gt(and(b, MAGNITUDE), and(a, MAGNITUDE)) {
                large := b
                small := a
            }
            let field := and(shr(23, large), MAX_FIELD)
            let apart := sub(field, and(shr(23, small), MAX_FIELD))
            // Both significands on the grid 26 places below the exponent of `large`: 2^49 <= sum < 2^50 before adding.
            let sum := shl(26, or(and(large, FRACTION), HIDDEN))
            let addend := shl(sub(26, apart), or(and(small, FRACTION), HIDDEN))
            if shr(31, xor(a, b)) { addend := sub(0, addend) }
            sum := add(sum, addend)
            // Bits to drop: 25, 26 or 27. A sum below 2^48 has lost more than one bit and is not handled here, nor are
            // operands more than 26 places apart, zeros, subnormal numbers and the ends of the exponent range.
            let drop := add(25, add(gt(shr(49, sum), 0), shr(50, sum)))
            usual := and(and(gt(shr(48, sum), 0), lt(apart, 27)), and(lt(apart, field), lt(sub(field, 2), 252)))
            sum := shr(drop, add(sum, add(sub(shl(sub(drop, 1), 1), 1), and(shr(drop, sum), 1))))
            result := or(and(large, SIGN), add(shl(23, add(field, sub(drop, 27))), sum))
        }
        if (usual == 0) return _addRare(a, b);
    }

    /// @dev a - b.
    function sub(uint256 a, uint256 b) internal pure returns (uint256) {
        return add(a, b ^ SIGN);
    }

    /// @dev a * b.
    function mul(uint256 a, uint256 b) internal pure returns (uint256 result) {
        uint256 usual;
        assembly ("memory-safe") {
            let x := and(shr(23, a), MAX_FIELD)
            let y := and(shr(23, b), MAX_FIELD)
            // The result's field if the product of the significands, in [2^46, 2^48), stays below 2^47; else it is one more.
            let field := sub(add(x, y), 127)
            usual := and(and(lt(sub(x, 1), 254), lt(sub(y, 1), 254)), lt(sub(field, 1), 253))
            let product := mul(or(and(a, FRACTION), HIDDEN), or(and(b, FRACTION), HIDDEN))
            let carry := shr(47, product)
            product := shl(sub(1, carry), product)
            // 48 bits to 24, to nearest even. The hidden bit and a carry out of the significand add to the field.
            product := shr(24, add(product, add(0x7fffff, and(shr(24, product), 1))))
            result := or(and(xor(a, b), SIGN), add(shl(23, add(sub(field, 1), carry)), product))
        }
        if (usual == 0) return _mulRare(a, b);
    }

    /// @dev a / b.
    function div(uint256 a, uint256 b) internal pure returns (uint256 result) {
        uint256 usual;
        assembly ("memory-safe") {
            let x := and(shr(23, a), MAX_FIELD)
            let y := and(shr(23, b), MAX_FIELD)
            // The result's field if the quotient of the significands, in (1/2, 2), is below 1; else it is one more.
            let field := add(sub(x, y), 126)
            usual := and(and(lt(sub(x, 1), 254), lt(sub(y, 1), 254)), lt(sub(field, 1), 253))
            let dividend := shl(26, or(and(a, FRACTION), HIDDEN))
            let divisor := or(and(b, FRACTION), HIDDEN)
            let quotient := or(div(dividend, divisor), gt(mod(dividend, divisor), 0)) // the last bit is sticky
            let carry := shr(26, quotient)
            quotient := shl(sub(1, carry), quotient)
            // 27 bits to 24, as in `mul`.
            quotient := shr(3, add(quotient, add(3, and(shr(3, quotient), 1))))
            result := or(and(xor(a, b), SIGN), add(shl(23, add(sub(field, 1), carry)), quotient))
        }
        if (usual == 0) return _divRare(a, b);
    }

    /// @dev a * b + c with one rounding.
    function fma(uint256 a, uint256 b, uint256 c) internal pure returns (uint256 result) {
        uint256 usual;
        assembly ("memory-safe") {
            let field := and(shr(23, a), MAX_FIELD)
            let field2 := and(shr(23, b), MAX_FIELD)
            let field3 := and(shr(23, c), MAX_FIELD)
            usual := and(and(lt(sub(field, 1), 254), lt(sub(field2, 1), 254)), lt(sub(field3, 1), 254))
            // The product of the significands, in [2^46, 2^48), has the exponent field + field2 - 151.
            field := sub(add(field, field2), 150)
            let apart := sub(field, field3)
            // Both on the grid 26 places below the exponent of the product.
            let sum := shl(26, mul(or(and(a, FRACTION), HIDDEN), or(and(b, FRACTION), HIDDEN)))
            let addend := shl(sub(26, apart), or(and(c, FRACTION), HIDDEN))
            let sign := xor(a, b)
            if shr(31, xor(sign, c)) { addend := sub(0, addend) }
            sum := add(sum, addend)
            if slt(sum, 0) {
                sum := sub(0, sum)
                sign := c
            }
            // The product's first bit is at 72 or 73, that of c at 49 - apart. Unless the sum has lost more than two bits,
            // its first bit is among the five from low + 24 on.
            let low := sub(46, mul(add(apart, 23), slt(apart, sub(0, 23))))
            let drop := add(low, byte(shr(add(low, 24), sum), BIT_LENGTH))
            field := add(field, sub(drop, 27))
            usual := and(and(usual, lt(field, 254)), and(lt(add(apart, 50), 77), gt(drop, low)))
            sum := shr(drop, add(sum, add(sub(shl(sub(drop, 1), 1), 1), and(shr(drop, sum), 1))))
            result := or(and(sign, SIGN), add(shl(23, field), sum))
        }
        if (usual == 0) return _fmaRare(a, b, c);
    }

    /// @dev Square root; NaN for negative numbers, -0 for -0.
    function sqrt(uint256 a) internal pure returns (uint256) {
        unchecked {
            uint256 x = a >> 23; // above MAX_FIELD for negative numbers
            if (x - 1 >= MAX_FIELD - 1) {
                if (a & MAGNITUDE == 0 || a == INF) return a;
                if (a > INF) return NAN;
                // A subnormal number times 2^24 is normal; its root is 2^12 times the wanted one, which is normal too.
                return sqrt(_round(a << 24, 0)) - (12 << 23);
            }
            // The radicand v = significand * 2^(exponent mod 2) is in [1, 4), here times 2^52.
            uint256 radicand = ((a & FRACTION) | HIDDEN) << (30 - (x & 1));
            uint256 root;
            assembly ("memory-safe") {
                // 11/32 (v + 2) is within 3 % of the root; three Newton steps bring that below 2^-45 relative, from above.
                root := shr(31, mul(11, add(radicand, shl(53, 1))))
                root := shr(1, add(root, div(radicand, root)))
                root := shr(1, add(root, div(radicand, root)))
                root := shr(1, add(root, div(radicand, root)))
                root := sub(root, gt(mul(root, root), radicand))
                // 27 bits and a sticky one, to 24.
                root := or(shl(1, root), lt(mul(root, root), radicand))
                root := shr(4, add(root, add(7, and(shr(4, root), 1))))
            }
            return ((((x + 127) >> 1) - 1) << 23) + root;
        }
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
            if (x < 127) return (a & SIGN) | (a & MAGNITUDE > 0x3f000000 ? 0x3f800000 : 0); // |a| < 1: only above 1/2 is it 1
            // Rounds the pattern in place. At x = 127 the unit's bit is the exponent's last one: set, as the hidden bit is.
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

    /// @dev Rounds `value * 2^(exponent - 149)` to binary32; both are signed. Needs 2^24 <= |value| < 2^104, and if `value` is
    /// inexact, that its last bit is sticky.
    function _round(uint256 value, uint256 exponent) private pure returns (uint256 result) {
        assembly ("memory-safe") {
            let negative := shr(255, value)
            value := add(xor(value, sub(0, negative)), negative)

            // Bits to drop, so that 24 remain: the bit length of value / 2^24, found by halving its 80 possible values
            // down to 5 bits and reading the rest from a table.
            let high := shr(24, value)
            let drop := mul(40, gt(high, 0xffffffffff))
            drop := add(drop, mul(20, gt(shr(drop, high), 0xfffff)))
            drop := add(drop, mul(10, gt(shr(drop, high), 0x3ff)))
            drop := add(drop, mul(5, gt(shr(drop, high), 0x1f)))
            drop := add(drop, byte(shr(drop, high), BIT_LENGTH))

            // Below the grid of subnormals: drop more, down to exponent 0. A value is below 2^104, so 255 drops everything.
            exponent := add(exponent, drop)
            if slt(exponent, 0) {
                drop := sub(drop, exponent)
                if gt(drop, 255) { drop := 255 }
                exponent := 0
            }

            // To nearest, ties to even: add a half less one, plus one if the last place kept is odd. A normal significand's
            // hidden bit, and a carry out of it, add to the exponent field.
            let kept := shr(drop, value)
            result := shr(drop, add(value, add(sub(shl(sub(drop, 1), 1), 1), and(kept, 1))))
            result := add(result, shl(23, exponent))
            if gt(result, INF) { result := INF }
            result := or(result, shl(31, negative))
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
                return isNaN(product) || isNaN(c) || product ^ c == SIGN ? NAN : product; // the last: infinity - infinity
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
                // One of a and b is normal, so the product is at least 2^23, and c only says on which side of it the sum lies.
                // c moved up to the bits right below the product says the same.
                apart = 26;
            }
            sum += _signed(c, addend) << (26 - apart);
            return sum == 0 ? 0 : _round(sum, x - 26);
        }
    }
}
