// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Groth16Verifier} from "../../../contracts/zk/Groth16Verifier.sol";
import {IStepVerifier} from "../../../contracts/zk/IStepVerifier.sol";
import {Base} from "../Base.sol";

/// @notice The proof of the vectors holds, and nothing near it does.
contract Groth16VerifierTest is Base {
    uint256 private constant R = 21888242871839275222246405745257275088548364400416034343698204186575808495617;
    uint256 private constant Q = 21888242871839275222246405745257275088696311157297823662689037894645226208583;

    Groth16Verifier private verifier;
    bytes private key;
    bytes32 private context;
    bytes32[] private hashes;
    bytes private proof;

    function setUp() public {
        string memory json = vm.readFile("fixtures/vectors/step_proof.json");
        key = vm.parseJsonBytes(json, ".key");
        context = vm.parseJsonBytes32(json, ".context");
        hashes = vm.parseJsonBytes32Array(json, ".hashes");
        proof = vm.parseJsonBytes(json, ".proof");
        verifier = new Groth16Verifier(key);
    }

    function create(bytes calldata given) external returns (Groth16Verifier) {
        return new Groth16Verifier(given);
    }

    function test_the_proof_of_the_vectors_holds() public view {
        vm.assertTrue(verifier.verify(context, hashes, proof));
        vm.assertTrue(verifier.exact());
        vm.assertEq(verifier.count(), hashes.length + 1);
        vm.assertEq(verifier.keyDigest(), keccak256(key));
    }

    function testFuzz_another_context_or_hash(uint256 place, uint256 value) public view {
        place = bound(place, 0, hashes.length);
        (bytes32 about, bytes32[] memory given) = (context, hashes);
        bytes32 changed = bytes32(bound(value, 0, R - 1));
        if (place == 0) about = changed;
        else given[place - 1] = changed;
        bool same = place == 0 ? uint256(changed) == uint256(context) % R : changed == hashes[place - 1];
        vm.assertEq(verifier.verify(about, given, proof), same);
    }

    function testFuzz_one_bit_of_the_proof(uint256 bit) public view {
        bit = bound(bit, 0, 8 * proof.length - 1);
        bytes memory bent = proof;
        bent[bit / 8] ^= bytes1(uint8(1 << bit % 8));
        // A point off its curve ends the call, another point on it only the proof.
        try verifier.verify(context, hashes, bent) returns (bool holds) {
            vm.assertFalse(holds);
        } catch (bytes memory reason) {
            vm.assertEq(bytes32(reason), bytes32(IStepVerifier.MalformedProof.selector));
        }
    }

    /// @dev Groth16 proofs can be written anew by anybody; that is no proof of anything else.
    function test_the_mirrored_proof_is_the_same_proof() public view {
        uint256[8] memory p = abi.decode(proof, (uint256[8]));
        (p[1], p[3], p[5]) = (Q - p[1], p[3], p[5]);
        vm.assertFalse(verifier.verify(context, hashes, abi.encode(p)));
        (p[4], p[5]) = (Q - p[4], Q - p[5]);
        vm.assertTrue(verifier.verify(context, hashes, abi.encode(p)));
    }

    function test_points_at_infinity() public view {
        vm.assertFalse(verifier.verify(context, hashes, new bytes(256)));
    }

    function test_every_coordinate_is_the_smallest_one() public {
        for (uint256 i = 0; i < 8; ++i) {
            uint256[8] memory p = abi.decode(proof, (uint256[8]));
            p[i] += Q;
            _expectMalformed(hashes, abi.encode(p));
        }
    }

    /// @dev A second name of the same number would be another vector for whoever compares hashes.
    function test_every_hash_is_the_smallest_one() public {
        for (uint256 i = 0; i < hashes.length; ++i) {
            bytes32[] memory given = hashes;
            given[i] = bytes32(uint256(given[i]) + R);
            _expectMalformed(given, proof);
            given[i] = bytes32(R);
            _expectMalformed(given, proof);
        }
    }

    function test_as_many_hashes_and_bytes_as_there_are() public {
        _expectMalformed(new bytes32[](hashes.length - 1), proof);
        _expectMalformed(new bytes32[](hashes.length + 1), proof);
        _expectMalformed(new bytes32[](0), proof);
        _expectMalformed(hashes, "");
        _expectMalformed(hashes, abi.encodePacked(proof, uint8(0)));
        _expectMalformed(hashes, abi.encodePacked(proof, uint256(0)));
    }

    /// @dev A point of the twist with x = 1 that isn't in the group, as py-ecc says.
    function test_the_second_group_is_a_subgroup_of_its_curve() public {
        uint256[8] memory p = abi.decode(proof, (uint256[8]));
        (p[2], p[3]) = (0, 1);
        p[4] = 5912654199736721486680175016176231956195085055698687135131307249486702594212;
        p[5] = 18278151005453108793778860132295291098363647455926340152056652516292830556603;
        _expectMalformed(hashes, abi.encode(p));
    }

    function test_keys_that_are_none() public {
        uint256[4] memory sizes = [uint256(0), 32, (14 + 3) * 32, (14 + 4) * 32 + 1];
        for (uint256 i = 0; i < sizes.length; ++i) {
            bytes memory short = new bytes(sizes[i]);
            vm.expectRevert(Groth16Verifier.MalformedKey.selector);
            this.create(short);
        }
    }

    function test_a_key_whose_points_are_none_verifies_nothing() public {
        bytes memory wrong = key;
        wrong[wrong.length - 1] ^= 0x01;
        Groth16Verifier other = new Groth16Verifier(wrong);
        vm.expectRevert(Groth16Verifier.MalformedKey.selector);
        other.verify(context, hashes, proof);
    }

    function _expectMalformed(bytes32[] memory given, bytes memory bent) private {
        vm.expectRevert(IStepVerifier.MalformedProof.selector);
        verifier.verify(context, given, bent);
    }
}
