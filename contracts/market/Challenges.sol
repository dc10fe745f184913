// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStakeVault} from "../incentives/IStakeVault.sol";
import {KIND_REPLAY} from "../dispute/DisputeKinds.sol";
import {IDisputeGame, StartParams} from "../dispute/IDisputeGame.sol";
import {IDisputeResolver} from "../dispute/IDisputeResolver.sol";
import {Announcements} from "./Announcements.sol";
import {ChargedClaim} from "./ChargedClaim.sol";
import {ClaimCharge, Contested, Dispute, IChallenges} from "./IChallenges.sol";
import {IProvenSteps} from "./IProvenSteps.sol";
import {Market, MarketDesk} from "./MarketDesk.sol";
import {Opening, Reordered, Rerun} from "./ProfileTypes.sol";
import {Split} from "./Split.sol";
import {Claim, Ending, Status, Task, Terms} from "./TaskTypes.sol";

/// @title Challenges
/// @notice See `IChallenges`.
/// @dev Bonds are locked under the task's id.
contract Challenges is IChallenges, IDisputeResolver, MarketDesk, Announcements {
    /// @notice Arbitrates.
    IDisputeGame public game;

    /// @notice Knows what was proved in zero knowledge.
    IProvenSteps public immutable provenSteps;

    mapping(bytes32 taskId => Contested) private _contested;
    mapping(uint256 number => Dispute) private _disputes;

    /// @param provenSteps_ Of the same market.
    constructor(IStakeVault vault_, IProvenSteps provenSteps_) MarketDesk(vault_) {
        provenSteps = provenSteps_;
    }

    /// @dev The game's resolver is this contract, so neither can know the other when it is made.
    function _wired(Market calldata m) internal override {
        game = m.game;
    }

    /// @inheritdoc IChallenges
    function challenge(bytes32 taskId, ClaimCharge calldata charge, Opening calldata opening)
        external
        returns (uint256 number)
    {
        _requireCharged(taskId, charge);
        Terms memory s = registry.terms(taskId);
        bytes32 seed = s.margin == 0 ? proofs.receiptSeed(taskId, charge.claim.segment) : bytes32(0);
        StartParams memory params = ChargedClaim.ofClaim(s, charge, seed);
        return _start(taskId, charge, params, opening);
    }

    /// @inheritdoc IChallenges
    function challengeLook(
        bytes32 taskId,
        ClaimCharge calldata charge,
        Rerun[] calldata reruns,
        Reordered calldata reordered,
        Opening calldata opening
    ) external returns (uint256 number) {
        _requireCharged(taskId, charge);
        StartParams memory params = ChargedClaim.ofLook(registry.terms(taskId), charge, reruns, reordered);
        return _start(taskId, charge, params, opening);
    }

    /// @inheritdoc IDisputeResolver
    function onResolved(uint256 number, bool asserterWon) external only(address(game)) {
        // Nothing below may fail for a dispute that there is: the game could never end it.
        _end(_existing(number), asserterWon);
    }

    /// @inheritdoc IChallenges
    function settleByProof(uint256 number, ClaimCharge calldata charge, bytes32 shown) external {
        Dispute storage d = _existing(number);
        bytes32 taskId = d.taskId;
        uint32 seating = _expect(taskId, Status.Contested).seating;
        if (d.ending != Ending.None || d.seating != seating) revert NothingToSettle(number);
        if (!d.ofReplay || d.index != charge.index) revert InvalidChallenge(charge.kind, charge.component);
        Claim calldata claim = charge.claim;
        if (!verdicts.holds(taskId, charge.index, claim, charge.look, charge.entries)) {
            revert UnknownClaim(charge.index);
        }
        bool stood = provenSteps.leadsTo(taskId, claim.segment, claim.start, claim.replay, shown);
        emit SettledByProof(taskId, seating, number, stood);
        _end(d, stood);
    }

    /// @dev What the first of game and proof says. The other comes too late.
    function _end(Dispute storage d, bool asserterWon) private {
        if (d.ending != Ending.None) return;
        if (asserterWon) {
            d.ending = Ending.Stood;
            return;
        }
        Contested storage c = _contested[d.taskId];
        if (c.seating == d.seating && !c.fell) (d.ending, c.fell) = (Ending.Fell, true);
    }

    /// @inheritdoc IChallenges
    function settleDispute(uint256 number) external {
        Dispute storage d = _existing(number);
        (bytes32 taskId, Ending ending) = (d.taskId, d.ending);
        Contested storage c = _contested[taskId];
        Task memory t = registry.task(taskId);
        bool stands = t.status == Status.Contested && t.seating == d.seating;
        bool isMoot = !stands || (c.fell && ending != Ending.Fell);
        if (ending == Ending.Settled || (ending == Ending.None && !isMoot)) revert NothingToSettle(number);
        d.ending = Ending.Settled;
        if (stands) --c.open;
        if (isMoot) {
            emit DisputeMoot(taskId, d.seating, number);
            vault.unlock(taskId, d.challenger, d.bond);
        } else if (ending == Ending.Stood) {
            emit DisputeSettled(taskId, d.seating, number, true);
            _slash(taskId, d.challenger, d.bond, t.holder, Split.VERIFIER_OF_BOND);
        } else {
            emit DisputeSettled(taskId, d.seating, number, false);
            vault.unlock(taskId, d.challenger, d.bond);
            seats.slash(taskId, d.challenger, Split.CHALLENGER_OF_VERIFIER_STAKE);
            verdicts.void(taskId);
        }
    }

    /// @inheritdoc IChallenges
    function dispute(uint256 number) external view returns (Dispute memory) {
        return _disputes[number];
    }

    /// @inheritdoc IChallenges
    function contested(bytes32 taskId) public view returns (Contested memory c) {
        c = _contested[taskId];
        uint32 seating = registry.task(taskId).seating;
        if (c.seating != seating) c = Contested(seating, 0, 0, false);
    }

    /// @inheritdoc IChallenges
    function bondOf(bytes32 taskId) public view returns (uint128) {
        Terms memory s = registry.terms(taskId);
        return uint128(Split.bondOf(s.bond, s.verifierStake, contested(taskId).challenges));
    }

    /// @dev A claim that stands in the verdict, charged by anybody but who answers for it.
    function _requireCharged(bytes32 taskId, ClaimCharge calldata charge) private view {
        Task memory t = _expect(taskId, Status.Contested);
        _notAfter(t.deadline);
        _requireOther(t.holder);
        if (!verdicts.holds(taskId, charge.index, charge.claim, charge.look, charge.entries)) {
            revert UnknownClaim(charge.index);
        }
        if (charge.claim.start == 0 || charge.claim.end == 0) revert InvalidChallenge(charge.kind, charge.component);
    }

    /// @dev Locks the bond and opens the dispute.
    // The contract called is part of the deployment and calls nobody: nothing moves the task before its number is
    // known.
    // slither-disable-next-line reentrancy-events,reentrancy-benign
    function _start(bytes32 taskId, ClaimCharge calldata charge, StartParams memory params, Opening calldata opening)
        private
        returns (uint256 number)
    {
        Contested storage v = _current(taskId);
        if (v.fell) revert VerdictFell(taskId);
        uint128 bond = bondOf(taskId);
        if (bond > opening.mostBond) revert BondTooHigh(bond);
        bytes32 version = keccak256(opening.payload);
        _requireAnnounced(
            taskId, keccak256(abi.encode(charge.index, charge.kind, charge.component, charge.rerun, version))
        );
        params.clock = _queued(params.clock, v.open);
        ++v.challenges;
        ++v.open;
        (params.asserter, params.challenger) = (registry.task(taskId).holder, _party());
        vault.lock(taskId, params.challenger, bond);
        number = game.start(params, opening.header, opening.payload);
        bool ofReplay = charge.kind == KIND_REPLAY;
        _disputes[number] = Dispute(taskId, params.challenger, v.seating, charge.index, Ending.None, ofReplay, bond);
        emit Challenged(taskId, v.seating, params.challenger, number, charge.index, charge.kind, charge.component, bond);
    }

    /// @dev Counts start anew with each verdict.
    function _current(bytes32 taskId) private returns (Contested storage c) {
        uint32 seating = registry.task(taskId).seating;
        c = _contested[taskId];
        if (c.seating != seating) (c.seating, c.challenges, c.open, c.fell) = (seating, 0, 0, false);
    }

    /// @dev Whoever challenges is somebody.
    function _existing(uint256 number) private view returns (Dispute storage d) {
        d = _disputes[number];
        if (d.challenger == address(0)) revert UnknownDispute(number);
    }
}
