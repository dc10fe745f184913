// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "./CheckpointLog.sol";
import {CompleteStateLeaf} from "./CompleteStateLeaf.sol";
import {Chunk, Demand, ILearningLog, Run, RunStatus} from "./ILearningLog.sol";
import {PullPayments} from "./PullPayments.sol";

/// @title RecordDemands
/// @notice Demands for leaves of posted checkpoints, and the stake that answers for them. See `ILearningLog`.
/// @dev One word for each open demand, no loop over demands or runs. Wei held = wei credited + stakes + bonds of open
/// demands, after every call. The first word of the ledger's events is the id of the run.
abstract contract RecordDemands is ILearningLog, PullPayments {
    /// @notice Gas that a bond pays for, at the base fee of the demand: above that of answers of a usual size.
    uint256 public constant ANSWER_GAS = 200_000;
    /// @notice One part in so many of a slashed stake goes to the demander; the rest is burned.
    uint256 public constant SHARE = 4;
    /// @notice Where burned wei go.
    address public constant BURNED = address(0);

    /// @dev Runs by their id.
    mapping(bytes32 id => Run) internal _runs;
    mapping(bytes32 key => bool) private _open;

    /// @inheritdoc ILearningLog
    function demand(bytes32 id, uint64 index, uint32 position, uint64 leaf) external payable returns (bytes32 key) {
        Run storage r = _expectOpen(id);
        if (index >= r.size) revert NoSuchEntry(index, r.size);
        uint256 end = _end(r);
        if (block.timestamp > end) revert DemandsEnded(end);
        uint256 expected = bondOf(id);
        if (msg.value < expected) revert BondTooLow(msg.value, expected);
        uint64 deadline = uint64(block.timestamp) + r.window;
        Demand memory d = Demand(id, r.logRoot, r.size, index, position, leaf, msg.sender, deadline, msg.value);
        key = keccak256(abi.encode(d));
        if (_open[key]) revert AlreadyDemanded(key);
        _open[key] = true;
        ++r.open;
        emit Demanded(id, key, d);
    }

    /// @inheritdoc ILearningLog
    function answer(Demand calldata d, Chunk calldata chunk) external {
        (Run storage r, bytes32 key) = _take(d);
        if (block.timestamp > d.deadline) revert TooLate(d.deadline);
        // Whoever copies the publisher's answer from the pool of transactions could earn the bond, or get back one of
        // their own.
        uint256 publishersOwn = d.deadline - r.window / 2;
        if (block.timestamp <= publishersOwn && msg.sender != r.publisher) revert PublisherFirst(publishersOwn);
        bytes32 completeRoot = CompleteStateLeaf.root(chunk, d.position, d.leaf);
        if (!CheckpointLog.isIncluded(completeRoot, d.index, d.size, d.logRoot, chunk.logPath)) {
            revert NotInLog(completeRoot);
        }
        emit Answered(d.id, key, msg.sender, completeRoot, chunk.name, chunk.form, chunk.count, chunk.leaf);
        _credit(d.id, msg.sender, d.bond);
    }

    /// @inheritdoc ILearningLog
    function expire(Demand calldata d) external {
        (Run storage r, bytes32 key) = _take(d);
        if (block.timestamp <= d.deadline) revert TooEarly(d.deadline);
        emit Expired(d.id, key);
        _credit(d.id, d.demander, d.bond);
        // The stake is lost once; later demands get their bonds back.
        if (r.status != RunStatus.Open) return;
        uint256 stake = r.stake;
        uint256 share = stake / SHARE;
        r.status = RunStatus.Withheld;
        r.stake = 0;
        emit DataWithheld(d.id, key, d.demander, share, stake - share);
        _credit(d.id, d.demander, share);
        // No code runs there, so the payment can neither fail nor call back.
        (bool burned,) = BURNED.call{value: stake - share}("");
        if (!burned) revert PaymentRefused();
    }

    /// @inheritdoc ILearningLog
    function close(bytes32 id) external {
        Run storage r = _expectOpen(id);
        if (msg.sender != r.publisher) revert NotPublisher(msg.sender);
        uint256 end = _end(r);
        if (block.timestamp <= end) revert StakeLocked(end);
        if (r.open > 0) revert DemandsOpen(r.open);
        uint256 stake = r.stake;
        r.status = RunStatus.Closed;
        r.stake = 0;
        emit Closed(id, stake);
        _credit(id, msg.sender, stake);
    }

    /// @inheritdoc ILearningLog
    function isOpen(bytes32 key) external view returns (bool) {
        return _open[key];
    }

    /// @inheritdoc ILearningLog
    function bondOf(bytes32 id) public view returns (uint256) {
        return _runs[id].price + ANSWER_GAS * block.basefee;
    }

    function _expectOpen(bytes32 id) internal view returns (Run storage r) {
        r = _runs[id];
        if (r.status != RunStatus.Open) revert NotOpen(id, r.status);
    }

    /// @dev Ends an open demand; whatever reverts later brings it back.
    function _take(Demand calldata d) private returns (Run storage r, bytes32 key) {
        key = keccak256(abi.encode(d));
        if (!_open[key]) revert NoSuchDemand(key);
        delete _open[key];
        r = _runs[d.id];
        --r.open;
    }

    /// @dev The last second for demands; from the next one on the stake is free.
    function _end(Run storage r) private view returns (uint256) {
        return uint256(r.posted) + r.exitDelay;
    }
}
