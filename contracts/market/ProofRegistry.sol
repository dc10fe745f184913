// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "../commitments/CheckpointLog.sol";
import {IStakeVault} from "../incentives/IStakeVault.sol";
import {IBeacon, PATIENCE} from "./IBeacon.sol";
import {IProofRegistry, ProofOfTask} from "./IProofRegistry.sol";
import {ITaskRegistry} from "./ITaskRegistry.sol";
import {MarketDesk} from "./MarketDesk.sol";
import {SegmentDraw} from "./SegmentDraw.sol";
import {Status, Task, Terms} from "./TaskTypes.sol";

/// @title ProofRegistry
/// @notice See `IProofRegistry`.
contract ProofRegistry is IProofRegistry, MarketDesk {
    /// @notice Draws the segments.
    IBeacon public immutable beacon;

    mapping(bytes32 taskId => ProofOfTask) private _proofs;
    /// @dev The round that draws is the second of this proof.
    mapping(bytes32 taskId => mapping(uint64 began => bool)) private _replaced;

    constructor(IStakeVault vault_, IBeacon beacon_) MarketDesk(vault_) {
        beacon = beacon_;
    }

    /// @inheritdoc IProofRegistry
    function post(bytes32 taskId, uint64 size, bytes32 logRoot, bytes32[] calldata consistencyPath) external {
        ProofOfTask storage p = _mine(taskId);
        if (size <= p.size || size > _segments(registry.terms(taskId)) + 1) revert WrongLogSize(size);
        _extend(p, size, logRoot, consistencyPath);
        emit ProgressPosted(taskId, size, logRoot);
    }

    /// @inheritdoc IProofRegistry
    function commit(
        bytes32 taskId,
        uint64 size,
        bytes32 logRoot,
        bytes32[] calldata consistencyPath,
        bytes32 proofDigest,
        bytes32[] calldata inclusionPath
    ) external {
        ProofOfTask storage p = _mine(taskId);
        Terms memory s = registry.terms(taskId);
        if (size != _segments(s) + 1) revert WrongLogSize(size);
        if (proofDigest == 0) revert ITaskRegistry.ZeroHash();
        _extend(p, size, logRoot, consistencyPath);
        if (!CheckpointLog.isIncluded(s.initialState, 0, size, logRoot, inclusionPath)) revert NotInLog(0);
        _fixRound(p);
        emit ProofCommitted(taskId, size, logRoot, proofDigest, p.round);
        registry.advance(taskId, Status.Training, Status.Committed, 0);
        seats.open(taskId, true);
    }

    /// @inheritdoc IProofRegistry
    function replaceRound(bytes32 taskId) external {
        ProofOfTask storage p = _proofs[taskId];
        if (p.round == 0 || beacon.recorded(p.round)) revert RoundStands(p.round);
        if (_replaced[taskId][p.began]) revert AlreadyReplaced(taskId);
        _after(p.committed + PATIENCE);
        _replaced[taskId][p.began] = true;
        _fixRound(p);
        emit RoundReplaced(taskId, p.round);
    }

    /// @inheritdoc IProofRegistry
    function proof(bytes32 taskId) external view returns (ProofOfTask memory) {
        return _proofs[taskId];
    }

    /// @inheritdoc IProofRegistry
    function isDrawn(bytes32 taskId) external view returns (bool) {
        return beacon.recorded(_proofs[taskId].round);
    }

    /// @inheritdoc IProofRegistry
    function patientUntil(bytes32 taskId) external view returns (uint64) {
        ProofOfTask storage p = _proofs[taskId];
        if (p.round == 0 || beacon.recorded(p.round)) return 0;
        return p.committed + (_replaced[taskId][p.began] ? PATIENCE : 2 * PATIENCE);
    }

    /// @inheritdoc IProofRegistry
    function receiptSeed(bytes32 taskId, uint32 segment) external view returns (bytes32) {
        return keccak256(abi.encodePacked(beacon.seed(_proofs[taskId].round), segment));
    }

    /// @inheritdoc IProofRegistry
    function drawnSegments(bytes32 taskId) external view returns (uint32[] memory) {
        Terms memory s = registry.terms(taskId);
        return SegmentDraw.draw(beacon.seed(_proofs[taskId].round), _segments(s), s.draws);
    }

    /// @dev The log of the solver, in time; that of one who is gone is forgotten.
    function _mine(bytes32 taskId) private returns (ProofOfTask storage p) {
        Task memory t = _expect(taskId, Status.Training);
        _requireParty(t.solver);
        _notAfter(t.deadline);
        p = _proofs[taskId];
        if (p.began != t.began) {
            delete _proofs[taskId];
            p.began = t.began;
        }
    }

    /// @dev Both functions of the solver end here: with a root that extends the one before.
    function _extend(ProofOfTask storage p, uint64 size, bytes32 logRoot, bytes32[] calldata path) private {
        if (logRoot == 0) revert ITaskRegistry.ZeroHash();
        if (!CheckpointLog.isConsistent(p.size, p.root, size, logRoot, path)) revert InconsistentLog();
        (p.size, p.root) = (size, logRoot);
    }

    function _fixRound(ProofOfTask storage p) private {
        (p.round, p.committed) = (beacon.nextRound(), uint64(block.timestamp));
    }

    function _segments(Terms memory s) private pure returns (uint64) {
        return s.steps / s.interval;
    }
}
