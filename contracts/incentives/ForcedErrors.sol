// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Claim} from "../market/TaskTypes.sol";

/// @title ForcedErrors
/// @notice When a verdict has to be wrong on purpose, and how: docs/spec/incentives.md, "Forced errors".
/// @dev Pure functions of what the deployment fixed (the rate), the beacon gave (the seed) and the verifier committed
/// to (the secret). No block and no caller has a say: nobody is asked for randomness.
library ForcedErrors {
    /// @notice A rate is this times its probability.
    uint256 internal constant ONE = 1 << 32;
    /// @notice The smallest rate, one error in 256 verdicts: rarer, and nobody would watch for it.
    uint256 internal constant LEAST_RATE = ONE / 256;
    /// @notice The largest rate, one error in four verdicts: more often, and verdicts would say nothing.
    uint256 internal constant LARGEST_RATE = ONE / 4;

    /// @notice A deployment can't have this rate.
    error RateOutOfBounds(uint256 rate);

    /// @notice Reverts unless a deployment may have this rate.
    function checkRate(uint256 rate) internal pure {
        if (rate < LEAST_RATE || rate > LARGEST_RATE) revert RateOutOfBounds(rate);
    }

    /// @notice What a verifier fixes its secret with when it claims a seat. Nobody else can use it, and not for another
    /// task.
    function commitment(address account, bytes32 taskId, bytes32 secret) internal pure returns (bytes32) {
        return keccak256(abi.encode(account, taskId, secret));
    }

    /// @notice Whether the verdict of this seating has to be wrong: so with probability `rate / 2^32`, for every rate
    /// that `checkRate` admits.
    function isForced(uint256 rate, bytes32 seed, bytes32 taskId, uint32 seating, bytes32 secret)
        internal
        pure
        returns (bool)
    {
        return uint256(keccak256(abi.encode("forced", seed, taskId, seating, secret))) < rate << 224;
    }

    /// @notice Which of its `draws` claims is the wrong one.
    function index(bytes32 seed, bytes32 taskId, uint32 seating, bytes32 secret, uint32 draws)
        internal
        pure
        returns (uint32)
    {
        return uint32(uint256(keccak256(abi.encode("index", seed, taskId, seating, secret))) % draws);
    }

    /// @notice What that claim gives as its replay. Whoever doesn't replay, can't tell it from a true root.
    function errorRoot(bytes32 seed, bytes32 taskId, uint32 seating, bytes32 secret) internal pure returns (bytes32) {
        return keccak256(abi.encode("error", seed, taskId, seating, secret));
    }

    /// @notice What hides the claim that takes its place.
    function sealedClaim(bytes32 taskId, uint32 seating, bytes32 salt, Claim memory claim)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode("sealed", taskId, seating, salt, claim));
    }
}
