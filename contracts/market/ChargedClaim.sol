// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "../commitments/CheckpointLog.sol";
import {KIND_DISTANCE, KIND_RECEIPT, KIND_REFERENCE, KIND_REPLAY} from "../dispute/DisputeKinds.sol";
import {StartParams} from "../dispute/IDisputeGame.sol";
import {ClaimCharge, IChallenges, KIND_BEFORE, KIND_LOOK_DISTANCE, KIND_LOOK_RERUN} from "./IChallenges.sol";
import {Reordered, Rerun} from "./ProfileTypes.sol";
import {Claim, Terms} from "./TaskTypes.sol";

/// @title ChargedClaim
/// @notice Which dispute a charge against a claim is: an execution that the claim names, or a sum
/// (docs/spec/market.md, "Challenges").
library ChargedClaim {
    /// @notice A charge against a replay, against one of the claim's sums, or against its receipt.
    /// @param s Of the task.
    /// @param seed That draws the nodes of the receipt; zero where claims have none.
    function ofClaim(Terms memory s, ClaimCharge calldata charge, bytes32 seed)
        internal
        pure
        returns (StartParams memory params)
    {
        params = _common(s, charge);
        Claim calldata claim = charge.claim;
        uint8 component = charge.component;
        if (charge.kind == KIND_REPLAY && component == 0) {
            _replayed(params, s, claim.segment);
            params.start = claim.start;
            params.end = claim.replay;
        } else if (charge.kind == KIND_DISTANCE && component >= 1 && component <= 3) {
            params.x = claim.replay;
            params.y = claim.end;
            params.sum = claim.distances[component - 1];
        } else if (charge.kind == KIND_REFERENCE && component >= 1 && component <= 3) {
            params.x = claim.replay;
            params.y = claim.start;
            params.sum = claim.references[component - 1];
        } else if (s.margin == 0 && component == 0 && (charge.kind == KIND_BEFORE || charge.kind == KIND_RECEIPT)) {
            _ofReceipt(params, s, charge, seed);
        } else {
            revert IChallenges.InvalidChallenge(charge.kind, component);
        }
    }

    /// @notice A charge against one rerun of a second look: its end, or one of its sums.
    /// @param reordered The program of the rerun, with the proof that the terms name it.
    function ofLook(Terms memory s, ClaimCharge calldata charge, Rerun[] calldata reruns, Reordered calldata reordered)
        internal
        pure
        returns (StartParams memory params)
    {
        params = _common(s, charge);
        uint32 j = charge.rerun;
        uint8 component = charge.component;
        if (charge.look != keccak256(abi.encode(reruns)) || j >= reruns.length) {
            revert IChallenges.UnknownClaim(charge.index);
        }
        if (charge.kind == KIND_LOOK_RERUN && component == 0) {
            if (!CheckpointLog.isIncluded(
                    reordered.program, s.rerunCount + j, s.rerunCount + s.looks, s.reruns, reordered.path
                )) revert IChallenges.NotInPrograms(j);
            _replayed(params, s, charge.claim.segment);
            params.program = reordered.program;
            params.start = charge.claim.start;
            params.end = reruns[j].end;
        } else if (charge.kind == KIND_LOOK_DISTANCE && component >= 1 && component <= 3) {
            params.kind = KIND_DISTANCE;
            params.x = charge.claim.replay;
            params.y = reruns[j].end;
            params.sum = reruns[j].distances[component - 1];
        } else {
            revert IChallenges.InvalidChallenge(charge.kind, component);
        }
    }

    /// @dev All steps of a segment but the last one, or that one.
    function _ofReceipt(StartParams memory params, Terms memory s, ClaimCharge calldata charge, bytes32 seed)
        private
        pure
    {
        Claim calldata claim = charge.claim;
        _replayed(params, s, claim.segment);
        if (charge.kind == KIND_BEFORE) {
            // Where a segment has one step the state before it is its start, which nobody has to execute.
            params.steps = s.interval - 1;
            (params.start, params.end) = (claim.start, claim.before);
            return;
        }
        params.kind = KIND_RECEIPT;
        params.firstStep += s.interval - 1;
        params.steps = 1;
        (params.start, params.x, params.y) = (claim.before, claim.receipt, seed);
    }

    function _common(Terms memory s, ClaimCharge calldata charge) private pure returns (StartParams memory params) {
        params.program = s.program;
        params.constants = s.constants;
        params.kind = charge.kind;
        params.component = charge.component;
        params.clock = s.clock;
    }

    /// @dev An execution of a segment; from where to where, and of which program if not the task's, says the caller.
    function _replayed(StartParams memory params, Terms memory s, uint32 segment) private pure {
        params.kind = KIND_REPLAY;
        params.firstStep = uint64(segment) * s.interval;
        params.steps = s.interval;
    }
}
