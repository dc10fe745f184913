// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {leadingZeros, leadingZerosNear} from "leading-zeros/LeadingZeros.sol";
import {Float32} from "./Float32.sol";

/// @title Chains of fused multiplications and additions
/// @notice acc = fma(a[k], b[k], acc) for k in order, bit for bit as `Float32.fma` gives it, at less than half of its gas.
/// @dev Eight terms at a time. The accumulator stays unpacked: an integer in units of 2^-173, below 2^252, that is rounded to 24
/// significant bits in its place. A block takes this way if each of its products is zero, or below 2^73 and of numbers from 2^-51 on,
/// which the exponents of all eight show at once. Then every term is a multiple of 2^-149, the grid of subnormal numbers, so that
/// what a subnormal sum keeps is exact; no sum overflows, and only a chain that starts with -0 can pass through -0. All
/// other blocks, and the terms after the last whole block, go through `Float32.fma`.
///
/// `lanes` are the eight 32-bit parts of a word, the first one highest. Constants that end in `S` hold the same number in each.
library FmaChain {
    uint256 private constant ODD_BYTES = 0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff;
    uint256 private constant ODD_PAIRS = 0x0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff;

    uint256 private constant ONES = 0x0000000100000001000000010000000100000001000000010000000100000001;
    uint256 private constant LANE = 0xffffffff;
    uint256 private constant FIELDS = 0x000000ff000000ff000000ff000000ff000000ff000000ff000000ff000000ff;
    uint256 private constant FRACTIONS = 0x007fffff007fffff007fffff007fffff007fffff007fffff007fffff007fffff;
    uint256 private constant HIDDENS = 0x0080000000800000008000000080000000800000008000000080000000800000;
    uint256 private constant MAGNITUDES = 0x7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff7fffffff;
    /// @dev Where the sums below tell by a carry whether a number is in its range.
    uint256 private constant BIT_8S = 0x0000010000000100000001000000010000000100000001000000010000000100;

    /// @dev With this a field from 76 on has bit 8 set, and a sum of two fields of which neither is less, from 326 on.
    uint256 private constant FROM_76 = 0x000000b4000000b4000000b4000000b4000000b4000000b4000000b4000000b4;
    uint256 private constant FROM_326 = 0x000003ba000003ba000003ba000003ba000003ba000003ba000003ba000003ba;
    /// @dev The shift of a product in units of 2^-173 is the sum of the fields less 127, here modulo 256.
    uint256 private constant SHIFTS = 0x0000008100000081000000810000008100000081000000810000008100000081;

    uint256 private constant BLOCK_BYTES = 32;
    /// @dev 64 products below 2^246 and a start below 2^252 stay below 2^254, rounded or not.
    uint256 private constant MAX_BYTES = 256;

    /// @dev No lanes: significands have 25 bits with their sign.
    uint256 private constant UNFIT = 0x7fffffff;

    uint256 private constant SIGN = 0x80000000;
    /// @dev The greatest field of an accumulator below 2^252.
    uint256 private constant MAX_FIELD = 205;
    /// @dev Weight of the last place kept of a sum, moved down by the leading zeros of what differs between the sum and its double: one
    /// place above the first bit that differs from the sign. For -2^n that is one too low, where it is exact as well.
    uint256 private constant TOP_UNIT = 2 ** 231;

    /// @dev The chain from `acc` over `count` terms. `a` and `b` are addresses in memory of little-endian words without gaps, aligned or
    /// not; memory is only read.
    function run(uint256 acc, uint256 a, uint256 b, uint256 count) internal pure returns (uint256) {
        unchecked {
            uint256 end = a + 4 * count;
            uint256 apart = b - a;
            for (uint256 left = 4 * count; left >= BLOCK_BYTES; left = end - a) {
                // As many blocks as 256 bits are sure to hold.
                uint256 stop = a + (left > MAX_BYTES ? MAX_BYTES : left & ~(BLOCK_BYTES - 1));
                (acc, a) = _blocks(acc, a, apart, stop);
                if (a != stop) {
                    acc = _each(acc, a, apart, a + BLOCK_BYTES);
                    a += BLOCK_BYTES;
                }
            }
            return a == end ? acc : _each(acc, a, apart, end);
        }
    }

    /// @dev Term by term, until `a` is `end`; the other operand is `apart` behind.
    function _each(uint256 acc, uint256 a, uint256 apart, uint256 end) private pure returns (uint256) {
        unchecked {
            for (; a < end; a += 4) {
                acc = Float32.fma(_word(a), _word(a + apart), acc);
            }
            return acc;
        }
    }

    /// @dev As many blocks as there are before `end` up to one that has to be done term by term, with which `a` is returned.
    function _blocks(uint256 acc, uint256 a, uint256 apart, uint256 end) private pure returns (uint256, uint256) {
        unchecked {
            if (_tooLarge(acc) != (acc == SIGN)) return (acc, a); // either one; never both
            uint256 sum = _unpacked(acc);
            uint256 zeros;
            while (a != end) {
                (uint256 x, uint256 y, uint256 shifts, uint256 unfit) = _decoded(a, a + apart);
                if (unfit != 0) {
                    x = _withoutZeros(x, a, a + apart, unfit);
                    if (x == UNFIT) break;
                }
                sum = _term(x, y, shifts, 0) + sum;
                zeros = leadingZerosNear(sum ^ (sum << 1), 253 - zeros);
                sum = (0 - (TOP_UNIT >> zeros)) & _nudged(sum, TOP_UNIT >> zeros);
                sum = _term(x, y, shifts, 1) + sum;
                zeros = leadingZerosNear(sum ^ (sum << 1), 253 - zeros);
                sum = (0 - (TOP_UNIT >> zeros)) & _nudged(sum, TOP_UNIT >> zeros);
                sum = _term(x, y, shifts, 2) + sum;
                zeros = leadingZerosNear(sum ^ (sum << 1), 253 - zeros);
                sum = (0 - (TOP_UNIT >> zeros)) & _nudged(sum, TOP_UNIT >> zeros);
                sum = _term(x, y, shifts, 3) + sum;
                zeros = leadingZerosNear(sum ^ (sum << 1), 253 - zeros);
                sum = (0 - (TOP_UNIT >> zeros)) & _nudged(sum, TOP_UNIT >> zeros);
                sum = _term(x, y, shifts, 4) + sum;
                zeros = leadingZerosNear(sum ^ (sum << 1), 253 - zeros);
                sum = (0 - (TOP_UNIT >> zeros)) & _nudged(sum, TOP_UNIT >> zeros);
                sum = _term(x, y, shifts, 5) + sum;
                zeros = leadingZerosNear(sum ^ (sum << 1), 253 - zeros);
                sum = (0 - (TOP_UNIT >> zeros)) & _nudged(sum, TOP_UNIT >> zeros);
                sum = _term(x, y, shifts, 6) + sum;
                zeros = leadingZerosNear(sum ^ (sum << 1), 253 - zeros);
                sum = (0 - (TOP_UNIT >> zeros)) & _nudged(sum, TOP_UNIT >> zeros);
                sum = _term(x, y, shifts, 7) + sum;
                zeros = leadingZerosNear(sum ^ (sum << 1), 253 - zeros);
                sum = (0 - (TOP_UNIT >> zeros)) & _nudged(sum, TOP_UNIT >> zeros);
                a += BLOCK_BYTES;
            }
            return (_packed(sum), a);
        }
    }

    /// @dev The word at an address.
    function _word(uint256 place) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := mload(place)
            word := or(shl(24, byte(3, word)), or(shl(16, byte(2, word)), or(shl(8, byte(1, word)), byte(0, word))))
        }
    }

    /// @dev Lanes of the eight pairs of operands at a and b: signed significands, of which those in x carry the sign of the product;
    /// significands; shifts of the products. `unfit` has bit 8 of each lane set that can not be summed with them.
    function _decoded(uint256 a, uint256 b) private pure returns (uint256 x, uint256 y, uint256 shifts, uint256 unfit) {
        assembly ("memory-safe") {
            // `_swapped`, without its call.
            let p := mload(a)
            p := xor(p, mul(and(xor(p, shr(8, p)), ODD_BYTES), 0x101))
            p := xor(p, mul(and(xor(p, shr(16, p)), ODD_PAIRS), 0x10001))
            let q := mload(b)
            q := xor(q, mul(and(xor(q, shr(8, q)), ODD_BYTES), 0x101))
            q := xor(q, mul(and(xor(q, shr(16, q)), ODD_PAIRS), 0x10001))
            let fields := and(shr(23, p), FIELDS)
            let others := and(shr(23, q), FIELDS)
            shifts := add(fields, others)
            // Neither is infinity or NaN, field 255, if both are 76 or more and their sum is below 326.
            unfit := and(or(not(and(add(fields, FROM_76), add(others, FROM_76))), add(shifts, FROM_326)), BIT_8S)
            shifts := add(shifts, SHIFTS)
            let negative := and(shr(31, xor(p, q)), ONES)
            x := xor(sub(or(and(p, FRACTIONS), HIDDENS), negative), mul(negative, LANE))
            y := or(and(q, FRACTIONS), HIDDENS)
        }
    }

    /// @dev `x` with significand 0 where a product is zero, if no other lane is `unfit`; otherwise `UNFIT`.
    function _withoutZeros(uint256 x, uint256 a, uint256 b, uint256 unfit) private pure returns (uint256) {
        assembly ("memory-safe") {
            a := mload(a)
            b := mload(b)
        }
        (a, b) = (_swapped(a), _swapped(b));
        assembly ("memory-safe") {
            let nonzero := and(add(and(a, MAGNITUDES), MAGNITUDES), add(and(b, MAGNITUDES), MAGNITUDES))
            nonzero := mul(and(shr(31, nonzero), ONES), LANE)
            x := and(x, nonzero)
            // Infinity and NaN times zero is NaN.
            let infinite := or(add(and(shr(23, a), FIELDS), ONES), add(and(shr(23, b), FIELDS), ONES))
            if and(or(and(unfit, nonzero), infinite), BIT_8S) { x := UNFIT }
        }
        return x;
    }

    /// @dev Eight little-endian words turned round: two differences to the neighbour swap the bytes of pairs, then the pairs.
    function _swapped(uint256 words) private pure returns (uint256 result) {
        assembly ("memory-safe") {
            result := xor(words, mul(and(xor(words, shr(8, words)), ODD_BYTES), 0x101))
            result := xor(result, mul(and(xor(result, shr(16, result)), ODD_PAIRS), 0x10001))
        }
    }

    /// @dev The product in a lane.
    function _term(uint256 x, uint256 y, uint256 shifts, uint256 lane) private pure returns (uint256 term) {
        assembly ("memory-safe") {
            let significand := mul(sar(224, shl(mul(32, lane), x)), shr(224, shl(mul(32, lane), y)))
            term := shl(byte(add(mul(4, lane), 3), shifts), significand)
        }
    }

    /// @dev Half a unit more, or just less if the number of whole units is even: without the part below the unit, a power of two from
    /// 2 on, that is the nearest multiple of it, ties to even.
    function _nudged(uint256 sum, uint256 unit) private pure returns (uint256 result) {
        assembly ("memory-safe") {
            result := add(sum, sub(shr(1, unit), iszero(and(sum, unit))))
        }
    }

    /// @dev Whether an accumulator is not below 2^252 in units of 2^-173: large, infinity or NaN.
    function _tooLarge(uint256 a) private pure returns (bool) {
        return (a >> 23) & 255 > MAX_FIELD;
    }

    /// @dev A finite number, except -0, in units of 2^-173.
    function _unpacked(uint256 a) private pure returns (uint256 value) {
        assembly ("memory-safe") {
            let field := and(shr(23, a), 255)
            let normal := gt(field, 0)
            value := shl(sub(add(24, field), normal), or(and(a, 0x7fffff), shl(23, normal)))
            if shr(31, a) { value := sub(0, value) }
        }
    }

    /// @dev The number of 24 significant bits that `_unpacked` takes apart; +0 for 0.
    function _packed(uint256 value) private pure returns (uint256 result) {
        uint256 negative;
        assembly ("memory-safe") {
            negative := sar(255, value)
            value := sub(xor(value, negative), negative)
        }
        uint256 zeros = leadingZeros(value);
        assembly ("memory-safe") {
            let drop := sub(232, zeros)
            if slt(drop, 24) { drop := 24 } // subnormal numbers
            result := or(and(negative, SIGN), add(shl(23, sub(drop, 24)), shr(drop, value)))
        }
    }
}
