// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Float32} from "../../../contracts/arithmetic/Float32.sol";
import {Base} from "../Base.sol";

interface IArithmeticGas {
    function add(uint256[] memory words) external view returns (uint256 gas, uint256 digest);
    function mul(uint256[] memory words) external view returns (uint256 gas, uint256 digest);
    function div(uint256[] memory words) external view returns (uint256 gas, uint256 digest);
    function sqrt(uint256[] memory words) external view returns (uint256 gas, uint256 digest);
    function fma(uint256[] memory words) external view returns (uint256 gas, uint256 digest);
    function chunk(bytes calldata left, bytes calldata right) external view returns (uint256 gas, uint256 digest);
}

/// @notice What is measured is the operation, of all words: results go into a digest. How much gas it is:
/// tests/arithmetic/test_court_arithmetic.py.
contract ArithmeticMeterTest is Base {
    /// @dev By name: the contract is compiled with settings of its own.
    IArithmeticGas private meter = IArithmeticGas(vm.deployCode("ArithmeticGas.sol:ArithmeticGas"));

    /// @dev 1.0, 1.0 + 1 ulp, ... in two rows of four.
    function _words() private pure returns (uint256[] memory words) {
        words = new uint256[](8);
        for (uint256 i = 0; i < 8; i++) {
            words[i] = 0x3f800000 + 0x12345 * i * i;
        }
    }

    function _check(uint256 gas, uint256 digest, uint256 expected) private pure {
        vm.assertEq(digest, expected);
        vm.assertGt(gas, 0);
        vm.assertLt(gas, 100_000);
    }

    function test_digests_and_gas() public view {
        uint256[] memory w = _words();
        uint256[5] memory expected;
        for (uint256 i = 0; i < 8; i += 4) {
            (uint256 a, uint256 b, uint256 c, uint256 d) = (w[i], w[i + 1], w[i + 2], w[i + 3]);
            expected[0] ^= Float32.add(a, b) ^ Float32.add(c, d);
            expected[1] ^= Float32.mul(a, b) ^ Float32.mul(c, d);
            expected[2] ^= Float32.div(a, b) ^ Float32.div(c, d);
            expected[3] ^= b ^ d ^ Float32.sqrt(a) ^ Float32.sqrt(c);
            expected[4] ^= Float32.fma(a, b, c) ^ Float32.fma(b, c, d);
        }
        (uint256 gas, uint256 digest) = meter.add(w);
        _check(gas, digest, expected[0]);
        (gas, digest) = meter.mul(w);
        _check(gas, digest, expected[1]);
        (gas, digest) = meter.div(w);
        _check(gas, digest, expected[2]);
        (gas, digest) = meter.sqrt(w);
        _check(gas, digest, expected[3]);
        (gas, digest) = meter.fma(w);
        _check(gas, digest, expected[4]);
    }

    function test_chunk() public view {
        uint256[] memory w = _words();
        bytes memory left;
        bytes memory right;
        uint256 expected = 0;
        for (uint256 i = 0; i < 8; i++) {
            (left, right) = (abi.encodePacked(left, _little(w[i])), abi.encodePacked(right, _little(w[7 - i])));
            expected = Float32.fma(w[i], w[7 - i], expected);
        }
        (uint256 gas, uint256 digest) = meter.chunk(left, right);
        _check(gas, digest, expected);
    }

    function _little(uint256 word) private pure returns (bytes memory) {
        return abi.encodePacked(uint8(word), uint8(word >> 8), uint8(word >> 16), uint8(word >> 24));
    }
}
