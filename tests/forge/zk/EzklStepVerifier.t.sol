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

    function test_a_verifier_has_code() public {
        IEzklVerifier nobody = IEzklVerifier(account("nobody"));
        vm.expectRevert(abi.encodeWithSelector(EzklStepVerifier.NoCode.selector, address(nobody)));
        this.create(nobody);
    }
}
