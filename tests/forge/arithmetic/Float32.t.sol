// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Float32} from "../../../contracts/arithmetic/Float32.sol";
import {Base} from "../Base.sol";
import {SlowFloat} from "./SlowFloat.sol";

/// @notice Every operation against the bit-by-bit one, on operands drawn to meet: close exponents, short significands,
/// edges.
/// forge-config: default.fuzz.runs = 2048
contract Float32Test is Base {
    using SlowFloat for SlowFloat.Number;

    uint256 private constant SIGN = 0x80000000;
    uint256 private constant ONE = 0x3f800000;
    uint256 private constant LEAST = 1;
    uint256 private constant GREATEST = 0x7f7fffff;

    /// @dev A finite word from 64 random bits. Kinds: any; exponent about that of `near`; few bits; subnormal; about an
    /// edge.
    function finite(uint256 random, uint256 near) private pure returns (uint256 word) {
        uint256 kind = (random >> 40) % 6;
        uint256 field = (random >> 23) % 255;
        uint256 fraction = random % 2 ** 23;
        if (kind == 1 || kind == 2) {
            field = bound(random >> 44, near < 30 ? 0 : near - 30, near > 224 ? 254 : near + 30);
        }
        if (kind == 2 || kind == 3) fraction = 2 ** (fraction % 23);
        if (kind == 4) field = 0;
        word = field * 2 ** 23 + fraction;
        if (kind == 5) word = [uint256(0), 1, 0x7fffff, 0x800000, ONE, 0x3f000000, 0x4b000000, GREATEST][random % 8];
        if ((random >> 63) % 2 == 1) word += SIGN;
    }

    function operands(uint256 random) private pure returns (uint256 a, uint256 b, uint256 c) {
        a = finite(random % 2 ** 64, 127);
        b = finite((random >> 64) % 2 ** 64, (a >> 23) % 256);
        // As often as not, c is where a * b is.
        uint256 field = ((a >> 23) % 256) + ((b >> 23) % 256);
        c = finite((random >> 128) % 2 ** 64, field < 127 ? 0 : field > 381 ? 254 : field - 127);
    }

    function testFuzz_add(uint256 random) public pure {
        (uint256 a, uint256 b,) = operands(random);
        vm.assertEq(Float32.add(a, b), SlowFloat.add(SlowFloat.decode(a), SlowFloat.decode(b)));
        vm.assertEq(Float32.sub(a, b), SlowFloat.add(SlowFloat.decode(a), SlowFloat.decode(b ^ SIGN)));
    }

    function testFuzz_add_of_neighbours(uint256 random, uint256 nudge) public pure {
        uint256 a = finite(random % 2 ** 64, 127);
        uint256 b = bound((a & ~SIGN) + bound(nudge, 0, 4), 0, GREATEST) | ((a & SIGN) ^ SIGN);
        vm.assertEq(Float32.add(a, b), SlowFloat.add(SlowFloat.decode(a), SlowFloat.decode(b)));
    }

    function testFuzz_mul(uint256 random) public pure {
        (uint256 a, uint256 b,) = operands(random);
        vm.assertEq(Float32.mul(a, b), SlowFloat.decode(a).multiply(SlowFloat.decode(b)).encode(false));
    }

    function testFuzz_div(uint256 random) public pure {
        (uint256 a, uint256 b,) = operands(random);
        if (b & ~SIGN == 0) b = LEAST;
        vm.assertEq(Float32.div(a, b), SlowFloat.decode(a).divide(SlowFloat.decode(b)));
    }

    function testFuzz_fma(uint256 random) public pure {
        (uint256 a, uint256 b, uint256 c) = operands(random);
        SlowFloat.Number memory product = SlowFloat.decode(a).multiply(SlowFloat.decode(b));
        vm.assertEq(Float32.fma(a, b, c), SlowFloat.add(product, SlowFloat.decode(c)));
    }

    function testFuzz_fma_that_cancels(uint256 random, uint256 nudge) public pure {
        (uint256 a, uint256 b,) = operands(random);
        SlowFloat.Number memory product = SlowFloat.decode(a).multiply(SlowFloat.decode(b));
        uint256 c = product.encode(false) ^ SIGN;
        c = bound((c & ~SIGN) + nudge % 3, 0, GREATEST) | (c & SIGN);
        vm.assertEq(Float32.fma(a, b, c), SlowFloat.add(product, SlowFloat.decode(c)));
    }

    function testFuzz_sqrt(uint256 random) public pure {
        uint256 a = finite(random % 2 ** 64, 127) & ~SIGN;
        vm.assertEq(Float32.sqrt(a), a == 0 ? 0 : SlowFloat.decode(a).squareRoot());
        vm.assertEq(Float32.sqrt(a | SIGN), a == 0 ? SIGN : Float32.NAN);
    }

    function testFuzz_rint_and_toInt(uint256 random) public pure {
        uint256 a = finite(random % 2 ** 64, 140);
        (uint256 whole, bool more) = SlowFloat.decode(a).floor();
        bool negative = a >= SIGN;
        uint256 limit = negative ? 2 ** 31 : 2 ** 31 - 1;
        uint256 magnitude = whole > limit ? limit : whole;
        vm.assertEq(Float32.toInt(a), negative ? (2 ** 32 - magnitude) % 2 ** 32 : magnitude);
        // Rounding a number with a fraction: twice the number, without its half, tells the side.
        (uint256 twice, bool beyond) =
            SlowFloat.Number(false, SlowFloat.decode(a).significand * 2, SlowFloat.decode(a).exponent).floor();
        if (more && twice % 2 == 1 && (beyond || whole % 2 == 1)) ++whole;
        uint256 expected = more ? SlowFloat.Number(negative, whole, 0).encode(false) : a;
        vm.assertEq(Float32.rint(a), expected);
    }

    function testFuzz_fromInt(uint32 random, uint8 shift) public pure {
        int256 value = int256(int32(random)) >> (shift % 32);
        uint256 magnitude = uint256(value < 0 ? -value : value);
        vm.assertEq(Float32.fromInt(uint32(uint256(value))), SlowFloat.Number(value < 0, magnitude, 0).encode(false));
    }

    function testFuzz_order(uint256 random) public pure {
        (uint256 a, uint256 b,) = operands(random);
        // The sign of the exact difference; no difference of two numbers rounds to zero.
        uint256 difference = SlowFloat.add(SlowFloat.decode(a), SlowFloat.decode(b ^ SIGN));
        bool equal = difference & ~SIGN == 0;
        vm.assertEq(Float32.eq(a, b), equal);
        vm.assertEq(Float32.lt(a, b), !equal && difference >= SIGN);
        vm.assertEq(Float32.le(a, b), equal || difference >= SIGN);
        if (!equal) {
            vm.assertEq(Float32.min(a, b), difference >= SIGN ? a : b);
            vm.assertEq(Float32.max(a, b), difference >= SIGN ? b : a);
        }
    }

    function testFuzz_nan_in_nan_out(uint256 random, uint32 payload) public pure {
        (uint256 a, uint256 b,) = operands(random);
        uint256 nan = 0x7f800001 + payload % 0x7fffff + (payload & SIGN);
        assertNaN(Float32.add(a, nan), Float32.add(nan, b));
        assertNaN(Float32.sub(a, nan), Float32.sub(nan, b));
        assertNaN(Float32.mul(a, nan), Float32.mul(nan, b));
        assertNaN(Float32.div(a, nan), Float32.div(nan, b));
        assertNaN(Float32.min(a, nan), Float32.min(nan, b));
        assertNaN(Float32.max(a, nan), Float32.max(nan, b));
        assertNaN(Float32.fma(a, b, nan), Float32.fma(a, nan, b));
        assertNaN(Float32.fma(nan, a, b), Float32.sqrt(nan));
        assertNaN(Float32.neg(nan), Float32.abs(nan));
        vm.assertEq(Float32.rint(nan), Float32.NAN);
        vm.assertEq(Float32.toInt(nan), 0);
        vm.assertFalse(Float32.eq(nan, nan) || Float32.lt(a, nan) || Float32.lt(nan, a));
        vm.assertFalse(Float32.le(nan, nan) || Float32.le(a, nan) || Float32.le(nan, a));
    }

    function test_infinities() public pure {
        uint256 inf = Float32.INF;
        vm.assertEq(Float32.add(inf, GREATEST | SIGN), inf);
        vm.assertEq(Float32.add(GREATEST, inf | SIGN), inf | SIGN);
        assertNaN(Float32.add(inf, inf | SIGN), Float32.sub(inf, inf));
        assertNaN(Float32.mul(inf, 0), Float32.mul(SIGN, inf));
        assertNaN(Float32.div(inf, inf), Float32.div(0, SIGN));
        vm.assertEq(Float32.div(ONE, SIGN), inf | SIGN);
        vm.assertEq(Float32.div(GREATEST, inf | SIGN), SIGN);
        vm.assertEq(Float32.mul(GREATEST, GREATEST | SIGN), inf | SIGN);
        // A product beyond the range is still finite beside an infinity.
        vm.assertEq(Float32.fma(GREATEST, GREATEST, inf | SIGN), inf | SIGN);
        assertNaN(Float32.fma(inf, ONE, inf | SIGN), Float32.fma(inf, 0, ONE));
        vm.assertEq(Float32.fma(inf, ONE, GREATEST | SIGN), inf);
        vm.assertEq(Float32.sqrt(inf), inf);
        vm.assertEq(Float32.sqrt(inf | SIGN), Float32.NAN);
        vm.assertEq(Float32.toInt(inf), 0x7fffffff);
        vm.assertEq(Float32.toInt(inf | SIGN), 0x80000000);
        vm.assertEq(Float32.rint(inf | SIGN), inf | SIGN);
        vm.assertTrue(Float32.lt(GREATEST, inf) && Float32.lt(inf | SIGN, GREATEST | SIGN) && Float32.eq(inf, inf));
    }

    function test_signs_of_zero() public pure {
        vm.assertEq(Float32.add(0, SIGN), 0);
        vm.assertEq(Float32.add(SIGN, SIGN), SIGN);
        vm.assertEq(Float32.sub(SIGN, 0), SIGN);
        vm.assertEq(Float32.sub(ONE, ONE), 0);
        vm.assertEq(Float32.mul(SIGN, ONE), SIGN);
        vm.assertEq(Float32.fma(ONE, SIGN, SIGN), SIGN);
        vm.assertEq(Float32.fma(ONE, SIGN, 0), 0);
        vm.assertEq(Float32.fma(ONE, 0, SIGN), 0);
        vm.assertEq(Float32.fma(0x71800000, ONE, 0xf1800000), 0); // 2^100 - 2^100, beyond the short way
        vm.assertEq(Float32.fma(LEAST, LEAST | SIGN, 0), SIGN);
        vm.assertEq(Float32.fma(ONE, ONE, ONE | SIGN), 0);
        vm.assertEq(Float32.min(0, SIGN), SIGN);
        vm.assertEq(Float32.max(SIGN, 0), 0);
        vm.assertEq(Float32.rint(0xbf000000), SIGN);
        vm.assertTrue(Float32.eq(0, SIGN) && Float32.le(0, SIGN) && !Float32.lt(SIGN, 0));
    }

    /// @dev Powers of two, and what is just below them, put a leading bit into every place that rounding has to find.
    function test_every_leading_bit() public pure {
        for (uint256 i = 0; i < 23; ++i) {
            for (uint256 field = 1; field < 255; field += 11) {
                (uint256 a, uint256 b) = (2 ** i, field * 2 ** 23);
                SlowFloat.Number memory product = SlowFloat.decode(a).multiply(SlowFloat.decode(b));
                vm.assertEq(Float32.mul(a, b), product.encode(false));
                vm.assertEq(Float32.div(b, a), SlowFloat.decode(b).divide(SlowFloat.decode(a)));
                vm.assertEq(Float32.fma(a, b, LEAST), SlowFloat.add(product, SlowFloat.decode(LEAST)));
                vm.assertEq(Float32.fma(a, b, LEAST | SIGN), SlowFloat.add(product, SlowFloat.decode(LEAST | SIGN)));
            }
        }
    }

    /// @dev The fast paths end where results leave the normal range, operands are 26 places apart, or much cancels.
    function test_the_ends_of_the_fast_paths() public pure {
        uint256[4] memory fractions = [uint256(0), 1, 0x400000, 0x7fffff];
        uint256[8] memory fields = [uint256(0), 1, 2, 127, 128, 252, 253, 254];
        for (uint256 i = 0; i < 32; ++i) {
            uint256 a = fields[i / 4] * 2 ** 23 + fractions[i % 4];
            for (uint256 j = 0; j < 32; ++j) {
                uint256 b = fields[j / 4] * 2 ** 23 + fractions[j % 4];
                SlowFloat.Number memory product = SlowFloat.decode(a).multiply(SlowFloat.decode(b));
                vm.assertEq(Float32.mul(a, b), product.encode(false));
                if (b != 0) vm.assertEq(Float32.div(a, b), SlowFloat.decode(a).divide(SlowFloat.decode(b)));
                vm.assertEq(Float32.sub(a, b), SlowFloat.add(SlowFloat.decode(a), SlowFloat.decode(b | SIGN)));
            }
            for (uint256 apart = 0; apart < 80; ++apart) {
                uint256 b = ONE + fractions[apart % 4];
                uint256 c = (153 - apart) * 2 ** 23 + fractions[i % 4];
                SlowFloat.Number memory product =
                    SlowFloat.decode(ONE + fractions[i / 4 % 4]).multiply(SlowFloat.decode(b));
                if (i > 15) c |= SIGN;
                vm.assertEq(Float32.fma(ONE + fractions[i / 4 % 4], b, c), SlowFloat.add(product, SlowFloat.decode(c)));
                vm.assertEq(Float32.add(b, c), SlowFloat.add(SlowFloat.decode(b), SlowFloat.decode(c)));
            }
        }
    }

    /// @dev Equal terms as large as the short ways of `add` and `fma` take them, and beyond, where a carry would be the
    /// sign.
    function test_the_greatest_of_the_fast_paths() public pure {
        for (uint256 field = 228; field < 234; ++field) {
            uint256 a = field * 2 ** 23 + 0x7fffff;
            vm.assertEq(Float32.add(a, a), a + 2 ** 23);
            vm.assertEq(Float32.add(a | SIGN, a | SIGN), a + 2 ** 23 + SIGN);
            uint256 b = (field - 65) * 2 ** 23 + 0x7fffff;
            uint256 c = (field - 24) * 2 ** 23 + 0x7fffff;
            SlowFloat.Number memory product = SlowFloat.decode(0x53ffffff).multiply(SlowFloat.decode(b));
            vm.assertEq(Float32.fma(0x53ffffff, b, c), SlowFloat.add(product, SlowFloat.decode(c)));
        }
    }

    /// @dev Half of an odd number less a normal one: in the middle of two subnormal numbers, of which the lower is even
    /// or odd.
    function test_fma_in_the_middle_of_subnormal_numbers() public pure {
        for (uint256 i = 0; i < 64; ++i) {
            (uint256 b, uint256 c) = (0x00800000 + i % 8, (0x00800000 + i / 8) | SIGN);
            SlowFloat.Number memory product = SlowFloat.decode(0x3f000000).multiply(SlowFloat.decode(b));
            vm.assertEq(Float32.fma(0x3f000000, b, c), SlowFloat.add(product, SlowFloat.decode(c)));
        }
    }

    /// @dev A product in the middle of two numbers, and the least number, 27 places below it, on either side.
    function test_fma_decided_by_the_least_number() public pure {
        for (uint256 i = 0; i < 4; ++i) {
            (uint256 a, uint256 b) = (0x3f800001 + 2 * i, 0x19c00000);
            SlowFloat.Number memory product = SlowFloat.decode(a).multiply(SlowFloat.decode(b));
            vm.assertEq(Float32.fma(a, b, LEAST), SlowFloat.add(product, SlowFloat.decode(LEAST)));
            vm.assertEq(Float32.fma(a, b, LEAST | SIGN), SlowFloat.add(product, SlowFloat.decode(LEAST | SIGN)));
        }
    }

    /// @dev Numbers worked out by hand, so that a mistake shared with the slow implementation would show.
    function test_rounding_by_hand() public pure {
        vm.assertEq(Float32.add(ONE, 0x33800000), ONE); // 1 + 2^-24: a tie, to even
        vm.assertEq(Float32.add(ONE + 1, 0x33800000), ONE + 2); // a tie, to even, upward
        vm.assertEq(Float32.add(ONE, 0x33800001), ONE + 1);
        vm.assertEq(Float32.sub(ONE, 0x33000000), ONE); // 1 - 2^-25: a tie in the binade below
        vm.assertEq(Float32.sub(ONE, 0x33000001), ONE - 1);
        vm.assertEq(Float32.add(0x007fffff, LEAST), 0x00800000);
        vm.assertEq(Float32.sub(0x00800000, LEAST), 0x007fffff);
        vm.assertEq(Float32.mul(LEAST, 0x3f000000), 0); // half of the least: a tie, to zero
        vm.assertEq(Float32.mul(LEAST, 0x3f000001), LEAST);
        vm.assertEq(Float32.mul(0x1d000000, 0x1d000000), 0x00000800); // 2^-69 squared is 2^-138
        vm.assertEq(Float32.div(ONE, 0x40400000), 0x3eaaaaab);
        // The quotient has 28 bits before the remainder: the last four, 1001, say more than a half only with the last
        // one.
        vm.assertEq(Float32.div(LEAST, 0x0a7ffa57), SlowFloat.decode(LEAST).divide(SlowFloat.decode(0x0a7ffa57)));
        vm.assertEq(Float32.sqrt(0x40000000), 0x3fb504f3);
        vm.assertEq(Float32.sqrt(LEAST), 0x1a3504f3); // 2^-74.5
        vm.assertEq(Float32.fma(ONE + 1, ONE - 1, ONE | SIGN), 0x337ffffe); // what `mul` rounds away
        vm.assertEq(Float32.add(GREATEST, 0x73000000), Float32.INF); // half a last place above the greatest
        vm.assertEq(Float32.add(GREATEST, 0x72ffffff), GREATEST);
        vm.assertEq(Float32.fromInt(0x01000001), 0x4b800000);
        vm.assertEq(Float32.fromInt(0x80000000), 0xcf000000);
        vm.assertEq(Float32.toInt(0xcf000000), 0x80000000);
        vm.assertEq(Float32.toInt(0xbf7fffff), 0);
        vm.assertEq(Float32.rint(0x40200000), 0x40000000); // 2.5
        vm.assertEq(Float32.rint(0x40600000), 0x40800000); // 3.5
    }

    function assertNaN(uint256 one, uint256 other) private pure {
        vm.assertEq(one, Float32.NAN);
        vm.assertEq(other, Float32.NAN);
    }
}
