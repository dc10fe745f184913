// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Distance} from "../../../contracts/dispute/Distance.sol";
import {Base} from "../Base.sol";
import {NaiveTree} from "../commitments/NaiveTree.sol";

contract DistanceHarness {
    function add(uint256 a, uint256 b) external pure returns (uint256) {
        return Distance.add(a, b);
    }

    function ofLeaves(bytes calldata x, bytes calldata y, uint256 words, uint256 dtype, uint256 scale)
        external
        pure
        returns (uint256)
    {
        return Distance.ofLeaves(x, y, words, dtype, scale);
    }
}

contract DistanceTest is Base {
    uint256 private constant INFINITE = type(uint256).max;
    DistanceHarness private harness = new DistanceHarness();

    /// @dev The value of a word as a rational: `numerator / 2^149`, exact for every finite word; then trunc(x * 2^(40 +
    /// scale)).
    function _naive(uint32 x, uint256 scale) private pure returns (bool finite, int256 fix) {
        uint256 exponent = (x >> 23) & 0xff;
        // From 2^73 on; the numerator of the rest fits.
        if (exponent >= 200) return (false, 0);
        int256 numerator = exponent == 0
            ? int256(uint256(x & 0x7fffff))
            : int256(uint256((x & 0x7fffff) + 0x800000)) << (exponent - 1);
        if (numerator >= int256(1) << (23 - scale + 149)) return (false, 0);
        // Solidity's division truncates toward zero, as trunc does.
        if (x >> 31 == 1) numerator = -numerator;
        return (true, numerator / (int256(1) << (149 - 40 - scale)));
    }

    function _naiveDistance(uint32 x, uint32 y, uint256 scale) private pure returns (uint256) {
        if (x == y && x & 0x7fffffff <= 0x7f800000) return 0;
        (bool a, int256 i) = _naive(x, scale);
        (bool b, int256 j) = _naive(y, scale);
        if (!a || !b) return INFINITE;
        return uint256((i - j) * (i - j));
    }

    function testFuzz_word_against_rationals(uint32 x, uint32 y, uint256 scale) public pure {
        scale = bound(scale, 0, 23);
        vm.assertEq(Distance.ofWords(x, y, 1, scale), _naiveDistance(x, y, scale));
    }

    /// @dev Uniform words are mostly huge or tiny: these lie around the interesting exponents.
    function testFuzz_word_near_the_limits(uint32 x, uint32 y, uint8 e, uint8 f, uint256 scale) public pure {
        scale = bound(scale, 0, 23);
        x = (x & 0x807fffff) | (uint32(bound(e, 80, 152)) << 23);
        y = (y & 0x807fffff) | (uint32(bound(f, 80, 152)) << 23);
        vm.assertEq(Distance.ofWords(x, y, 1, scale), _naiveDistance(x, y, scale));
    }

    function test_corner_words() public pure {
        uint32[14] memory words = [
            uint32(0),
            0x80000000,
            1,
            0x80000001,
            0x007fffff,
            0x00800000,
            0x3f800000,
            0xbf800000,
            0x4affffff,
            0x4b000000,
            0xcb000000,
            0x7f7fffff,
            0x7f800000,
            0x7fc00000
        ];
        for (uint256 i = 0; i < words.length; i++) {
            for (uint256 j = 0; j < words.length; j++) {
                for (uint256 scale = 0; scale <= 23; scale++) {
                    vm.assertEq(
                        Distance.ofWords(words[i], words[j], 1, scale), _naiveDistance(words[i], words[j], scale)
                    );
                }
            }
        }
        vm.assertEq(Distance.ofWords(0x7fc00000, 0x7fc00000, 1, 0), INFINITE);
        vm.assertEq(Distance.ofWords(0x4b000000, 0x4b000000, 1, 0), 0);
        vm.assertEq(Distance.ofWords(0x4b000000, 0x4b000001, 1, 0), INFINITE);
        vm.assertEq(Distance.ofWords(0xff800000, 0xff800000, 1, 0), 0);
        vm.assertEq(Distance.ofWords(0xff800000, 0x7f800000, 1, 0), INFINITE);
        vm.assertEq(Distance.ofWords(0xff800001, 0xff800001, 1, 0), INFINITE);
        vm.assertEq(Distance.ofWords(0x3f800000, 0, 1, 0), 2 ** 80);
        vm.assertEq(Distance.ofWords(0x3f800000, 0, 1, 22), 2 ** 124);
        vm.assertEq(Distance.ofWords(0x3f800000, 0, 1, 23), INFINITE);
    }

    function testFuzz_integers_are_equal_or_not(uint32 x, uint32 y) public pure {
        vm.assertEq(Distance.ofWords(x, y, 2, 0), x == y ? 0 : 2 ** 160);
        vm.assertEq(Distance.ofWords(x, x, 2, 23), 0);
    }

    function testFuzz_integers_that_differ_are_counted(uint256 seed, uint256 words) public view {
        words = bound(words, 1, 64);
        (uint32[] memory x, uint32[] memory y) = (new uint32[](64), new uint32[](64));
        uint256 unequal = 0;
        for (uint256 i = 0; i < 64; i++) {
            (x[i], y[i]) = (uint32(seed >> i) & 1, uint32(seed >> (64 + i)) & 1);
            if (i < words && x[i] != y[i]) unequal++;
        }
        vm.assertEq(harness.ofLeaves(NaiveTree.leaf(x, 0), NaiveTree.leaf(y, 0), words, 2, 0), unequal * 2 ** 160);
    }

    function testFuzz_leaf_is_the_sum_of_its_words(uint256 seed, uint256 words, uint256 scale) public view {
        scale = bound(scale, 0, 23);
        words = bound(words, 1, 64);
        (uint32[] memory x, uint32[] memory y) = (new uint32[](64), new uint32[](64));
        uint256 expected = 0;
        for (uint256 i = 0; i < 64; i++) {
            // Exponents 64 to 127 below and at 1: all finite; sometimes one word is not.
            uint256 r = uint256(keccak256(abi.encode(seed, i)));
            x[i] = uint32(r) & 0xbfffffff;
            y[i] = uint32(r >> 32) & 0xbfffffff;
            if (i == seed % 128) x[i] = 0xff800000;
            if (i < words && expected != INFINITE) {
                uint256 d = _naiveDistance(x[i], y[i], scale);
                expected = d == INFINITE ? INFINITE : expected + d;
            }
        }
        vm.assertEq(harness.ofLeaves(NaiveTree.leaf(x, 0), NaiveTree.leaf(y, 0), words, 1, scale), expected);
    }

    function testFuzz_addition_saturates(uint256 a, uint256 b) public view {
        uint256 limit = 2 ** 191;
        bool finite = a < limit && b < limit && a + b < limit;
        vm.assertEq(harness.add(a, b), finite ? a + b : INFINITE);
    }

    function test_addition_at_the_limit() public view {
        vm.assertEq(harness.add(2 ** 191 - 2, 1), 2 ** 191 - 1);
        vm.assertEq(harness.add(2 ** 191 - 1, 1), INFINITE);
        vm.assertEq(harness.add(2 ** 191 - 1, 0), 2 ** 191 - 1);
        vm.assertEq(harness.add(INFINITE, INFINITE), INFINITE);
        // What would wrap to a small number.
        vm.assertEq(harness.add(INFINITE, 1), INFINITE);
        vm.assertEq(harness.add(1, INFINITE), INFINITE);
        vm.assertEq(harness.add(0, 2 ** 191), INFINITE);
    }
}
