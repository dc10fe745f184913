// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {EzklStepVerifier, IEzklVerifier} from "../../../contracts/zk/EzklStepVerifier.sol";
import {Base} from "../Base.sol";

/// @notice Takes one proof for one list of numbers. What EZKL generates meets `EzklStepVerifier` in the Python tests.
contract OneProof is IEzklVerifier {
    bytes32 private immutable accepted;

    error Refused();

    constructor(bytes memory proof, uint256[] memory instances) {
        accepted = keccak256(abi.encode(proof, instances));
    }

    function verifyProof(bytes calldata proof, uint256[] calldata instances) external view returns (bool) {
        if (keccak256(abi.encode(proof, instances)) != accepted) revert Refused();
        return true;
    }
}

/// @notice Its code has the point of the reference string for tests in it, as every generated verifier for it.
contract ForTests is IEzklVerifier {
    function verifyProof(bytes calldata, uint256[] calldata) external pure returns (bool) {
        return uint256(keccak256(msg.data)) != 0x2edbe4f528228ac7df273b1604f1cab5bd7b4cc2862915021cd5372f3a646972;
    }
}

/// @notice Hashes reach the generated verifier as its public numbers, in their order.
contract EzklStepVerifierTest is Base {
    function create(IEzklVerifier generated) external returns (EzklStepVerifier) {
        return new EzklStepVerifier(generated);
    }

    function testFuzz_hashes_are_the_instances(bytes32[] memory hashes, bytes memory proof, bytes32 context) public {
        uint256[] memory instances = new uint256[](hashes.length);
        for (uint256 i = 0; i < hashes.length; ++i) {
            instances[i] = uint256(hashes[i]);
        }
        EzklStepVerifier verifier = new EzklStepVerifier(new OneProof(proof, instances));
        vm.assertTrue(verifier.verify(context, hashes, proof));
        vm.assertFalse(verifier.exact());
        bytes memory longer = abi.encodePacked(proof, uint8(0));
        vm.expectRevert(OneProof.Refused.selector);
        verifier.verify(context, hashes, longer);
    }

    /// @dev Whoever knows the secret of a reference string proves whatever it likes.
    function test_a_verifier_for_tests_stays_on_test_chains() public {
        IEzklVerifier forged = new ForTests();
        uint256 here = block.chainid;
        uint256[3] memory tests = [uint256(1337), 31337, 131277322940537];
        for (uint256 i = 0; i < tests.length; ++i) {
            vm.chainId(tests[i]);
            vm.assertEq(address(this.create(forged).generated()), address(forged));
        }
        vm.chainId(1);
        vm.expectRevert(abi.encodeWithSelector(EzklStepVerifier.TestOnly.selector, forged));
        this.create(forged);
        OneProof sound = new OneProof("", new uint256[](0));
        vm.assertEq(address(this.create(sound).generated()), address(sound));
        vm.chainId(here);
    }

    function test_a_verifier_has_code() public {
        IEzklVerifier nobody = IEzklVerifier(account("nobody"));
        vm.expectRevert(abi.encodeWithSelector(EzklStepVerifier.NoCode.selector, address(nobody)));
        this.create(nobody);
    }
}
