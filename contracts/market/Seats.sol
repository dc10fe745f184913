// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStakeVault} from "../incentives/IStakeVault.sol";
import {IBeacon, PATIENCE} from "./IBeacon.sol";
import {ISeats, Seating} from "./ISeats.sol";
import {ITaskRegistry} from "./ITaskRegistry.sol";
import {MarketDesk} from "./MarketDesk.sol";
import {Status, Task} from "./TaskTypes.sol";

/// @title Seats
/// @notice See `ISeats`.
/// @dev One seat per task at a time. The stake of the best claim is locked under the task's id.
contract Seats is ISeats, MarketDesk {
    /// @notice Draws ranks and planted errors.
    IBeacon public immutable beacon;

    mapping(bytes32 taskId => Seating) private _seatings;
    /// @dev The round on which the seat waits is its second.
    mapping(bytes32 taskId => mapping(uint32 number => bool)) private _replaced;

    constructor(IStakeVault vault_, IBeacon beacon_) MarketDesk(vault_) {
        beacon = beacon_;
    }

    /// @inheritdoc ISeats
    function open(bytes32 taskId, bool verifies) external onlyDesk {
        Seating storage s = _seatings[taskId];
        uint32 number = s.number + 1;
        delete _seatings[taskId];
        s.number = number;
        s.verifies = verifies;
        s.stake = registry.terms(taskId).verifierStake;
        _fixRound(taskId, s);
    }

    /// @inheritdoc ISeats
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-events
    function openClaims(bytes32 taskId) external {
        Seating storage s = _empty(taskId);
        if (s.until != 0) revert NoSeat(taskId);
        if (!beacon.recorded(s.round)) beacon.record(s.round);
        s.seed = beacon.seed(s.round);
        s.until = _from(registry.terms(taskId).seatWindow);
        emit ClaimsOpened(taskId, s.number, s.seed, s.until);
    }

    /// @inheritdoc ISeats
    function replaceRound(bytes32 taskId) external {
        Seating storage s = _empty(taskId);
        if (beacon.recorded(s.round)) revert RoundStands(s.round);
        if (_replaced[taskId][s.number]) revert AlreadyReplaced(taskId);
        _after(s.fixedAt + PATIENCE);
        _replaced[taskId][s.number] = true;
        _fixRound(taskId, s);
    }

    /// @inheritdoc ISeats
    // Desks, beacon and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-events
    function claim(bytes32 taskId, uint32 ticket, bytes32 commitment) external {
        Seating storage s = _empty(taskId);
        if (s.until == 0) revert NoSeat(taskId);
        _notAfter(s.until);
        address account = _party();
        Task memory t = registry.task(taskId);
        if (account == t.submitter || account == t.solver) revert NotAllowed(account);
        if (s.verifies == (commitment == 0)) revert ITaskRegistry.ZeroHash();
        uint256 rank = sortition.seatRank(account, ticket, taskId, s.number, s.fixedAt, s.seed);
        if (s.best != address(0)) {
            if (rank >= s.rank) revert Beaten(s.rank);
            vault.unlock(taskId, s.best, s.stake);
        }
        vault.lock(taskId, account, s.stake);
        (s.best, s.rank, s.commitment) = (account, rank, commitment);
        emit SeatClaimed(taskId, s.number, account, ticket, rank, commitment);
    }

    /// @inheritdoc ISeats
    function decide(bytes32 taskId) external {
        Seating storage s = _empty(taskId);
        if (s.until == 0) revert NoSeat(taskId);
        _after(s.until);
        if (s.best == address(0)) {
            (s.until, s.seed) = (0, 0);
            delete _replaced[taskId][s.number];
            return _fixRound(taskId, s);
        }
        (s.holder, s.dutyRound, s.dutyFixedAt) = (s.best, beacon.nextRound(), uint64(block.timestamp));
        emit SeatTaken(taskId, s.number, s.holder, s.dutyRound, s.dutyFixedAt);
        registry.seat(taskId, s.number, s.holder);
        uint64 deadline = _from(registry.terms(taskId).verificationWindow);
        Status from = s.verifies ? Status.Committed : Status.Profiling;
        registry.advance(taskId, from, s.verifies ? Status.Verifying : from, deadline);
    }

    /// @inheritdoc ISeats
    function release(bytes32 taskId) external onlyDesk {
        Seating storage s = _leave(taskId, false);
        if (s.best != address(0)) vault.unlock(taskId, s.best, s.stake);
    }

    /// @inheritdoc ISeats
    function slash(bytes32 taskId, address party, uint256 points) external onlyDesk {
        Seating storage s = _leave(taskId, true);
        if (s.holder == address(0)) revert NoSeat(taskId);
        _slash(taskId, s.holder, s.stake, party, points);
    }

    /// @inheritdoc ISeats
    function forfeit(bytes32 taskId) external only(address(settlement)) returns (uint256 stake) {
        Seating storage s = _leave(taskId, true);
        stake = s.stake;
        vault.forfeit(taskId, s.holder, stake);
        vault.move(taskId, address(settlement), taskId, stake);
    }

    /// @inheritdoc ISeats
    function seating(bytes32 taskId) external view returns (Seating memory) {
        return _seatings[taskId];
    }

    /// @inheritdoc ISeats
    function dutySeed(bytes32 taskId) external view returns (bytes32) {
        Seating storage s = _seatings[taskId];
        return s.dutyRound != 0 && beacon.recorded(s.dutyRound) ? beacon.seed(s.dutyRound) : bytes32(0);
    }

    /// @inheritdoc ISeats
    function patientUntil(bytes32 taskId) external view returns (uint64) {
        Seating storage s = _seatings[taskId];
        if (s.number == 0 || s.left) return 0;
        // A second round of the duty would be a second draw of it.
        if (s.holder != address(0)) {
            return !s.verifies || beacon.recorded(s.dutyRound) ? 0 : s.dutyFixedAt + 2 * PATIENCE;
        }
        if (s.until != 0 || beacon.recorded(s.round)) return 0;
        return s.fixedAt + (_replaced[taskId][s.number] ? PATIENCE : 2 * PATIENCE);
    }

    /// @dev Nobody can enrol between the choice of a round and its seed and count in it.
    function _fixRound(bytes32 taskId, Seating storage s) private {
        (s.round, s.fixedAt) = (beacon.nextRound(), uint64(block.timestamp));
        emit SeatOpened(taskId, s.number, s.verifies, s.round, s.fixedAt, s.stake);
    }

    function _empty(bytes32 taskId) private view returns (Seating storage s) {
        s = _seatings[taskId];
        if (s.number == 0 || s.holder != address(0) || s.left) revert NoSeat(taskId);
    }

    /// @dev The seating stays readable until the next one is opened: what it planted can be caught after the task is
    /// closed.
    function _leave(bytes32 taskId, bool slashed) private returns (Seating storage s) {
        s = _seatings[taskId];
        if (s.number == 0 || s.left) revert NoSeat(taskId);
        s.left = true;
        emit SeatLeft(taskId, s.number, s.holder, slashed);
        registry.seat(taskId, s.number, address(0));
    }
}
