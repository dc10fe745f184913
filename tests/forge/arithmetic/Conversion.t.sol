// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Conversion} from "../../../contracts/arithmetic/Conversion.sol";
import {Float32} from "../../../contracts/arithmetic/Float32.sol";
import {Base} from "../Base.sol";
import {SlowFloat} from "./SlowFloat.sol";

/// @notice Every conversion against the bit-by-bit arithmetic, on operands drawn to meet: edges of the ranges, ties,
/// short numbers.
/// forge-config: default.fuzz.runs = 2048
contract ConversionTest is Base {
    using SlowFloat for SlowFloat.Number;

    uint256 private constant SIGN = 0x80000000;

    /// @dev A finite number whose exponent is in [low, high].
    function number(uint256 random, uint256 low, uint256 high) private pure returns (uint256) {
        uint256 fraction = random % 2 ** 23;
        uint256 kind = (random >> 23) % 4;
        if (kind == 0) fraction = 2 ** (fraction % 23);
        if (kind == 1) fraction = (2 ** 23 - 1) >> (fraction % 23);
        return ((random >> 25) % 2) * SIGN + bound(random >> 32, low, high) * 2 ** 23 + fraction;
    }

    function testFuzz_toU32(uint256 random) public pure {
        uint256 a = number(random, 0, 254);
        (uint256 whole,) = clamped(a).floor();
        vm.assertEq(Conversion.toU32(a), a >= SIGN ? 0 : whole >= 2 ** 32 ? 2 ** 32 - 1 : whole);
        a = number(random, 120, 162);
        (whole,) = clamped(a).floor();
        vm.assertEq(Conversion.toU32(a), a >= SIGN ? 0 : whole >= 2 ** 32 ? 2 ** 32 - 1 : whole);
    }

    function testFuzz_toI64(uint256 random) public pure {
        uint256 a = number(random, (random >> 200) % 2 == 0 ? 0 : 120, (random >> 201) % 2 == 0 ? 254 : 192);
        (uint256 whole,) = clamped(a).floor();
        uint256 limit = a >= SIGN ? 2 ** 63 : 2 ** 63 - 1;
        if (whole > limit) whole = limit;
        vm.assertEq(Conversion.toI64(a), a >= SIGN ? (2 ** 64 - whole) % 2 ** 64 : whole);
    }

    function testFuzz_fromU32(uint32 a, uint8 shift) public pure {
        vm.assertEq(Conversion.fromU32(a), SlowFloat.Number(false, a, 0).encode(false));
        vm.assertEq(Conversion.fromU32(a >> (shift % 32)), SlowFloat.Number(false, a >> (shift % 32), 0).encode(false));
    }

    function testFuzz_fromI64(uint64 random, uint8 shift, uint8 kind) public pure {
        int64 a = int64(random) >> (shift % 64);
        if (kind % 3 == 0) a = int64(uint64(int64(uint64(2) ** (shift % 64))) - 1 + (random % 3)); // about a power of two
        uint256 size = a < 0 ? uint256(-int256(a)) : uint256(int256(a));
        vm.assertEq(Conversion.fromI64(uint64(a)), SlowFloat.Number(a < 0, size, 0).encode(false));
    }

    /// @dev The upper half of the word is a number with 8 bits less; two neighbours and the distances to them say which
    /// is nearer.
    function testFuzz_toBf16(uint256 random) public pure {
        uint256 a = number(random, 0, 254);
        uint256 below = (a >> 16) << 16;
        uint256 rest = a - below;
        bool up = rest > 2 ** 15 || (rest == 2 ** 15 && (below >> 16) % 2 == 1);
        vm.assertEq(Conversion.toBf16(a), up ? below + 2 ** 16 : below);
    }

    /// @dev In units of 2^-149 every number is an integer, and f16 numbers are multiples of 2^125 at least.
    function testFuzz_toF16(uint256 random) public pure {
        uint256 a = number(random, (random >> 200) % 4 == 0 ? 0 : 100, (random >> 202) % 4 == 0 ? 254 : 144);
        SlowFloat.Number memory exact = SlowFloat.decode(a);
        uint256 result;
        if (exact.exponent > 0) {
            result = Float32.INF;
        } else {
            uint256 units = exact.significand * 2 ** uint256(exact.exponent + 149);
            uint256 place = 2 ** 125;
            while (units / place >= 2 ** 11) place *= 2;
            uint256 multiple = units / place;
            uint256 rest = units % place;
            if (rest > place / 2 || (rest == place / 2 && multiple % 2 == 1)) ++multiple;
            // 65504 = 2047 * 2^5
            result = multiple * place > 2047 * 2 ** 154
                ? Float32.INF
                : SlowFloat.Number(false, multiple * (place / 2 ** 125), -24).encode(false);
        }
        vm.assertEq(Conversion.toF16(a), result + (a & SIGN));
    }

    function testFuzz_nan(uint256 payload) public pure {
        uint256 a = bound(payload, 0x7f800001, 0x7fffffff) + ((payload >> 128) % 2) * SIGN;
        vm.assertEq(Conversion.toU32(a), 0);
        vm.assertEq(Conversion.toI64(a), 0);
        vm.assertEq(Conversion.toBf16(a), Float32.NAN);
        vm.assertEq(Conversion.toF16(a), Float32.NAN);
    }

    function test_edges() public pure {
        uint256 inf = Float32.INF;
        vm.assertEq(Conversion.toU32(inf), 2 ** 32 - 1);
        vm.assertEq(Conversion.toU32(inf | SIGN), 0);
        vm.assertEq(Conversion.toU32(SIGN), 0);
        vm.assertEq(Conversion.toU32(0x4f800000), 2 ** 32 - 1);
        vm.assertEq(Conversion.toU32(0x4f7fffff), 2 ** 32 - 2 ** 8);
        vm.assertEq(Conversion.toI64(inf), 2 ** 63 - 1);
        vm.assertEq(Conversion.toI64(inf | SIGN), 2 ** 63);
        vm.assertEq(Conversion.toI64(0x5f000000), 2 ** 63 - 1);
        vm.assertEq(Conversion.toI64(0xdf000000), 2 ** 63);
        vm.assertEq(Conversion.toI64(0x5effffff), 2 ** 63 - 2 ** 39);
        vm.assertEq(Conversion.toI64(SIGN), 0);
        vm.assertEq(Conversion.fromI64(0), 0);
        vm.assertEq(Conversion.fromI64(2 ** 63), 0xdf000000);
        vm.assertEq(Conversion.fromI64(2 ** 63 - 1), 0x5f000000);
        vm.assertEq(Conversion.fromI64(2 ** 64 - 1), 0xbf800000);
        vm.assertEq(Conversion.fromU32(2 ** 32 - 1), 0x4f800000);
        vm.assertEq(Conversion.toBf16(0x7f7f7fff), 0x7f7f0000);
        vm.assertEq(Conversion.toBf16(0x7f7f8000), inf);
        vm.assertEq(Conversion.toBf16(0x80008000), SIGN); // a tie between -0 and the least subnormal
        vm.assertEq(Conversion.toF16(0x477fefff), 0x477fe000);
        vm.assertEq(Conversion.toF16(0xc77ff000), inf | SIGN);
        vm.assertEq(Conversion.toF16(0x33000000), 0);
        vm.assertEq(Conversion.toF16(0xb3000001), 0xb3800000);
        vm.assertEq(Conversion.toF16(0x387fdfff), 0x387fc000);
        vm.assertEq(Conversion.toF16(0x387fe000), 0x38800000);
    }

    /// @dev Each length once with one bit and once with all: where the search for the first bit may go wrong.
    function test_every_length() public pure {
        for (uint256 bits = 0; bits < 64; ++bits) {
            uint256 power = 2 ** bits;
            vm.assertEq(Conversion.fromI64(power), (127 + bits) * 2 ** 23 + (bits == 63 ? SIGN : 0));
            vm.assertEq(Conversion.fromI64(2 ** 64 - power), (127 + bits) * 2 ** 23 + SIGN);
            vm.assertEq(Conversion.fromI64(power - 1), SlowFloat.Number(false, power - 1, 0).encode(false));
            if (bits < 32) vm.assertEq(Conversion.fromU32(power), (127 + bits) * 2 ** 23);
        }
    }

    /// @dev Numbers beyond 2^100 as 2^100 of the same sign: more than any integer here.
    function clamped(uint256 a) private pure returns (SlowFloat.Number memory) {
        uint256 magnitude = a % SIGN;
        return SlowFloat.decode(magnitude > 0x71800000 ? 0x71800000 : magnitude);
    }
}
