// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStepVerifier} from "./IStepVerifier.sol";

/// @notice What EZKL generates for one verification key.
interface IEzklVerifier {
    /// @notice Reverts unless the proof holds for these public numbers.
    function verifyProof(bytes calldata proof, uint256[] calldata instances) external view returns (bool);
}

/// @title EzklStepVerifier
/// @notice A verifier that EZKL generated, as a verifier of steps whose vectors are hashed.
/// @dev A proof of EZKL's leaves floor or ceiling of every rounding to the prover: it bounds the step, and decides no
/// dispute (docs/spec/zk.md, "What a proof of EZKL's says"). Its key is in its code, and with it the reference string.
contract EzklStepVerifier is IStepVerifier {
    /// @notice The generated contract.
    IEzklVerifier public immutable generated;

    /// @dev Of the reference string whose secret everybody knows: a coordinate of the point of the second group, which
    /// the code of every verifier for it has in it (docs/spec/zk.md, "Reference strings").
    uint256 private constant TEST_ONLY = 0x2edbe4f528228ac7df273b1604f1cab5bd7b4cc2862915021cd5372f3a646972;

    /// @notice There is no contract at this address.
    error NoCode(address account);
    /// @notice The verifier's key is of the reference string for tests, and this is no test chain: anybody forges
    /// proofs for it.
    error TestOnly(address account);

    /// @param generated_ Deployed before; its code decides what it accepts.
    constructor(IEzklVerifier generated_) {
        bytes memory code = address(generated_).code;
        if (code.length == 0) revert NoCode(address(generated_));
        // The chains of Ganache, of Hardhat and Anvil, and of EthereumTester.
        bool isTest = block.chainid == 1337 || block.chainid == 31337 || block.chainid == 131277322940537;
        if (!isTest && _contains(code, TEST_ONLY)) revert TestOnly(address(generated_));
        generated = generated_;
    }

    /// @inheritdoc IStepVerifier
    function exact() external pure returns (bool) {
        return false;
    }

    /// @inheritdoc IStepVerifier
    function verify(bytes32, bytes32[] calldata hashes, bytes calldata proof) external view returns (bool) {
        uint256[] memory instances = new uint256[](hashes.length);
        for (uint256 i = 0; i < hashes.length; ++i) {
            instances[i] = uint256(hashes[i]);
        }
        return generated.verifyProof(proof, instances);
    }

    /// @dev Whether a word stands in the code, at whatever place.
    function _contains(bytes memory code, uint256 word) private pure returns (bool) {
        for (uint256 end = 32; end <= code.length; ++end) {
            uint256 found;
            assembly ("memory-safe") {
                found := mload(add(code, end))
            }
            if (found == word) return true;
        }
        return false;
    }
}
