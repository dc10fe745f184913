// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "../commitments/CheckpointLog.sol";
import {IStakeVault} from "../incentives/IStakeVault.sol";
import {IDisputeGame, StartParams} from "../dispute/IDisputeGame.sol";
import {IDisputeResolver} from "../dispute/IDisputeResolver.sol";
import {Acceptance} from "./Acceptance.sol";
import {Announcements} from "./Announcements.sol";
import {ChargedClaim} from "./ChargedClaim.sol";
import {ClaimCharge, KIND_LOOK_DISTANCE, KIND_LOOK_RERUN} from "./IChallenges.sol";
import {Contest, Counterclaim, ICounterclaims} from "./ICounterclaims.sol";
import {IObjections, Segment} from "./IObjections.sol";
import {IVerdicts} from "./IVerdicts.sol";
import {Market, MarketDesk} from "./MarketDesk.sol";
import {Opening, Reordered, Rerun} from "./ProfileTypes.sol";
import {SecondLook} from "./SecondLook.sol";
import {Split} from "./Split.sol";
import {Claim, Ending, LogProof, Terms} from "./TaskTypes.sol";

/// @title Counterclaims
/// @notice See `ICounterclaims`.
/// @dev Bonds are locked under the task's id. What is open, and what a proof has fallen by, counts `Objections`.
contract Counterclaims is ICounterclaims, IDisputeResolver, MarketDesk, Announcements {
    /// @notice Arbitrates.
    IDisputeGame public game;

    /// @inheritdoc ICounterclaims
    uint256 public last;

    mapping(uint256 number => Counterclaim) private _counterclaims;
    mapping(uint256 dispute => Contest) private _contests;

    constructor(IStakeVault vault_) MarketDesk(vault_) {}

    /// @dev The game's resolver is this contract, so neither can know the other when it is made.
    function _wired(Market calldata m) internal override {
        game = m.counterclaimGame;
    }

    /// @inheritdoc ICounterclaims
    // Desks and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-events,reentrancy-benign
    function counterclaim(
        bytes32 taskId,
        Claim calldata claim,
        LogProof calldata logProof,
        Rerun[] calldata look,
        uint128 mostBond
    ) external returns (uint256 number) {
        _requireRejected(taskId, claim, look);
        Counterclaim memory c = _entered(taskId, claim, logProof, mostBond);
        c.entry = _entry(claim, look.length == 0 ? bytes32(0) : keccak256(abi.encode(look)));
        _requireAnnounced(taskId, keccak256(abi.encode(c.entry)));
        vault.lock(taskId, c.objector, c.bond);
        number = ++last;
        _counterclaims[number] = c;
        emit Counterclaimed(taskId, number, c.objector, c.began, claim, look, c.until, c.bond);
    }

    /// @inheritdoc ICounterclaims
    // The contract called is part of the deployment and calls nobody.
    // slither-disable-next-line reentrancy-events,reentrancy-benign
    function contest(
        uint256 number,
        ClaimCharge calldata charge,
        Rerun[] calldata look,
        Reordered calldata reordered,
        Opening calldata opening
    ) external returns (uint256 dispute) {
        Counterclaim storage c = _counterclaims[number];
        _requireContestable(c, number, charge);
        Terms memory s = registry.terms(c.taskId);
        StartParams memory params = charge.kind == KIND_LOOK_RERUN || charge.kind == KIND_LOOK_DISTANCE
            ? ChargedClaim.ofLook(s, charge, look, reordered)
            : ChargedClaim.ofClaim(s, charge, 0);
        (params.asserter, params.challenger) = (c.objector, _requireOther(c.objector));
        _requireAnnounced(c.taskId, _evidence(number, charge, keccak256(opening.payload)));
        uint128 bond = _enqueue(c, s, params);
        if (bond > opening.mostBond) revert IObjections.BondTooHigh(bond);
        vault.lock(c.taskId, params.challenger, bond);
        dispute = game.start(params, opening.header, opening.payload);
        _contests[dispute] = Contest(uint64(number), params.challenger, Ending.None, bond);
        _emitContested(c.taskId, dispute, charge);
    }

    /// @inheritdoc IDisputeResolver
    function onResolved(uint256 dispute, bool asserterWon) external only(address(game)) {
        // Nothing below may fail for a dispute that there is: the game could never end it.
        Contest storage d = _existing(dispute);
        if (d.ending != Ending.None) return;
        Counterclaim storage c = _counterclaims[d.counterclaim];
        if (asserterWon) d.ending = Ending.Stood;
        else if (!c.fell && !c.concluded) (d.ending, c.fell) = (Ending.Fell, true);
    }

    /// @inheritdoc ICounterclaims
    // Desks and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-events
    function settleDispute(uint256 dispute) external {
        Contest storage d = _existing(dispute);
        (uint256 number, Ending ending) = (d.counterclaim, d.ending);
        Counterclaim storage c = _counterclaims[number];
        bytes32 taskId = c.taskId;
        bool isMoot = (c.fell && ending != Ending.Fell) || (c.concluded && !c.fell);
        if (ending == Ending.Settled || (ending == Ending.None && !isMoot)) revert NothingToSettle(dispute);
        d.ending = Ending.Settled;
        --c.open;
        if (isMoot) {
            emit ContestMoot(taskId, number, dispute);
            vault.unlock(taskId, d.challenger, d.bond);
        } else if (ending == Ending.Stood) {
            emit ContestSettled(taskId, number, dispute, true);
            _slash(taskId, d.challenger, d.bond, c.objector, Split.WINNER_OF_BOND);
        } else {
            emit ContestSettled(taskId, number, dispute, false);
            vault.unlock(taskId, d.challenger, d.bond);
            _conclude(c, number, false);
            // Whoever contested: otherwise a friend of the objector would get the bond back that way.
            _slash(taskId, c.objector, c.bond, registry.task(taskId).solver, Split.WINNER_OF_BOND);
        }
    }

    /// @inheritdoc ICounterclaims
    // Desks and vault are code of the deployment, and none of them calls a party.
    // slither-disable-next-line reentrancy-events
    function conclude(uint256 number) external {
        Counterclaim storage c = _counterclaims[number];
        if (c.objector == address(0)) revert UnknownCounterclaim(number);
        // Whoever it has lost to settles that dispute.
        if (c.fell || c.concluded) revert Decided(number);
        bytes32 taskId = c.taskId;
        // The task waits for it, so the log is that of the same solver.
        bool isMoot = objections.objected(taskId).fell;
        if (!isMoot) {
            _after(c.until);
            if (c.open > 0) revert ContestsOpen(c.open);
        }
        vault.unlock(taskId, c.objector, c.bond);
        _conclude(c, number, !isMoot);
    }

    /// @inheritdoc ICounterclaims
    function counterclaimed(uint256 number) external view returns (Counterclaim memory) {
        return _counterclaims[number];
    }

    /// @inheritdoc ICounterclaims
    function contests(uint256 dispute) external view returns (Contest memory) {
        return _contests[dispute];
    }

    /// @dev Nothing waits for it any more.
    function _conclude(Counterclaim storage c, uint256 number, bool stood) private {
        c.concluded = true;
        emit CounterclaimConcluded(c.taskId, number, stood);
        objections.conclude(c.taskId, stood ? c.objector : address(0), c.bond);
    }

    /// @dev A claim that a verdict would have to make, and that would reject.
    function _requireRejected(bytes32 taskId, Claim calldata claim, Rerun[] calldata look) private view {
        Terms memory s = registry.terms(taskId);
        if (s.margin == 0) revert NotTolerant(taskId);
        uint64[3] memory thresholds = profiles.thresholds(taskId);
        if (claim.before != 0 || claim.receipt != 0) revert IVerdicts.WrongReceipt(claim.segment);
        // What every replay repeats is rejected where it is drawn, and pays nobody.
        if (claim.replay == 0 || Acceptance.isRepeated(claim)) revert NotRejected(claim.segment);
        if (Acceptance.accepts(false, thresholds, claim)) revert NotRejected(claim.segment);
        bool isDue = s.looks > 0 && SecondLook.isDue(thresholds, claim);
        if (look.length != (isDue ? s.looks : 0)) revert WrongLook(look.length);
        for (uint256 j = 0; j < look.length; ++j) {
            if (look[j].end == 0) revert WrongLook(look.length);
        }
        if (isDue && SecondLook.accepts(thresholds, claim, look, s.lookMargin)) revert NotRejected(claim.segment);
    }

    /// @dev Of the caller, about a segment that may be disputed.
    function _entered(bytes32 taskId, Claim calldata claim, LogProof calldata logProof, uint128 mostBond)
        private
        returns (Counterclaim memory c)
    {
        (c.taskId, c.objector) = (taskId, _party());
        Segment memory segment = Segment(claim.segment, claim.start, claim.end, logProof);
        (c.bond, c.began, c.until) = objections.admit(taskId, c.objector, segment, mostBond);
    }

    /// @dev A counterclaim that is the charged one, in its window.
    function _requireContestable(Counterclaim storage c, uint256 number, ClaimCharge calldata charge) private view {
        if (c.objector == address(0) || c.entry != _entry(charge.claim, charge.look)) {
            revert UnknownCounterclaim(number);
        }
        if (c.fell || c.concluded) revert Decided(number);
        _notAfter(c.until);
    }

    /// @dev The objector answers one contest after the other: the clock of the next, and its bond. The first place is
    /// the solver's: nobody makes its contest last longer or cost more than `Objections.admit` reckons with.
    function _enqueue(Counterclaim storage c, Terms memory s, StartParams memory params) private returns (uint128) {
        uint256 place = c.open++;
        if (!c.answered) {
            c.answered = params.challenger == registry.task(c.taskId).solver;
            place = c.answered ? 0 : place + 1;
        }
        params.clock = _queued(s.clock, place);
        uint256 stake = Split.slashable(s.solverStake, s.verifierFee, s.looks, s.draws);
        return uint128(Split.objectionBond(c.bond, stake, place));
    }

    function _emitContested(bytes32 taskId, uint256 dispute, ClaimCharge calldata charge) private {
        Contest memory d = _contests[dispute];
        emit Contested(
            taskId, d.counterclaim, d.challenger, dispute, charge.kind, charge.component, charge.rerun, d.bond
        );
    }

    function _evidence(uint256 number, ClaimCharge calldata charge, bytes32 version) private pure returns (bytes32) {
        return keccak256(abi.encode(number, charge.kind, charge.component, charge.rerun, version));
    }

    function _entry(Claim calldata claim, bytes32 look) private pure returns (bytes32) {
        return keccak256(abi.encode(keccak256(abi.encode(claim)), look));
    }

    /// @dev Whoever contests is somebody.
    function _existing(uint256 dispute) private view returns (Contest storage d) {
        d = _contests[dispute];
        if (d.challenger == address(0)) revert UnknownDispute(dispute);
    }
}
