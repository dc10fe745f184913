// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "../commitments/CheckpointLog.sol";
import {IStakeVault} from "../incentives/IStakeVault.sol";
import {KIND_DISTANCE, KIND_REFERENCE} from "../dispute/DisputeKinds.sol";
import {IDisputeGame, StartParams} from "../dispute/IDisputeGame.sol";
import {IDisputeResolver} from "../dispute/IDisputeResolver.sol";
import {Announcements} from "./Announcements.sol";
import {IProfiles} from "./IProfiles.sol";
import {ITaskRegistry} from "./ITaskRegistry.sol";
import {Market, MarketDesk} from "./MarketDesk.sol";
import {ProfileEvidence} from "./ProfileEvidence.sol";
import {ProfileThreshold} from "./ProfileThreshold.sol";
import {Charge, Opening, Portion, Profile, ProfileDispute, Reordered, Rerun, Witness} from "./ProfileTypes.sol";
import {Split} from "./Split.sol";
import {Ending, Status, Task, Terms} from "./TaskTypes.sol";

/// @title Profiles
/// @notice See `IProfiles` for the protocol and its assumptions.
/// @dev Bonds are locked under the task's id.
contract Profiles is IProfiles, IDisputeResolver, MarketDesk, Announcements {
    /// @notice Arbitrates challenges of profiles; the game of the verdicts is another instance, for a game has one
    /// resolver.
    IDisputeGame public game;

    mapping(bytes32 taskId => Profile) private _profiles;
    mapping(uint256 number => ProfileDispute) private _disputes;

    constructor(IStakeVault vault_) MarketDesk(vault_) {}

    /// @dev The game's resolver is this contract, so neither can know the other when it is made.
    function _wired(Market calldata m) internal override {
        game = m.profileGame;
    }

    /// @inheritdoc IProfiles
    function post(
        bytes32 taskId,
        Portion[] calldata portions,
        bytes32 rerunRoot,
        Witness[3] calldata witnesses,
        bytes32 digest
    ) external {
        Terms memory s = _termsFor(taskId);
        Profile storage p = _profiles[taskId];
        if (p.verifier != address(0)) revert ProfileAlreadyPosted();
        if (rerunRoot == 0 || digest == 0) revert ITaskRegistry.ZeroHash();
        if (portions.length != s.profiled) revert WrongPortionCount(s.profiled);
        for (uint256 k = 0; k < portions.length; ++k) {
            if (portions[k].end == 0) revert ITaskRegistry.ZeroHash();
        }
        (p.verifier, p.deadline, p.number) = (_party(), _from(s.profileWindow), p.number + 1);
        p.portions = keccak256(abi.encode(portions));
        p.rerunRoot = rerunRoot;
        p.thresholds = ProfileEvidence.thresholdsOf(s, portions, rerunRoot, witnesses);
        _emitPosted(taskId, p, portions, witnesses, digest);
        registry.advance(taskId, Status.Profiling, Status.Profiling, 0);
    }

    /// @inheritdoc IProfiles
    function challengePortion(bytes32 taskId, Portion[] calldata portions, uint32 segment, Opening calldata opening)
        external
    {
        (Profile storage p, Terms memory s) = _contested(taskId, portions);
        ProfileEvidence.requirePart(segment, 1, portions.length);
        StartParams memory params = ProfileEvidence.replayOf(s, portions, segment);
        params.program = s.program;
        params.end = portions[segment].end;
        _start(taskId, p, s, params, opening, Charge.Portion, segment);
    }

    /// @inheritdoc IProfiles
    function challengeRerun(
        bytes32 taskId,
        Portion[] calldata portions,
        Witness calldata rerun,
        Reordered calldata reordered,
        Opening calldata opening
    ) external {
        (Profile storage p, Terms memory s) = _contested(taskId, portions);
        ProfileEvidence.requireRerun(s, p.rerunRoot, rerun);
        uint32 j = rerun.index % s.rerunCount;
        if (!CheckpointLog.isIncluded(reordered.program, j, s.rerunCount + s.looks, s.reruns, reordered.path)) {
            revert NotInPrograms(j);
        }
        StartParams memory params = ProfileEvidence.replayOf(s, portions, rerun.index / s.rerunCount);
        params.program = reordered.program;
        params.end = rerun.rerun.end;
        _start(taskId, p, s, params, opening, Charge.Rerun, rerun.index);
    }

    /// @inheritdoc IProfiles
    function challengeDistance(
        bytes32 taskId,
        Portion[] calldata portions,
        Witness calldata rerun,
        uint8 component,
        Opening calldata opening
    ) external {
        (Profile storage p, Terms memory s) = _contested(taskId, portions);
        ProfileEvidence.requireRerun(s, p.rerunRoot, rerun);
        ProfileEvidence.requirePart(rerun.index / s.rerunCount, component, portions.length);
        StartParams memory params;
        params.program = s.program;
        params.kind = KIND_DISTANCE;
        params.component = component;
        params.x = portions[rerun.index / s.rerunCount].end;
        params.y = rerun.rerun.end;
        params.sum = rerun.rerun.distances[component - 1];
        _start(taskId, p, s, params, opening, Charge.Distance, rerun.index);
    }

    /// @inheritdoc IProfiles
    function challengeReference(
        bytes32 taskId,
        Portion[] calldata portions,
        uint32 segment,
        uint8 component,
        Opening calldata opening
    ) external {
        (Profile storage p, Terms memory s) = _contested(taskId, portions);
        ProfileEvidence.requirePart(segment, component, portions.length);
        StartParams memory params;
        params.program = s.program;
        params.kind = KIND_REFERENCE;
        params.component = component;
        params.x = portions[segment].end;
        params.y = ProfileEvidence.startOf(s, portions, segment);
        params.sum = portions[segment].references[component - 1];
        _start(taskId, p, s, params, opening, Charge.Reference, segment);
    }

    /// @inheritdoc IProfiles
    function convict(bytes32 taskId, Portion[] calldata portions, Witness calldata rerun, uint8 component) external {
        (Profile storage p, Terms memory s) = _contested(taskId, portions);
        ProfileEvidence.requireRerun(s, p.rerunRoot, rerun);
        uint32 segment = rerun.index / s.rerunCount;
        ProfileEvidence.requirePart(segment, component, portions.length);
        uint256 c = component - 1;
        uint64 demanded =
            ProfileThreshold.fromRerun(rerun.rerun.distances[c], portions[segment].references[c], s.margin);
        // A zero end is no state: no dispute could be about it.
        if (rerun.rerun.end != 0 && demanded != 0 && demanded <= p.thresholds[c]) {
            revert NotUnderstated(p.thresholds[c]);
        }
        _requireAnnounced(taskId, keccak256(abi.encode(rerun, component)));
        emit ProfileUnderstated(taskId, p.number, rerun.index, component);
        _forget(taskId, p);
        _void(taskId, _party());
    }

    /// @inheritdoc IDisputeResolver
    function onResolved(uint256 number, bool asserterWon) external only(address(game)) {
        ProfileDispute storage d = _existing(number);
        // Nothing below may fail for a dispute that there is: the game could never end it.
        if (d.ending != Ending.None) return;
        if (asserterWon) {
            d.ending = Ending.Stood;
            return;
        }
        Profile storage p = _profiles[d.taskId];
        if (_isAbout(d, p) && !p.fell) (d.ending, p.fell) = (Ending.Fell, true);
    }

    /// @inheritdoc IProfiles
    function settleDispute(uint256 number) external {
        ProfileDispute storage d = _existing(number);
        (bytes32 taskId, Ending ending) = (d.taskId, d.ending);
        Profile storage p = _profiles[taskId];
        bool stands = _isAbout(d, p);
        bool isMoot = !stands || (p.fell && ending != Ending.Fell);
        if (ending == Ending.Settled || (ending == Ending.None && !isMoot)) revert NothingToSettle(number);
        d.ending = Ending.Settled;
        if (stands) --p.open;
        if (isMoot) {
            emit ProfileDisputeMoot(taskId, d.profile, number);
            vault.unlock(taskId, d.challenger, d.bond);
        } else if (ending == Ending.Stood) {
            emit ProfileDisputeSettled(taskId, d.profile, number, true);
            _slash(taskId, d.challenger, d.bond, p.verifier, Split.VERIFIER_OF_BOND);
        } else {
            emit ProfileDisputeSettled(taskId, d.profile, number, false);
            _forget(taskId, p);
            vault.unlock(taskId, d.challenger, d.bond);
            _void(taskId, d.challenger);
        }
    }

    /// @inheritdoc IProfiles
    function conclude(bytes32 taskId) external {
        _expect(taskId, Status.Profiling);
        Profile storage p = _profiles[taskId];
        _requireFinal(taskId, p);
        p.concluded = true;
        emit ProfileConcluded(taskId, p.number, p.verifier);
        seats.release(taskId);
        settlement.payProfiler(taskId, p.verifier);
        registry.openBidding(taskId);
    }

    /// @inheritdoc IProfiles
    function cancel(bytes32 taskId) external only(address(registry)) {
        if (_profiles[taskId].verifier != address(0)) revert Contestable(_profiles[taskId].deadline);
        seats.release(taskId);
    }

    /// @inheritdoc IProfiles
    function thresholds(bytes32 taskId) external view returns (uint64[3] memory) {
        Profile storage p = _profiles[taskId];
        if (!p.concluded) revert NoProfile(taskId);
        return p.thresholds;
    }

    /// @inheritdoc IProfiles
    function profiler(bytes32 taskId) external view returns (address) {
        return _profiles[taskId].verifier;
    }

    /// @inheritdoc IProfiles
    function profile(bytes32 taskId) external view returns (Profile memory) {
        return _profiles[taskId];
    }

    /// @inheritdoc IProfiles
    function dispute(uint256 number) external view returns (ProfileDispute memory) {
        return _disputes[number];
    }

    /// @inheritdoc IProfiles
    function bondOf(bytes32 taskId) external view returns (uint128) {
        return _bondOf(registry.terms(taskId), _profiles[taskId]);
    }

    /// @dev The terms of an open task that is to be profiled, for its verifier.
    function _termsFor(bytes32 taskId) private view returns (Terms memory s) {
        Task memory t = _expect(taskId, Status.Profiling);
        _requireParty(t.holder);
        if (_profiles[taskId].verifier == address(0)) _notAfter(t.deadline);
        s = registry.terms(taskId);
    }

    function _emitPosted(
        bytes32 taskId,
        Profile storage p,
        Portion[] calldata portions,
        Witness[3] calldata witnesses,
        bytes32 digest
    ) private {
        bytes32 rerunRoot = p.rerunRoot;
        emit ProfilePosted(
            taskId, p.number, p.verifier, portions, rerunRoot, witnesses, p.thresholds, digest, p.deadline
        );
    }

    /// @dev A profile that can still be challenged, by anybody but who answers for it.
    function _contested(bytes32 taskId, Portion[] calldata portions)
        private
        view
        returns (Profile storage p, Terms memory s)
    {
        p = _profiles[taskId];
        address verifier = p.verifier;
        if (verifier == address(0)) revert NoProfile(taskId);
        if (p.fell) revert ProfileFell(taskId);
        _notAfter(p.deadline);
        _requireOther(verifier);
        if (keccak256(abi.encode(portions)) != p.portions) revert WrongPortions();
        s = registry.terms(taskId);
    }

    /// @dev Takes the bond and opens the dispute.
    // The contract called is part of the deployment and calls nobody: nothing moves the profile before its number is
    // known.
    // slither-disable-next-line reentrancy-events,reentrancy-benign
    function _start(
        bytes32 taskId,
        Profile storage p,
        Terms memory s,
        StartParams memory params,
        Opening calldata opening,
        Charge charge,
        uint32 index
    ) private {
        params.asserter = p.verifier;
        params.challenger = _party();
        params.clock = _queued(s.clock, p.open);
        uint128 bond = _bondOf(s, p);
        if (bond > opening.mostBond) revert BondTooHigh(bond);
        _requireAnnounced(taskId, keccak256(abi.encode(charge, index, params.component, keccak256(opening.payload))));
        vault.lock(taskId, params.challenger, bond);
        uint256 number = game.start(params, opening.header, opening.payload);
        _disputes[number] = ProfileDispute(taskId, params.challenger, p.number, Ending.None, bond);
        (p.challenges, p.open) = (p.challenges + 1, p.open + 1);
        emit ProfileChallenged(taskId, p.number, params.challenger, number, charge, index, params.component, bond);
    }

    function _bondOf(Terms memory s, Profile storage p) private view returns (uint128) {
        return uint128(Split.bondOf(s.bond, s.verifierStake, p.challenges));
    }

    /// @dev The window is over and nobody waits for a dispute.
    function _requireFinal(bytes32 taskId, Profile storage p) private view {
        if (p.verifier == address(0)) revert NoProfile(taskId);
        if (block.timestamp <= p.deadline) revert Contestable(p.deadline);
        if (p.open > 0) revert DisputesOpen(p.open);
    }

    /// @dev The profiler loses its stake, and the task is profiled anew.
    function _void(bytes32 taskId, address challenger) private {
        seats.slash(taskId, challenger, Split.CHALLENGER_OF_VERIFIER_STAKE);
        seats.open(taskId, false);
    }

    /// @dev All but the number, by which disputes about this profile are told from those about the next.
    function _forget(bytes32 taskId, Profile storage p) private {
        uint32 number = p.number;
        delete _profiles[taskId];
        p.number = number;
        emit ProfileGone(taskId, number);
    }

    /// @dev Whoever challenges is somebody.
    function _existing(uint256 number) private view returns (ProfileDispute storage d) {
        d = _disputes[number];
        if (d.challenger == address(0)) revert UnknownDispute(number);
    }

    /// @dev The profile is the one that is disputed: while a dispute about it is open its profiler does not leave.
    function _isAbout(ProfileDispute storage d, Profile storage p) private view returns (bool) {
        return p.verifier != address(0) && p.number == d.profile;
    }
}
