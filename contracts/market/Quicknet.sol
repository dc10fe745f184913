// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice A point of G1 of BLS12-381, affine, each coordinate of 384 bits in two words: ABI-encoded it is what
/// EIP-2537 takes.
struct G1Point {
    uint128 xHigh;
    uint256 xLow;
    uint128 yHigh;
    uint256 yLow;
}

/// @title Quicknet
/// @notice What drand's network quicknet signs (scheme bls-unchained-g1-rfc9380), verified by the precompiles of
/// EIP-2537; see docs/spec/beacon.md. A signature of a round is a point S of G1 with `e(S, g2) = e(H(sha256(round)),
/// key)`.
library Quicknet {
    /// @notice Identifies the network: hash of its period, genesis, key and name.
    bytes32 internal constant CHAIN_HASH = 0x52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971;
    /// @notice When round 1 was due, in seconds since 1970.
    uint64 internal constant GENESIS = 1_692_803_367;
    /// @notice Seconds from round to round.
    uint64 internal constant PERIOD = 3;

    /// @dev The public key, a point of G2: x0, x1, y0, y1.
    bytes private constant KEY = hex"000000000000000000000000000000000d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5"
        hex"a6e9c76a4bc09e76eae8991ef5ece45a"
        hex"0000000000000000000000000000000003cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c"
        hex"8c4b450b6a0a6c3ac6a5776a2d106451"
        hex"000000000000000000000000000000000e5db2b6bfbb01c867749cadffca88b36c24f3012ba09fc4d3022c5c37dce0f9"
        hex"77d3adb5d183c7477c442b1f04515273"
        hex"0000000000000000000000000000000001a714f2edb74119a2f2b0d5a7c75ba902d163700a61bc224ededd8e63aef7be"
        hex"1aaf8e93d7a9718b047ccddb3eb5d68b";
    /// @dev The generator of G2, negated.
    bytes private constant MINUS_G2 = hex"00000000000000000000000000000000024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d177"
        hex"0bac0326a805bbefd48056c8c121bdb8"
        hex"0000000000000000000000000000000013e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049"
        hex"334cf11213945d57e5ac7d055d042b7e"
        hex"000000000000000000000000000000000d1b3cc2c7027888be51d9ef691d77bcb679afda66c73f17f9ee3837a55024f7"
        hex"8c71363275a75d75d86bab79f74782aa"
        hex"0000000000000000000000000000000013fa4d4a0ad8b1ce186ed5061789213d993923066dddaf1040bc3ff59f825c78"
        hex"df74f2d75467e25e0f55f8a00fa030ed";
    /// @dev The modulus p of the base field behind the exponent 1: the end of a call of modexp that reduces a number.
    bytes private constant TO_FIRST_POWER_MODULO_P = hex"0100000000000000000000000000000000"
        hex"1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab";
    uint128 private constant HALF_HIGH = 0x0d0088f51cbff34d258dd3db21a5d66b;
    /// @dev With `HALF_HIGH`: (p - 1) / 2, the largest y whose negative is larger.
    uint256 private constant HALF_LOW = 0xb23ba5c279c2895fb39869507b587b120f55ffff58a9ffffdcff7fffffffd555;
    /// @dev Domain separation tag of RFC 9380 behind which stands its length, 43.
    bytes private constant DOMAIN = "BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_\x2b";

    address private constant MODEXP = address(0x05);
    address private constant G1_ADD = address(0x0b);
    address private constant PAIRING_CHECK = address(0x0f);
    address private constant MAP_TO_G1 = address(0x10);

    /// @notice This chain has no such precompile: it is older than Prague.
    error PrecompileMissing(address precompile);
    /// @notice The network has not signed this round so: another round's signature, no point of the group, infinity,
    /// coordinates that are not reduced; or too little gas.
    error InvalidSignature(uint64 round);

    /// @notice The randomness of a round, sha256 of the compressed signature. Reverts if the network has not signed the
    /// round so.
    function seed(uint64 round, G1Point memory signature) internal view returns (bytes32) {
        bytes memory hashed = _hashToCurve(sha256(abi.encodePacked(round)), round);
        bytes memory pairs = bytes.concat(abi.encode(signature), MINUS_G2, hashed, KEY);
        // The precompile refuses points that are not on the curve or not in the subgroup, and coordinates that are not
        // reduced.
        if (uint256(bytes32(_call(PAIRING_CHECK, pairs, 32, round))) != 1) revert InvalidSignature(round);
        return sha256(_compressed(signature));
    }

    /// @dev The point's 48 bytes in compressed form. It is not at infinity: no round's signature is.
    function _compressed(G1Point memory point) private pure returns (bytes memory) {
        bool larger = point.yHigh > HALF_HIGH || (point.yHigh == HALF_HIGH && point.yLow > HALF_LOW);
        return abi.encodePacked(point.xHigh | (larger ? uint128(5) : uint128(4)) << 125, point.xLow);
    }

    /// @dev BLS12381G1_XMD:SHA-256_SSWU_RO_ of RFC 9380. The precompile clears the cofactor of each point; so is that
    /// of the sum.
    function _hashToCurve(bytes32 message, uint64 round) private view returns (bytes memory) {
        // expand_message_xmd to 128 bytes: a block of zeros, the message, the length, 0, the domain.
        bytes32 first = sha256(abi.encodePacked(uint256(0), uint256(0), message, uint16(128), uint8(0), DOMAIN));
        bytes32 b1 = sha256(abi.encodePacked(first, uint8(1), DOMAIN));
        bytes32 b2 = sha256(abi.encodePacked(first ^ b1, uint8(2), DOMAIN));
        bytes32 b3 = sha256(abi.encodePacked(first ^ b2, uint8(3), DOMAIN));
        bytes32 b4 = sha256(abi.encodePacked(first ^ b3, uint8(4), DOMAIN));
        return _call(G1_ADD, bytes.concat(_map(b1, b2, round), _map(b3, b4, round)), 128, round);
    }

    /// @dev The point of G1 for a number of 512 bits, which is reduced modulo p.
    function _map(bytes32 high, bytes32 low, uint64 round) private view returns (bytes memory) {
        bytes memory power = abi.encodePacked(uint256(64), uint256(1), uint256(64), high, low, TO_FIRST_POWER_MODULO_P);
        return _call(MAP_TO_G1, _call(MODEXP, power, 64, round), 128, round);
    }

    function _call(address precompile, bytes memory input, uint256 size, uint64 round)
        private
        view
        returns (bytes memory output)
    {
        bool success;
        (success, output) = precompile.staticcall(input);
        if (!success) revert InvalidSignature(round);
        // Where there is no contract, a call succeeds and returns nothing.
        if (output.length != size) revert PrecompileMissing(precompile);
    }
}
