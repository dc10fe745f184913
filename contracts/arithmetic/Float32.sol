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
    function add(uint256 a, uint256 b) internal pure returns (uint256) {
        uint256 sum;
        uint256 exponent;
        uint256 rare;
        assembly ("memory-safe") {
            let x := and(shr(23, a), MAX_FIELD)
            let y := and(shr(23, b), MAX_FIELD)
            rare := or(eq(x, MAX_FIELD), eq(y, MAX_FIELD))
            let normal := gt(x, 0)
            sum := or(and(a, FRACTION), shl(23, normal))
            x := sub(x, normal)
            normal := gt(y, 0)
            let addend := or(and(b, FRACTION), shl(23, normal))
            y := sub(y, normal)
            // On one grid, 26 places below the exponent of a. Numbers further apart than that are left to _addRare.
            let apart := sub(x, y)
            rare := or(rare, gt(add(apart, 25), 50))
            addend := shl(sub(26, apart), addend)
            sum := shl(26, sum)
            if shr(31, a) { sum := sub(0, sum) }
            switch shr(31, b)
            case 0 { sum := add(sum, addend) }
            default { sum := sub(sum, addend) }
            exponent := sub(x, 26)
            rare := or(rare, iszero(sum))
        }
        return rare == 0 ? _round(sum, exponent) : _addRare(a, b);
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
    function fma(uint256 a, uint256 b, uint256 c) internal pure returns (uint256) {
        uint256 sum;
        uint256 exponent;
        uint256 rare;
        assembly ("memory-safe") {
            let field := and(shr(23, a), MAX_FIELD)
            let normal := gt(field, 0)
            rare := eq(field, MAX_FIELD)
            exponent := sub(field, normal)
            sum := or(and(a, FRACTION), shl(23, normal))

            field := and(shr(23, b), MAX_FIELD)
            normal := gt(field, 0)
            rare := or(rare, eq(field, MAX_FIELD))
            exponent := add(exponent, sub(field, normal))
            // The product of the significands, below 2^48; its exponent is 149 less than the sum of theirs.
            sum := mul(sum, or(and(b, FRACTION), shl(23, normal)))
            rare := or(rare, iszero(sum))

            field := and(shr(23, c), MAX_FIELD)
            normal := gt(field, 0)
            rare := or(rare, eq(field, MAX_FIELD))
            let addend := or(and(c, FRACTION), shl(23, normal))

            // On one grid, 26 places below the exponent of the product. Numbers too far apart are left to _fmaRare.
            exponent := sub(exponent, 149)
            let apart := sub(exponent, sub(field, normal))
            rare := or(rare, gt(add(apart, 50), 76))
            addend := shl(sub(26, apart), addend)
            sum := shl(26, sum)
            if shr(31, xor(a, b)) { sum := sub(0, sum) }
            switch shr(31, c)
            case 0 { sum := add(sum, addend) }
            default { sum := sub(sum, addend) }
            exponent := sub(exponent, 26)
            rare := or(rare, iszero(sum))
        }
        return rare == 0 ? _round(sum, exponent) : _fmaRare(a, b, c);
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

    /// @dev a + b where an operand is not finite, the sum is zero, or one operand is too small to count.
    function _addRare(uint256 a, uint256 b) private pure returns (uint256) {
        if (isNaN(a) || isNaN(b)) return NAN;
        if (a ^ b == SIGN) return a & MAGNITUDE == INF ? NAN : 0; // x - x
        if ((a | b) & MAGNITUDE == 0) return a; // zeros of one sign
        // At least 26 binades apart (or infinite): the smaller operand is below a quarter of the larger one's last place.
        return a & MAGNITUDE > b & MAGNITUDE ? a : b;
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

    /// @dev a * b + c where an operand is not finite, the product or the sum is zero, or one of product and c is too small to count.
    function _fmaRare(uint256 a, uint256 b, uint256 c) private pure returns (uint256) {
        unchecked {
            uint256 sign = (a ^ b) & SIGN;
            if (a & INF == INF || b & INF == INF) return add(mul(a, b), c);
            // Beside an infinite or undefined c no finite product counts, however large.
            if (c & INF == INF || a & MAGNITUDE == 0 || b & MAGNITUDE == 0) return add(sign, c);
            (uint256 x, uint256 product) = _significand(a);
            (uint256 y, uint256 addend) = _significand(b);
            product *= addend;
            x = x + y - 149;
            (y, addend) = _significand(c);
            int256 apart = int256(x - y);
            // The product is less than a quarter of the last place of c, or, if c is zero, of the smallest subnormal.
            if (apart < -50) return addend == 0 ? sign : c;
            if (apart <= 26) return 0; // what is left is x - x
            // One of a and b is normal, so the product is at least 2^23, and c only says on which side of it the sum lies.
            // c moved up to the bits right below the product says the same.
            return _round((_signed(sign, product) << 26) + _signed(c, addend), x - 26);
        }
    }
}
