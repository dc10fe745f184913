// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Desk} from "../../../contracts/incentives/Desk.sol";
import {ForcedErrors} from "../../../contracts/incentives/ForcedErrors.sol";
import {ISeatings} from "../../../contracts/incentives/ISeatings.sol";
import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";
import {Jackpot} from "../../../contracts/incentives/Jackpot.sol";
import {Sortition} from "../../../contracts/incentives/Sortition.sol";
import {Claim} from "../../../contracts/market/TaskTypes.sol";

/// @notice The path of a task as far as chance and duty see it: seat, verdict, watch, disclosure, closing. Seeds are
/// given, and anybody may act: who may is not what is tested here.
contract SeatingDesk is ISeatings, Desk {
    struct Seating {
        address verifier;
        bytes32 commitment;
        bytes32 seed; // of the planted error
        uint64 since;
        bytes32 watchSeed;
        uint64 watchUntil;
        bytes32 sealedClaim;
        bool disclosed;
        bool isPlanted;
        uint32 index;
    }

    struct Path {
        address submitter;
        address solver;
        uint32 number;
        uint64 closed;
        bool kept; // for catches of earlier seatings, or of claims that were corrected
    }

    uint64 public constant WATCH_WINDOW = 1 hours;

    Sortition public sortition;
    Jackpot public jackpot;
    mapping(bytes32 taskId => Path) public paths;
    mapping(bytes32 taskId => mapping(uint32 number => Seating)) public seats;
    mapping(bytes32 taskId => mapping(uint32 number => Claim[])) private _claims; // as they stand
    mapping(bytes32 taskId => mapping(uint32 number => bytes32[])) private _said; // replays as they were posted

    error Unordered();

    constructor(IStakeVault vault_) Desk(vault_) {}

    function wire(Sortition sortition_, Jackpot jackpot_) external wiring {
        (sortition, jackpot) = (sortition_, jackpot_);
    }

    function open(bytes32 taskId, address submitter, address solver) external {
        if (paths[taskId].submitter != address(0)) revert Unordered();
        (paths[taskId].submitter, paths[taskId].solver) = (submitter, solver);
    }

    /// @notice The seat is decided: its seed comes later than the commitment.
    function seat(bytes32 taskId, address verifier, bytes32 commitment, bytes32 seed, uint128 amount) external {
        Path storage path = paths[taskId];
        if (path.submitter == address(0) || path.closed != 0) revert Unordered();
        uint32 number = ++path.number;
        Seating storage s = seats[taskId][number];
        (s.verifier, s.commitment, s.seed) = (verifier, commitment, seed);
        if (amount != 0) jackpot.reserve(taskId, amount);
    }

    function post(bytes32 taskId, Claim[] calldata claims, bytes32 sealedClaim) external {
        (Seating storage s, Claim[] storage posted) = _current(taskId);
        if (s.since != 0) revert Unordered();
        (s.since, s.sealedClaim) = (uint64(block.timestamp), sealedClaim);
        for (uint256 i = 0; i < claims.length; ++i) {
            posted.push(claims[i]);
            _said[taskId][paths[taskId].number].push(claims[i].replay);
        }
    }

    /// @notice The beacon gives the seed of the watchers' round.
    function draw(bytes32 taskId, bytes32 seed) external {
        (Seating storage s,) = _current(taskId);
        if (s.since == 0 || s.watchSeed != 0) revert Unordered();
        (s.watchSeed, s.watchUntil) = (seed, uint64(block.timestamp) + WATCH_WINDOW);
    }

    /// @notice Puts the sealed claim where the error was, if there had to be one. Reverts if the duty is broken.
    function disclose(bytes32 taskId, bytes32 secret, bytes32 salt, Claim calldata truth) external {
        (Seating storage s, Claim[] storage posted) = _current(taskId);
        uint32 number = paths[taskId].number;
        if (s.watchUntil == 0 || block.timestamp <= s.watchUntil || s.disclosed) revert Unordered();
        if (ForcedErrors.commitment(s.verifier, taskId, secret) != s.commitment) revert Unordered();
        s.disclosed = true;
        if (!ForcedErrors.isForced(jackpot.rate(), s.seed, taskId, number, secret)) return;
        uint32 index = ForcedErrors.index(s.seed, taskId, number, secret, uint32(posted.length));
        Claim memory wrong = truth;
        wrong.replay = ForcedErrors.errorRoot(s.seed, taskId, number, secret);
        if (keccak256(abi.encode(posted[index])) != keccak256(abi.encode(wrong))) revert Unordered();
        if (ForcedErrors.sealedClaim(taskId, number, salt, truth) != s.sealedClaim) revert Unordered();
        (posted[index], s.isPlanted, s.index) = (truth, true, index);
    }

    /// @notice What a claim that was disputed says after it.
    function correct(bytes32 taskId, uint32 index, bytes32 replay) external {
        (, Claim[] storage posted) = _current(taskId);
        if (paths[taskId].closed != 0) revert Unordered();
        posted[index].replay = replay;
        paths[taskId].kept = true;
    }

    /// @notice The seat is empty, and the next one begins anew; what has been found counts in the end.
    function unseat(bytes32 taskId) external {
        (Seating storage s,) = _current(taskId);
        (s.watchSeed, s.watchUntil) = (0, 0);
        paths[taskId].kept = true;
    }

    function close(bytes32 taskId) external {
        (Seating storage s,) = _current(taskId);
        if (paths[taskId].closed != 0 || !s.disclosed) revert Unordered();
        paths[taskId].closed = uint64(block.timestamp);
        if (!s.isPlanted && !paths[taskId].kept) jackpot.release(taskId);
    }

    function reserve(bytes32 taskId, uint128 amount) external {
        jackpot.reserve(taskId, amount);
    }

    function release(bytes32 taskId) external {
        jackpot.release(taskId);
    }

    function seating(bytes32 taskId) external view returns (uint32, uint64, bytes32, uint64) {
        uint32 number = paths[taskId].number;
        Seating storage s = seats[taskId][number];
        return (number, s.since, s.watchSeed, s.watchUntil);
    }

    function isParty(bytes32 taskId, address account) external view returns (bool) {
        Path storage path = paths[taskId];
        return account == path.submitter || account == path.solver || account == seats[taskId][path.number].verifier;
    }

    function closedAt(bytes32 taskId) external view returns (uint64) {
        return paths[taskId].closed;
    }

    /// @dev The evidence: of which seating the claim is that stands in the end.
    function refuted(bytes32 taskId, uint32 number, uint32 index, bytes calldata evidence)
        external
        view
        returns (bytes32 entry)
    {
        uint32 last = abi.decode(evidence, (uint32));
        // Here a root is all that an entry says.
        entry = _claims[taskId][last][index].replay;
        bool same = _said[taskId][number][index] == entry;
        if (paths[taskId].closed == 0 || last != paths[taskId].number || same) revert Unordered();
    }

    function _current(bytes32 taskId) private view returns (Seating storage, Claim[] storage) {
        uint32 number = paths[taskId].number;
        return (seats[taskId][number], _claims[taskId][number]);
    }
}
