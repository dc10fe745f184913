// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title IStepVerifier
/// @notice Verifies proofs of one circuit: that one gradient step leads from one vector to the next (docs/spec/zk.md).
interface IStepVerifier {
    /// @notice A proof's points or numbers are none, or there are too few hashes.
    error MalformedProof();

    /// @notice Whether the proof holds. Reverts, or answers false, if not.
    /// @param context What the proof is for; a verifier that is not `exact` does not look at it.
    /// @param hashes Of the vector before the step, of its data, and of the vector after it.
    /// @param proof As the circuit's prover wrote it.
    function verify(bytes32 context, bytes32[] calldata hashes, bytes calldata proof) external view returns (bool);

    /// @notice Whether a proof leaves the prover no rounding to choose, so that it decides a dispute.
    function exact() external view returns (bool);
}
