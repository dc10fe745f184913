// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Float32} from "../../../contracts/arithmetic/Float32.sol";
import {Base} from "../Base.sol";
import {ArithmeticHarness} from "./ArithmeticHarness.sol";

/// @notice Chains against repeated `Float32.fma`, and by hand. Whole batches: tests/arithmetic/test_fma_chain.py.
contract FmaChainTest is Base {
    uint256 private constant SIGN = 0x80000000;
    uint256 private constant ONE = 0x3f800000;

    ArithmeticHarness private harness;

    function setUp() public {
        harness = new ArithmeticHarness();
    }

    function testFuzz_chain(uint256 random, uint32 start) public view {
        uint256 count = random % 65;
        uint256[] memory a = new uint256[](count);
        uint256[] memory b = new uint256[](count);
        for (uint256 i = 0; i < count; ++i) {
            (a[i], b[i]) = (word(random, 2 * i), word(random, 2 * i + 1));
        }
        check(start, a, b);
    }

    /// @dev One term of a block is special, and its place changes.
    function test_a_special_term_at_every_place() public view {
        uint256[9] memory special =
            [uint256(0), SIGN, 1, 0x7fffff, 0x25ffffff, 0x7e800000, 0x7f800000, 0xff800000, 0x7fc00001];
        for (uint256 i = 0; i < 9; ++i) {
            for (uint256 place = 0; place < 17; ++place) {
                (uint256[] memory a, uint256[] memory b) = (ones(17), ones(17));
                a[place] = special[i];
                check(ONE, a, b);
                b[place] = 0;
                check(SIGN, a, b);
                check(0x7f800000, a, b);
            }
        }
    }

    /// @dev -0 stays while all products are -0; then the chain is +0.
    function test_signs_of_zero() public view {
        (uint256[] memory a, uint256[] memory b) = (new uint256[](24), ones(24));
        for (uint256 i = 0; i < 24; ++i) {
            a[i] = SIGN;
        }
        vm.assertEq(chain(SIGN, a, b), SIGN);
        vm.assertEq(chain(0, a, b), 0);
        a[20] = 0;
        vm.assertEq(chain(SIGN, a, b), 0);
        (a, b) = (ones(8), ones(8));
        a[7] = ONE | SIGN;
        vm.assertEq(chain(0xc0c00000, a, b), 0); // -6 + 7 - 1
    }

    function test_no_terms() public view {
        vm.assertEq(chain(0x7fc00001, new uint256[](0), new uint256[](0)), 0x7fc00001);
    }

    /// @dev Whatever gas it gets, a chain runs out of it or is right.
    function test_gas_never_changes_a_result() public view {
        (uint256[] memory a, uint256[] memory b) = (ones(19), ones(19));
        a[11] = 0x00000001; // the second block goes term by term
        b[3] = 0;
        bytes memory input = abi.encodeCall(ArithmeticHarness.chain, (uint32(ONE), packed(a), packed(b)));
        bool succeeded;
        for (uint256 gas = 0; gas <= 16_000; gas += 3) {
            (bool success, bytes memory output) = address(harness).staticcall{gas: gas}(input);
            vm.assertTrue(success || !succeeded);
            succeeded = success;
            if (success) vm.assertEq(abi.decode(output, (uint256)), 0x41900000); // 18
            else vm.assertEq(output.length, 0);
        }
        vm.assertTrue(succeeded);
    }

    function check(uint256 start, uint256[] memory a, uint256[] memory b) private view {
        uint256 acc = start;
        for (uint256 i = 0; i < a.length; ++i) {
            acc = Float32.fma(a[i], b[i], acc);
        }
        vm.assertEq(chain(start, a, b), acc);
    }

    function chain(uint256 start, uint256[] memory a, uint256[] memory b) private view returns (uint256) {
        return harness.chain(uint32(start), packed(a), packed(b));
    }

    /// @dev Little-endian bytes.
    function packed(uint256[] memory words) private pure returns (bytes memory data) {
        data = new bytes(4 * words.length);
        for (uint256 i = 0; i < data.length; ++i) {
            data[i] = bytes1(uint8(words[i / 4] >> (8 * (i % 4))));
        }
    }

    function ones(uint256 count) private pure returns (uint256[] memory words) {
        words = new uint256[](count);
        for (uint256 i = 0; i < count; ++i) {
            words[i] = ONE;
        }
    }

    /// @dev Near 1, but one in 32 is zero and one in 64 anything.
    function word(uint256 random, uint256 i) private pure returns (uint256 result) {
        result = uint256(keccak256(abi.encode(random, i)));
        uint256 kind = (result >> 64) % 64;
        if (kind < 2) return (result % 2) * SIGN;
        if (kind > 2) return (result % 2) * SIGN + (117 + (result >> 32) % 20) * 2 ** 23 + (result >> 128) % 2 ** 23;
        return result % 2 ** 32;
    }
}
