// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {StoredBytes} from "./StoredBytes.sol";

/// @title VectorHash
/// @notice The hash of a vector in exact circuits, computed by the chain: a Poseidon sponge of width 3 over ten
/// integers of 24 bits at a time (eprint 2019/458; docs/spec/zk.md, "Hashes").
contract VectorHash {
    /// @dev Order of the field.
    uint256 private constant R = 21888242871839275222246405745257275088548364400416034343698204186575808495617;
    /// @dev keccak-256 of 65 rounds of three constants, and the nine numbers of the matrix.
    bytes32 private constant CONSTANTS = 0x71feb613ee90092dfb39db92ea6de277c3062752678a67d53b9ca036d4e45a71;
    uint256 private constant ROUNDS = 65;
    uint256 private constant HALF = 4;
    uint256 private constant PARTIAL = 57;
    /// @dev Integers in one element, and bits of one.
    uint256 private constant PACKED = 10;
    uint256 private constant WORD_BITS = 24;
    /// @dev Account that holds the constants.
    address private immutable _constants;

    /// @notice The constants are not those of the permutation.
    error WrongConstants();
    /// @notice Integer `index` has more than 24 bits.
    error TooLarge(uint256 index);

    /// @param constants Of the permutation; a table of 6.5 kB that the code would not have room for.
    constructor(bytes memory constants) {
        if (keccak256(constants) != CONSTANTS) revert WrongConstants();
        _constants = StoredBytes.store(constants);
    }

    /// @notice The hash of integers from -2^23 to 2^23 - 1.
    function hash(int256[] memory vector) external view returns (bytes32) {
        bytes memory table = StoredBytes.load(_constants);
        uint256[3] memory state = [uint256(0), 0, vector.length];
        for (uint256 begin = 0; begin < vector.length; begin += 2 * PACKED) {
            state[0] = addmod(state[0], _element(vector, begin), R);
            state[1] = addmod(state[1], _element(vector, begin + PACKED), R);
            _permute(state, table);
        }
        return bytes32(state[0]);
    }

    /// @dev Up to ten integers, the first one lowest; zero past the end.
    function _element(int256[] memory vector, uint256 begin) private pure returns (uint256 element) {
        uint256 end = begin + PACKED < vector.length ? begin + PACKED : vector.length;
        for (uint256 i = end; i > begin; --i) {
            uint256 word = uint256(vector[i - 1] + int256(1 << (WORD_BITS - 1)));
            if (word >> WORD_BITS != 0) revert TooLarge(i - 1);
            element = element << WORD_BITS | word;
        }
    }

    function _permute(uint256[3] memory state, bytes memory table) private pure {
        (uint256 a, uint256 b, uint256 c) = (state[0], state[1], state[2]);
        uint256 place;
        assembly ("memory-safe") {
            place := add(table, 32)
        }
        uint256 matrix = place + ROUNDS * 96;
        for (uint256 round = 0; round < ROUNDS; ++round) {
            assembly ("memory-safe") {
                a := addmod(a, mload(place), R)
                b := addmod(b, mload(add(place, 32)), R)
                c := addmod(c, mload(add(place, 64)), R)
                place := add(place, 96)
            }
            a = _fifth(a);
            if (round < HALF || round >= HALF + PARTIAL) {
                b = _fifth(b);
                c = _fifth(c);
            }
            assembly ("memory-safe") {
                function row(start, x, y, z) -> sum {
                    // Two numbers of the field add up to less than 2^255.
                    sum := add(mulmod(x, mload(start), R), mulmod(y, mload(add(start, 32)), R))
                    sum := addmod(sum, mulmod(z, mload(add(start, 64)), R), R)
                }
                let x := row(matrix, a, b, c)
                let y := row(add(matrix, 96), a, b, c)
                c := row(add(matrix, 192), a, b, c)
                a := x
                b := y
            }
        }
        (state[0], state[1], state[2]) = (a, b, c);
    }

    function _fifth(uint256 x) private pure returns (uint256) {
        uint256 square = mulmod(x, x, R);
        return mulmod(mulmod(square, square, R), x, R);
    }
}
