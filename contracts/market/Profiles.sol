// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "../commitments/CheckpointLog.sol";
import {IDisputeGame, KIND_DISTANCE, KIND_REFERENCE, KIND_REPLAY, StartParams} from "../interfaces/IDisputeGame.sol";
import {IDisputeResolver} from "../interfaces/IDisputeResolver.sol";
import {IProfiles} from "./IProfiles.sol";
import {ITaskMarket} from "./ITaskMarket.sol";
import {Ledger} from "./Ledger.sol";
import {ProfileThreshold} from "./ProfileThreshold.sol";
import {Charge, Opening, Portion, Profile, ProfileDispute, Reordered, Witness} from "./ProfileTypes.sol";
import {Settlement} from "./Settlement.sol";
import {Status, Task, Terms} from "./TaskTypes.sol";

/// @title Profiles
/// @notice See `IProfiles` for the protocol and its assumptions.
/// @dev Every function checks, then writes, then calls. The only foreign code that runs is the market and the game, both fixed for ever,
/// and the receiver in `withdraw`. Wei held = wei credited + bonds that are not paid out, after every call.
contract Profiles is IProfiles, IDisputeResolver, Ledger {
    /// @notice Knows tasks and terms, and holds the verifier's stake.
    ITaskMarket public immutable market;
    /// @notice Is credited what no party gets.
    address public immutable treasury;
    /// @notice Arbitrates challenges of profiles; the game of the verdicts is another instance, for a game has one resolver.
    IDisputeGame public game;

    address private immutable _deployer;
    mapping(bytes32 taskId => Profile) private _profiles;
    mapping(uint256 number => ProfileDispute) private _disputes;

    uint8 private constant COMPONENTS = 3;

    /// @param market_ Whose tasks are profiled.
    /// @param treasury_ Gets what lost bonds leave; must be able to call `withdraw`.
    constructor(ITaskMarket market_, address treasury_) {
        if (address(market_) == address(0) || treasury_ == address(0)) revert ITaskMarket.NotAllowed(address(0));
        market = market_;
        treasury = treasury_;
        _deployer = msg.sender;
    }

    /// @notice Names the game, by the deployer and once. No profile is posted before.
    function setGame(address game_) external {
        if (msg.sender != _deployer) revert ITaskMarket.NotAllowed(msg.sender);
        if (address(game) != address(0)) revert GameAlreadySet();
        if (game_.code.length == 0) revert GameNotSet();
        game = IDisputeGame(game_);
        emit GameSet(game_);
    }

    /// @inheritdoc IProfiles
    function post(
        bytes32 taskId,
        Portion[] calldata portions,
        bytes32 rerunRoot,
        Witness[3] calldata witnesses,
        bytes32 digest
    ) external {
        if (address(game) == address(0)) revert GameNotSet();
        Terms memory s = _termsFor(taskId);
        Profile storage p = _profiles[taskId];
        if (p.verifier != address(0)) revert ProfileAlreadyPosted();
        if (rerunRoot == 0 || digest == 0) revert ITaskMarket.ZeroHash();
        if (portions.length != s.profiled) revert WrongPortionCount(s.profiled);
        for (uint256 k = 0; k < portions.length; ++k) {
            if (portions[k].end == 0) revert ITaskMarket.ZeroHash();
        }
        p.verifier = msg.sender;
        p.deadline = uint64(block.timestamp) + s.profileWindow;
        ++p.number;
        p.portions = keccak256(abi.encode(portions));
        p.rerunRoot = rerunRoot;
        p.thresholds = _thresholdsOf(s, portions, rerunRoot, witnesses);
        _emitPosted(taskId, p, portions, witnesses, digest);
    }

    /// @inheritdoc IProfiles
    function challengePortion(bytes32 taskId, Portion[] calldata portions, uint32 segment, Opening calldata opening)
        external
        payable
    {
        (Profile storage p, Terms memory s) = _contested(taskId, portions);
        _requirePart(segment, 1, portions.length);
        StartParams memory params = _replay(s, portions, segment);
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
    ) external payable {
        (Profile storage p, Terms memory s) = _contested(taskId, portions);
        _requireRerun(s, p.rerunRoot, rerun);
        uint32 j = rerun.index % s.rerunCount;
        if (!CheckpointLog.isIncluded(reordered.program, j, s.rerunCount, s.reruns, reordered.path)) {
            revert NotInPrograms(j);
        }
        StartParams memory params = _replay(s, portions, rerun.index / s.rerunCount);
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
    ) external payable {
        (Profile storage p, Terms memory s) = _contested(taskId, portions);
        _requireRerun(s, p.rerunRoot, rerun);
        _requirePart(rerun.index / s.rerunCount, component, portions.length);
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
    ) external payable {
        (Profile storage p, Terms memory s) = _contested(taskId, portions);
        _requirePart(segment, component, portions.length);
        StartParams memory params;
        params.program = s.program;
        params.kind = KIND_REFERENCE;
        params.component = component;
        params.x = portions[segment].end;
        params.y = _startOf(s, portions, segment);
        params.sum = portions[segment].references[component - 1];
        _start(taskId, p, s, params, opening, Charge.Reference, segment);
    }

    /// @inheritdoc IProfiles
    function convict(bytes32 taskId, Portion[] calldata portions, Witness calldata rerun, uint8 component) external {
        (Profile storage p, Terms memory s) = _contested(taskId, portions);
        _requireRerun(s, p.rerunRoot, rerun);
        uint32 segment = rerun.index / s.rerunCount;
        _requirePart(segment, component, portions.length);
        uint256 c = component - 1;
        uint64 demanded =
            ProfileThreshold.fromRerun(rerun.rerun.distances[c], portions[segment].references[c], s.margin);
        // A zero end is no state: no dispute could be about it.
        if (rerun.rerun.end != 0 && demanded != 0 && demanded <= p.thresholds[c]) {
            revert NotUnderstated(p.thresholds[c]);
        }
        emit ProfileUnderstated(taskId, p.number, rerun.index, component);
        _forget(taskId, p);
        market.voidProfile(taskId, msg.sender);
    }

    /// @inheritdoc IDisputeResolver
    function onResolved(uint256 number, bool asserterWon) external {
        if (msg.sender != address(game)) revert ITaskMarket.NotAllowed(msg.sender);
        ProfileDispute storage d = _disputes[number];
        if (d.taskId == 0) revert ITaskMarket.UnknownDispute(number);
        // Nothing below may fail for a dispute that there is: the game could never end it.
        if (d.released) return;
        if (!_isLive(d)) return _releaseMoot(number, d);
        bytes32 taskId = d.taskId;
        Profile storage p = _profiles[taskId];
        d.released = true;
        emit ProfileDisputeResolved(taskId, d.profile, number, asserterWon);
        if (asserterWon) {
            --p.open;
            uint256 share = Settlement.shareDown(d.bond, Settlement.VERIFIER_OF_BOND);
            _credit(taskId, p.verifier, share);
            _credit(taskId, treasury, d.bond - share);
        } else {
            _forget(taskId, p);
            _credit(taskId, d.challenger, d.bond);
            market.voidProfile(taskId, d.challenger);
        }
    }

    /// @inheritdoc IProfiles
    function releaseBond(uint256 number) external {
        ProfileDispute storage d = _disputes[number];
        if (d.taskId == 0) revert ITaskMarket.UnknownDispute(number);
        if (d.released || _isLive(d)) revert ITaskMarket.NotMoot(number);
        _releaseMoot(number, d);
    }

    /// @inheritdoc IProfiles
    function release(bytes32 taskId) external {
        if (msg.sender != address(market)) revert ITaskMarket.NotAllowed(msg.sender);
        Profile storage p = _profiles[taskId];
        if (p.verifier == address(0)) return;
        _requireFinal(p);
        _forget(taskId, p);
    }

    /// @inheritdoc IProfiles
    function thresholds(bytes32 taskId) external view returns (uint64[3] memory) {
        Profile storage p = _profiles[taskId];
        if (p.verifier == address(0)) revert NoProfile(taskId);
        _requireFinal(p);
        return p.thresholds;
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
    function bondOf(bytes32 taskId) external view returns (uint256) {
        return _bondOf(market.terms(taskId), _profiles[taskId]);
    }

    /// @dev The terms of an open task that is to be profiled, for its verifier.
    function _termsFor(bytes32 taskId) private view returns (Terms memory s) {
        Task memory t = market.task(taskId);
        if (t.status != Status.Open) revert ITaskMarket.WrongStatus(taskId, uint8(t.status));
        if (msg.sender != t.verifier) revert ITaskMarket.NotAllowed(msg.sender);
        s = market.terms(taskId);
        if (s.margin == 0) revert ExactMode(taskId);
    }

    /// @dev By component, what follows from its witness.
    function _thresholdsOf(
        Terms memory s,
        Portion[] calldata portions,
        bytes32 rerunRoot,
        Witness[3] calldata witnesses
    ) private pure returns (uint64[3] memory result) {
        for (uint8 c = 0; c < COMPONENTS; ++c) {
            Witness calldata w = witnesses[c];
            if (w.rerun.end == 0) revert ITaskMarket.ZeroHash();
            _requireRerun(s, rerunRoot, w);
            uint256 base = portions[w.index / s.rerunCount].references[c];
            result[c] = ProfileThreshold.fromRerun(w.rerun.distances[c], base, s.margin);
            if (result[c] == 0) revert NoThreshold(c + 1);
        }
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
            taskId, p.number, msg.sender, portions, rerunRoot, witnesses, p.thresholds, digest, p.deadline
        );
    }

    /// @dev A profile that can still be challenged, by anybody but who answers for it.
    function _contested(bytes32 taskId, Portion[] calldata portions)
        private
        view
        returns (Profile storage p, Terms memory s)
    {
        p = _profiles[taskId];
        if (p.verifier == address(0)) revert NoProfile(taskId);
        if (block.timestamp > p.deadline) revert ITaskMarket.DeadlinePassed(p.deadline);
        if (msg.sender == p.verifier) revert ITaskMarket.NotAllowed(msg.sender);
        if (keccak256(abi.encode(portions)) != p.portions) revert WrongPortions();
        s = market.terms(taskId);
    }

    function _requirePart(uint32 segment, uint8 component, uint256 portions) private pure {
        if (segment >= portions || component == 0 || component > COMPONENTS) revert InvalidCharge(segment, component);
    }

    function _requireRerun(Terms memory s, bytes32 root, Witness calldata w) private pure {
        bytes32 leaf = keccak256(abi.encode(w.rerun));
        uint256 size = uint256(s.profiled) * s.rerunCount;
        if (!CheckpointLog.isIncluded(leaf, w.index, size, root, w.path)) revert NotInReruns(w.index);
    }

    /// @dev The state before a profiled segment.
    function _startOf(Terms memory s, Portion[] calldata portions, uint32 segment) private pure returns (bytes32) {
        return segment == 0 ? s.initialState : portions[segment - 1].end;
    }

    /// @dev An execution of a profiled segment; which program's and where it ends says the caller.
    function _replay(Terms memory s, Portion[] calldata portions, uint32 segment)
        private
        pure
        returns (StartParams memory params)
    {
        params.kind = KIND_REPLAY;
        params.constants = s.constants;
        params.firstStep = uint64(segment) * s.interval;
        params.steps = s.interval;
        params.start = _startOf(s, portions, segment);
    }

    /// @dev Takes the bond and opens the dispute.
    // The contract called is part of the deployment and calls nobody: nothing moves the profile before its number is known.
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
        params.challenger = msg.sender;
        params.clock = s.clock;
        uint256 bond = _bondOf(s, p);
        if (msg.value < bond) revert ITaskMarket.WrongPayment(msg.value, bond);
        // The bond may have grown since the sender looked.
        _credit(taskId, msg.sender, msg.value - bond);
        uint256 number = game.start(params, opening.header, opening.payload);
        _disputes[number] = ProfileDispute(taskId, msg.sender, p.number, false, uint128(bond));
        ++p.challenges;
        ++p.open;
        emit ProfileChallenged(taskId, p.number, msg.sender, number, charge, index, params.component, bond);
    }

    function _bondOf(Terms memory s, Profile storage p) private view returns (uint256) {
        return Settlement.bondOf(s.bond, s.verifierStake, p.challenges);
    }

    /// @dev The window is over and nobody waits for a dispute.
    function _requireFinal(Profile storage p) private view {
        if (block.timestamp <= p.deadline) revert Contestable(p.deadline);
        if (p.open > 0) revert ITaskMarket.DisputesOpen(p.open);
    }

    /// @dev All but the number, by which disputes about this profile are told from those about the next.
    function _forget(bytes32 taskId, Profile storage p) private {
        uint32 number = p.number;
        delete _profiles[taskId];
        p.number = number;
        emit ProfileGone(taskId, number);
    }

    /// @dev The profile stands unless a dispute about it was lost; while one is open its verifier does not leave.
    function _isLive(ProfileDispute storage d) private view returns (bool) {
        Profile storage p = _profiles[d.taskId];
        return p.verifier != address(0) && p.number == d.profile;
    }

    /// @dev The profile fell otherwise: whoever is right in this dispute, the challenger loses nothing.
    function _releaseMoot(uint256 number, ProfileDispute storage d) private {
        d.released = true;
        emit ProfileDisputeMoot(d.taskId, d.profile, number);
        _credit(d.taskId, d.challenger, d.bond);
    }
}
