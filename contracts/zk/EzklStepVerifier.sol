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
/// @dev A proof of EZKL's leaves floor or ceiling of every rounding to the prover: it bounds the step, and decides no dispute
/// (docs/spec/zk.md, "What a proof of EZKL's says"). Its key is in its code, and with it the reference string.
contract EzklStepVerifier is IStepVerifier {
    /// @notice The generated contract.
    IEzklVerifier public immutable generated;

    /// @notice There is no contract at this address.
    error NoCode(address account);

    /// @param generated_ Deployed before; its code decides what it accepts.
    constructor(IEzklVerifier generated_) {
        if (address(generated_).code.length == 0) revert NoCode(address(generated_));
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
}
