// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "../commitments/CheckpointLog.sol";
import {IStakeVault} from "../incentives/IStakeVault.sol";
import {VectorHash} from "../zk/VectorHash.sol";
import {VectorState} from "../zk/VectorState.sol";
import {Chain, IProvenSteps, Pin, StepProof} from "./IProvenSteps.sol";
import {MarketDesk} from "./MarketDesk.sol";
import {Status, Terms} from "./TaskTypes.sol";

/// @title ProvenSteps
/// @notice See `IProvenSteps`.
contract ProvenSteps is IProvenSteps, MarketDesk {
    /// @notice Hashes vectors as the circuits do.
    VectorHash public immutable hasher;

    mapping(bytes32 taskId => Pin) private _pins;
    mapping(bytes32 taskId => mapping(uint32 segment => mapping(bytes32 first => Chain))) private _chains;
    mapping(bytes32 taskId => mapping(bytes32 root => bytes32 vector)) private _tied;

    /// @param hasher_ Of the exact circuits.
    constructor(IStakeVault vault_, VectorHash hasher_) MarketDesk(vault_) {
        hasher = hasher_;
    }

    /// @inheritdoc IProvenSteps
    function pin(uint256 nonce, Terms calldata terms, Pin calldata pin_) external returns (bytes32 taskId) {
        address submitter = _party();
        taskId = registry.computeTaskId(submitter, nonce, terms);
        if (registry.task(taskId).status != Status.None) revert TaskExists(taskId);
        if (address(pin_.verifier).code.length == 0 || pin_.batches == 0 || pin_.layout == 0) revert InvalidPin();
        _pins[taskId] = pin_;
        emit Pinned(taskId, submitter, pin_);
    }

    /// @inheritdoc IProvenSteps
    // The verifier is called by a static call, which can change nothing.
    function prove(bytes32 taskId, uint32 segment, bytes32 first, uint32 from, StepProof[] calldata steps) external {
        Pin storage p = _pinned(taskId);
        Terms memory s = registry.terms(taskId);
        uint64 begin = uint64(segment) * s.interval;
        if (begin >= s.steps || first == 0) revert NoSuchStep(begin);
        Chain memory c = _chains[taskId][segment][first];
        if (from > c.steps) revert NoSuchStep(begin + from);
        if (c.steps == 0) c.last = first;
        // Others may have proved some of them meanwhile.
        while (c.steps - from < steps.length) {
            if (c.steps == s.interval) revert NoSuchStep(begin + c.steps);
            c.last = _proveStep(taskId, p, begin + c.steps, s.steps, c.last, steps[c.steps - from]);
            ++c.steps;
        }
        _chains[taskId][segment][first] = c;
    }

    /// @inheritdoc IProvenSteps
    function tie(bytes32 taskId, bytes calldata types, bytes calldata words)
        external
        returns (bytes32 root, bytes32 vector)
    {
        Pin storage p = _pinned(taskId);
        if (keccak256(types) != p.layout) revert WrongLayout(keccak256(types));
        root = VectorState.root(types, words);
        vector = hasher.hash(VectorState.integers(words, p.scale));
        _tied[taskId][root] = vector;
        emit Tied(taskId, root, vector);
    }

    /// @inheritdoc IProvenSteps
    function leadsTo(bytes32 taskId, uint32 segment, bytes32 start, bytes32 end, bytes32 shown)
        external
        view
        returns (bool)
    {
        Pin storage p = _pinned(taskId);
        bytes32 first = _tied[taskId][start];
        Chain memory c = _chains[taskId][segment][first];
        bool proven = p.verifier.exact() && first != 0 && c.steps == registry.terms(taskId).interval;
        if (!proven || c.last == 0 || _tied[taskId][shown] != c.last) revert NotProven(taskId, segment);
        return end == shown;
    }

    /// @inheritdoc IProvenSteps
    function pinned(bytes32 taskId) external view returns (Pin memory) {
        return _pins[taskId];
    }

    /// @inheritdoc IProvenSteps
    function chain(bytes32 taskId, uint32 segment, bytes32 first) external view returns (Chain memory) {
        return _chains[taskId][segment][first];
    }

    /// @inheritdoc IProvenSteps
    function tied(bytes32 taskId, bytes32 root) external view returns (bytes32) {
        return _tied[taskId][root];
    }

    /// @inheritdoc IProvenSteps
    function contextOf(bytes32 taskId, uint64 step) public pure returns (bytes32) {
        return keccak256(abi.encode(taskId, step));
    }

    /// @dev Where step `step` of `count` leads from `before`. Reverts unless its proof holds.
    function _proveStep(
        bytes32 taskId,
        Pin storage p,
        uint64 step,
        uint64 count,
        bytes32 before,
        StepProof calldata given
    ) private returns (bytes32) {
        // Zero stands for a state that nobody has tied.
        if (given.afterStep == 0) revert InvalidProof(step);
        bytes32 data = keccak256(abi.encode(given.data));
        if (!CheckpointLog.isIncluded(data, step, count, p.batches, given.path)) revert WrongData(step);
        bytes32[] memory hashes = _around(before, given.data, given.afterStep);
        // One call for each proof that the caller brings: a verifier that reverts spoils that caller's call, nobody
        // else's.
        // slither-disable-next-line calls-loop
        if (!p.verifier.verify(contextOf(taskId, step), hashes, given.proof)) revert InvalidProof(step);
        emit StepProven(taskId, step, before, given.afterStep);
        return given.afterStep;
    }

    function _pinned(bytes32 taskId) private view returns (Pin storage p) {
        p = _pins[taskId];
        if (address(p.verifier) == address(0)) revert NotPinned(taskId);
    }

    function _around(bytes32 first, bytes32[] calldata data, bytes32 last)
        private
        pure
        returns (bytes32[] memory hashes)
    {
        hashes = new bytes32[](data.length + 2);
        hashes[0] = first;
        for (uint256 i = 0; i < data.length; ++i) {
            hashes[i + 1] = data[i];
        }
        hashes[data.length + 1] = last;
    }
}
