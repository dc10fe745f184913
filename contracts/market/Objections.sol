// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "../commitments/CheckpointLog.sol";
import {IStakeVault} from "../incentives/IStakeVault.sol";
import {KIND_REPLAY} from "../dispute/DisputeKinds.sol";
import {IDisputeGame, StartParams} from "../dispute/IDisputeGame.sol";
import {IDisputeResolver} from "../dispute/IDisputeResolver.sol";
import {Announcements} from "./Announcements.sol";
import {IObjections, ObjectionCount, Objection, Segment} from "./IObjections.sol";
import {IProofRegistry, ProofOfTask} from "./IProofRegistry.sol";
import {IProvenSteps} from "./IProvenSteps.sol";
import {ITaskRegistry} from "./ITaskRegistry.sol";
import {Market, MarketDesk} from "./MarketDesk.sol";
import {Opening} from "./ProfileTypes.sol";
import {Split} from "./Split.sol";
import {Ending, Status, Task, Terms} from "./TaskTypes.sol";

/// @title Objections
/// @notice See `IObjections`.
/// @dev Bonds are locked under the task's id.
contract Objections is IObjections, IDisputeResolver, MarketDesk, Announcements {
    /// @notice Gas of one side in the longest dispute (docs/goals.md), which half of a bond pays at the base fee of the
    /// objection.
    uint256 public constant DEFENSE_GAS = 1_000_000;

    /// @notice Arbitrates.
    IDisputeGame public game;
    /// @notice Knows what was proved in zero knowledge.
    IProvenSteps public immutable provenSteps;
    /// @notice What a defense costs on top of gas. Where the asset is a token it has to pay for the gas too: no rate is
    /// known here.
    uint128 public immutable price;
    bool private immutable paysGas;
    /// @dev Arbitrates contests of counterclaims.
    IDisputeGame private _contestGame;

    mapping(bytes32 taskId => ObjectionCount) private _objected;
    mapping(uint256 number => Objection) private _objections;

    /// @param provenSteps_ Of the same market.
    constructor(IStakeVault vault_, IProvenSteps provenSteps_, uint128 price_) MarketDesk(vault_) {
        (provenSteps, price, paysGas) = (provenSteps_, price_, vault_.asset() == address(0));
    }

    /// @dev The game's resolver is this contract, so neither can know the other when it is made.
    function _wired(Market calldata m) internal override {
        (game, _contestGame) = (m.objectionGame, m.counterclaimGame);
    }

    /// @inheritdoc IObjections
    // The contract called is part of the deployment and calls nobody: nothing moves the task before its number is
    // known.
    // slither-disable-next-line reentrancy-events,reentrancy-benign
    function object(bytes32 taskId, Segment calldata segment, Opening calldata opening)
        external
        returns (uint256 number)
    {
        Terms memory s = registry.terms(taskId);
        if (s.margin != 0) revert NotExact(taskId);
        address objector = _party();
        (Task memory t, uint128 bond, uint256 open) = _enter(taskId, s, objector, segment, opening.mostBond);
        _requireAnnounced(taskId, keccak256(abi.encode(segment.index, keccak256(opening.payload))));
        StartParams memory params = _started(s, t.solver, objector, segment);
        params.clock = _queued(s.clock, open);
        vault.lock(taskId, objector, bond);
        number = game.start(params, opening.header, opening.payload);
        _objections[number] = Objection(taskId, objector, t.began, segment.index, Ending.None, bond);
        emit Objected(taskId, t.began, objector, number, segment.index, bond);
    }

    /// @inheritdoc IObjections
    function objectToZero(bytes32 taskId, uint64 entry, bytes32[] calldata path) external {
        address objector = _party();
        Task memory t = _disputable(taskId, objector);
        ProofOfTask memory p = proofs.proof(taskId);
        if (!CheckpointLog.isIncluded(0, entry, p.size, p.root, path)) revert NotZero(entry);
        _requireAnnounced(taskId, keccak256(abi.encode(entry)));
        emit ZeroShown(taskId, t.began, objector, entry);
        _reject(_current(taskId, t.began), taskId, objector, 0);
    }

    /// @inheritdoc IObjections
    function admit(bytes32 taskId, address objector, Segment calldata segment, uint128 mostBond)
        external
        only(address(counterclaims))
        returns (uint128 bond, uint64 began, uint64 until)
    {
        Terms memory s = registry.terms(taskId);
        (Task memory t, uint128 owed, uint256 open) = _enter(taskId, s, objector, segment, mostBond);
        // The solver contests one counterclaim after the other, with one bond: the window of each begins when the
        // longest contest of the one before is over.
        until = _from(s.challengeWindow);
        if (open > 0) until += uint64(open * (s.challengeWindow + _contestGame.longest(s.clock)));
        return (owed, t.began, until);
    }

    /// @inheritdoc IObjections
    function conclude(bytes32 taskId, address objector, uint256 bond) external only(address(counterclaims)) {
        ObjectionCount storage c = _objected[taskId];
        --c.open;
        if (objector != address(0)) _reject(c, taskId, objector, bond);
    }

    /// @inheritdoc IDisputeResolver
    function onResolved(uint256 number, bool asserterWon) external only(address(game)) {
        // Nothing below may fail for a dispute that there is: the game could never end it.
        _end(_existing(number), asserterWon);
    }

    /// @inheritdoc IObjections
    function settleByProof(uint256 number, Segment calldata segment, bytes32 shown) external {
        Objection storage o = _existing(number);
        bytes32 taskId = o.taskId;
        if (o.ending != Ending.None || o.began != registry.task(taskId).began) revert NothingToSettle(number);
        if (o.segment != segment.index) revert OtherSegment(o.segment);
        Terms memory s = registry.terms(taskId);
        _requireInLog(taskId, segment, s.steps / s.interval);
        bool stood = provenSteps.leadsTo(taskId, segment.index, segment.start, segment.end, shown);
        emit ObjectionProven(taskId, o.began, number, stood);
        _end(o, stood);
    }

    /// @inheritdoc IObjections
    // Desks, game and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-events
    function settleDispute(uint256 number) external {
        Objection storage o = _existing(number);
        (bytes32 taskId, Ending ending, uint64 began) = (o.taskId, o.ending, o.began);
        // No solver leaves a task, and no task ends, while an objection is open.
        ObjectionCount storage c = _objected[taskId];
        bool isMoot = c.fell && ending != Ending.Fell;
        if (ending == Ending.Settled || (ending == Ending.None && !isMoot)) revert NothingToSettle(number);
        o.ending = Ending.Settled;
        --c.open;
        if (isMoot) {
            emit ObjectionMoot(taskId, began, number);
            vault.unlock(taskId, o.objector, o.bond);
        } else if (ending == Ending.Stood) {
            emit ObjectionSettled(taskId, began, number, true);
            _slash(taskId, o.objector, o.bond, registry.task(taskId).solver, Split.WINNER_OF_BOND);
        } else {
            emit ObjectionSettled(taskId, began, number, false);
            vault.unlock(taskId, o.objector, o.bond);
            settlement.payObjector(taskId, o.objector, o.bond);
        }
    }

    /// @inheritdoc IObjections
    function objection(uint256 number) external view returns (Objection memory) {
        return _objections[number];
    }

    /// @inheritdoc IObjections
    function objected(bytes32 taskId) public view returns (ObjectionCount memory c) {
        c = _objected[taskId];
        uint64 began = registry.task(taskId).began;
        if (c.began != began) c = ObjectionCount(began, 0, 0, false);
    }

    /// @inheritdoc IObjections
    function bondOf(bytes32 taskId) external view returns (uint128) {
        return _bond(registry.terms(taskId), registry.task(taskId).price, objected(taskId).objections);
    }

    /// @dev Counts another objection to a segment that its party may dispute; the bond is the caller's to lock.
    /// @return t The task.
    /// @return bond What is to be locked.
    /// @return open How many others are open.
    function _enter(bytes32 taskId, Terms memory s, address objector, Segment calldata segment, uint128 mostBond)
        private
        returns (Task memory t, uint128 bond, uint256 open)
    {
        t = _disputable(taskId, objector);
        _requireInLog(taskId, segment, s.steps / s.interval);
        if (segment.start == 0) revert ZeroState(segment.index);
        if (segment.end == 0) revert ZeroState(uint64(segment.index) + 1);
        if (t.status != Status.Contested) _requireNotDrawn(taskId, segment.index);
        ObjectionCount storage c = _current(taskId, t.began);
        bond = _bond(s, t.price, c.objections);
        if (bond > mostBond) revert BondTooHigh(bond);
        ++c.objections;
        open = c.open++;
    }

    /// @dev The proof is rejected, and who has shown it is paid.
    function _reject(ObjectionCount storage c, bytes32 taskId, address objector, uint256 bond) private {
        c.fell = true;
        settlement.payObjector(taskId, objector, bond);
    }

    /// @dev A log that somebody else than its solver may still dispute.
    function _disputable(bytes32 taskId, address objector) private view returns (Task memory t) {
        t = registry.task(taskId);
        if (t.status < Status.Committed || t.status > Status.Contested) {
            revert ITaskRegistry.WrongStatus(taskId, t.status);
        }
        if (t.status == Status.Contested) _notAfter(t.deadline);
        if (objector == t.solver) revert NotAllowed(objector);
        ObjectionCount storage c = _objected[taskId];
        if (c.began == t.began && c.fell) revert ProofFell(taskId);
        // The training ends as soon as no objection is open.
        if (t.status == Status.Committed && settlement.unservedBy(taskId)[1] != address(0)) revert ProofFell(taskId);
    }

    function _requireInLog(bytes32 taskId, Segment calldata segment, uint64 segments) private view {
        uint64 first = segment.index;
        if (first >= segments) revert NoSuchSegment(segment.index);
        ProofOfTask memory p = proofs.proof(taskId);
        if (!CheckpointLog.isIncluded(segment.start, first, p.size, p.root, segment.logProof.start)) {
            revert IProofRegistry.NotInLog(first);
        }
        if (!CheckpointLog.isIncluded(segment.end, first + 1, p.size, p.root, segment.logProof.end)) {
            revert IProofRegistry.NotInLog(first + 1);
        }
    }

    /// @dev A dispute about what is drawn would say who has planted an error, before that is disclosed.
    function _requireNotDrawn(bytes32 taskId, uint32 segment) private view {
        if (!proofs.isDrawn(taskId)) return;
        uint32[] memory drawn = proofs.drawnSegments(taskId);
        for (uint256 i = 0; i < drawn.length; ++i) {
            if (drawn[i] == segment) revert LeftToVerdict(segment);
        }
    }

    /// @dev The solver says that its segment leads from where to where; the caller doesn't believe it.
    function _started(Terms memory s, address solver, address objector, Segment calldata segment)
        private
        pure
        returns (StartParams memory params)
    {
        params.asserter = solver;
        params.challenger = objector;
        params.program = s.program;
        params.constants = s.constants;
        params.kind = KIND_REPLAY;
        params.firstStep = uint64(segment.index) * s.interval;
        params.steps = s.interval;
        (params.start, params.end) = (segment.start, segment.end);
    }

    /// @dev What the first of game and proof says. The other comes too late.
    function _end(Objection storage o, bool asserterWon) private {
        if (o.ending != Ending.None) return;
        if (asserterWon) {
            o.ending = Ending.Stood;
            return;
        }
        ObjectionCount storage c = _objected[o.taskId];
        if (!c.fell) (o.ending, c.fell) = (Ending.Fell, true);
    }

    /// @dev Counts start anew with each solver.
    function _current(bytes32 taskId, uint64 began) private returns (ObjectionCount storage c) {
        c = _objected[taskId];
        if (c.began != began) (c.began, c.objections, c.open, c.fell) = (began, 0, 0, false);
    }

    /// @dev Whoever objects is somebody.
    function _existing(uint256 number) private view returns (Objection storage o) {
        o = _objections[number];
        if (o.objector == address(0)) revert UnknownDispute(number);
    }

    /// @dev What a segment costs is not known here, but what is paid for one is: the greater of what solver and
    /// verifier get for it.
    function _bond(Terms memory s, uint128 agreed, uint256 earlier) private view returns (uint128) {
        // Reruns of a second look are executed like the segment itself.
        uint256 defense =
            Split.segmentPrice(agreed, s.steps / s.interval, s.verifierFee, s.draws) * (1 + s.looks) + price;
        if (paysGas) defense += DEFENSE_GAS * block.basefee;
        uint256 stake = Split.slashable(s.solverStake, s.verifierFee, s.looks, s.draws);
        return uint128(Split.objectionBond(2 * defense, stake, earlier));
    }
}
