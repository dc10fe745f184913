// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Chunk} from "../dispute/Chunk.sol";
import {Float32} from "./Float32.sol";

/// @title Gas of the arithmetic
/// @notice Measures the functions of the arithmetic libraries as they are compiled for the court: operands lie in
/// memory, and of a loop over them the same loop without the operation is taken off. What remains is the operation and
/// its internal call.
contract ArithmeticGas {
    /// @notice Gas of `length / 6` operations on pairs.
    function add(uint256[] memory words) external view returns (uint256 gas, uint256 digest) {
        uint256 place;
        uint256 end;
        uint256 free = _pairs(words);
        gas = gasleft();
        for ((place, end) = _ends(words); place < end; place = _next(place)) {
            (uint256 a, uint256 b, uint256 c, uint256 d) = _four(place);
            digest ^= Float32.add(a, b) ^ Float32.add(c, d);
        }
        gas = gas - gasleft() - free;
    }

    /// @notice Gas of multiplications.
    function mul(uint256[] memory words) external view returns (uint256 gas, uint256 digest) {
        uint256 place;
        uint256 end;
        uint256 free = _pairs(words);
        gas = gasleft();
        for ((place, end) = _ends(words); place < end; place = _next(place)) {
            (uint256 a, uint256 b, uint256 c, uint256 d) = _four(place);
            digest ^= Float32.mul(a, b) ^ Float32.mul(c, d);
        }
        gas = gas - gasleft() - free;
    }

    /// @notice Gas of divisions.
    function div(uint256[] memory words) external view returns (uint256 gas, uint256 digest) {
        uint256 place;
        uint256 end;
        uint256 free = _pairs(words);
        gas = gasleft();
        for ((place, end) = _ends(words); place < end; place = _next(place)) {
            (uint256 a, uint256 b, uint256 c, uint256 d) = _four(place);
            digest ^= Float32.div(a, b) ^ Float32.div(c, d);
        }
        gas = gas - gasleft() - free;
    }

    /// @notice Gas of square roots.
    function sqrt(uint256[] memory words) external view returns (uint256 gas, uint256 digest) {
        uint256 place;
        uint256 end;
        uint256 free = _pairs(words);
        gas = gasleft();
        for ((place, end) = _ends(words); place < end; place = _next(place)) {
            (uint256 a, uint256 b, uint256 c, uint256 d) = _four(place);
            digest ^= b ^ d ^ Float32.sqrt(a) ^ Float32.sqrt(c);
        }
        gas = gas - gasleft() - free;
    }

    /// @notice Gas of fused multiplications and additions; the third operand is the one of the next pair.
    function fma(uint256[] memory words) external view returns (uint256 gas, uint256 digest) {
        uint256 place;
        uint256 end;
        uint256 free = _pairs(words);
        gas = gasleft();
        for ((place, end) = _ends(words); place < end; place = _next(place)) {
            (uint256 a, uint256 b, uint256 c, uint256 d) = _four(place);
            digest ^= Float32.fma(a, b, c) ^ Float32.fma(b, c, d);
        }
        gas = gas - gasleft() - free;
    }

    /// @notice Gas of a chunk of a fold from 0 over little-endian words, and its result.
    function chunk(bytes calldata left, bytes calldata right) external view returns (uint256 gas, uint256 digest) {
        uint256 a;
        uint256 b;
        assembly ("memory-safe") {
            a := left.offset
            b := right.offset
        }
        gas = gasleft();
        digest = Chunk.fold(a, b, left.length / 4, 0);
        gas -= gasleft();
    }

    /// @dev Gas of the loop alone.
    function _pairs(uint256[] memory words) private view returns (uint256 gas) {
        uint256 place;
        uint256 end;
        uint256 digest;
        gas = gasleft();
        for ((place, end) = _ends(words); place < end; place = _next(place)) {
            (uint256 a, uint256 b, uint256 c, uint256 d) = _four(place);
            digest ^= a ^ b ^ c ^ d;
        }
        gas -= gasleft();
        assembly ("memory-safe") {
            mstore(0, digest) // or the loop would be empty
        }
    }

    function _ends(uint256[] memory words) private pure returns (uint256 place, uint256 end) {
        assembly ("memory-safe") {
            place := add(words, 32)
            end := add(place, mul(32, mload(words)))
        }
    }

    function _next(uint256 place) private pure returns (uint256) {
        unchecked {
            return place + 128;
        }
    }

    function _four(uint256 place) private pure returns (uint256 a, uint256 b, uint256 c, uint256 d) {
        assembly ("memory-safe") {
            a := mload(place)
            b := mload(add(place, 32))
            c := mload(add(place, 64))
            d := mload(add(place, 96))
        }
    }
}
