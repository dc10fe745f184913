// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStepVerifier} from "./IStepVerifier.sol";
import {StoredBytes} from "./StoredBytes.sol";

/// @title Groth16Verifier
/// @notice Verifies Groth16 proofs over BN254 (eprint 2016/260, by EIP-196 and EIP-197) of exact circuits.
/// @dev Whoever made the key may know the secret that it was made with, and can then prove anything: pin a verifier
/// only if you trust its setup. A point off its curve costs all gas that the call was given, as EIP-197 has it.
contract Groth16Verifier is IStepVerifier {
    /// @notice keccak-256 of the verifying key: its coordinates as words, alpha, beta, gamma, delta, and a point for
    /// the number one and each public number.
    bytes32 public immutable keyDigest;
    /// @notice Public numbers: the context and the hashes.
    uint256 public immutable count;
    /// @dev Its code is the key.
    address private immutable _key;

    /// @dev Order of the groups, and modulus of coordinates.
    uint256 private constant R = 21888242871839275222246405745257275088548364400416034343698204186575808495617;
    uint256 private constant Q = 21888242871839275222246405745257275088696311157297823662689037894645226208583;
    uint256 private constant FIXED_WORDS = 14;
    uint256 private constant PROOF_BYTES = 256;

    /// @notice The bytes are not a verifying key.
    error MalformedKey();

    /// @param key The verifying key.
    constructor(bytes memory key) {
        if (key.length % 64 != 0 || key.length < (FIXED_WORDS + 4) * 32) revert MalformedKey();
        count = key.length / 64 - FIXED_WORDS / 2 - 1;
        keyDigest = keccak256(key);
        _key = StoredBytes.store(key);
    }

    /// @inheritdoc IStepVerifier
    function exact() external pure returns (bool) {
        return true;
    }

    /// @inheritdoc IStepVerifier
    function verify(bytes32 context, bytes32[] calldata hashes, bytes calldata proof) external view returns (bool) {
        if (hashes.length + 1 != count || proof.length != PROOF_BYTES) revert MalformedProof();
        uint256[] memory key = _words(StoredBytes.load(_key));
        uint256[2] memory total = [key[FIXED_WORDS], key[FIXED_WORDS + 1]];
        for (uint256 i = 0; i < count; ++i) {
            uint256 value = i == 0 ? uint256(context) % R : uint256(hashes[i - 1]);
            // A hash that is too large by the order would be the same number a second time.
            if (value >= R) revert MalformedProof();
            uint256 place = FIXED_WORDS + 2 + 2 * i;
            total = _add(total, _multiply([key[place], key[place + 1]], value));
        }
        uint256[8] memory p = abi.decode(proof, (uint256[8]));
        for (uint256 i = 0; i < 8; ++i) {
            if (p[i] >= Q) revert MalformedProof();
        }
        // e(-A, B) e(alpha, beta) e(total, gamma) e(C, delta) = 1
        uint256[24] memory pairs = [
            p[0],
            (Q - p[1]) % Q,
            p[2],
            p[3],
            p[4],
            p[5],
            key[0],
            key[1],
            key[2],
            key[3],
            key[4],
            key[5],
            total[0],
            total[1],
            key[6],
            key[7],
            key[8],
            key[9],
            p[6],
            p[7],
            key[10],
            key[11],
            key[12],
            key[13]
        ];
        uint256[1] memory result;
        bool success;
        assembly ("memory-safe") {
            success := staticcall(gas(), 8, pairs, 768, result, 32)
        }
        if (!success) revert MalformedProof();
        return result[0] == 1;
    }

    function _add(uint256[2] memory a, uint256[2] memory b) private view returns (uint256[2] memory sum) {
        uint256[4] memory input = [a[0], a[1], b[0], b[1]];
        bool success;
        assembly ("memory-safe") {
            success := staticcall(gas(), 6, input, 128, sum, 64)
        }
        if (!success) revert MalformedKey();
    }

    function _multiply(uint256[2] memory a, uint256 factor) private view returns (uint256[2] memory product) {
        uint256[3] memory input = [a[0], a[1], factor];
        bool success;
        assembly ("memory-safe") {
            success := staticcall(gas(), 7, input, 96, product, 64)
        }
        if (!success) revert MalformedKey();
    }

    /// @dev The bytes as words, in place: an array of bytes has its length where an array of words has its own.
    function _words(bytes memory data) private pure returns (uint256[] memory words) {
        assembly ("memory-safe") {
            words := data
            mstore(words, shr(5, mload(data)))
        }
    }
}
