// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ITaskMarket} from "./ITaskMarket.sol";
import {SegmentDraw} from "./SegmentDraw.sol";
import {Settlement} from "./Settlement.sol";
import {Terms} from "./TaskTypes.sol";

/// @title TermsRules
/// @notice What terms must satisfy, whatever their values mean to the parties.
library TermsRules {
    /// @notice Reverts with the name of the first field that breaks a rule.
    function check(Terms calldata s) internal pure {
        _require(s.program != 0, "program");
        _require(s.constants != 0, "constants");
        _require(s.initialState != 0, "initialState");
        _require(s.document != 0, "document");
        _require(s.interval > 0, "interval");
        _require(s.steps > 0 && s.steps % s.interval == 0, "steps");
        uint256 segments = s.steps / s.interval;
        // A claim names its segment in 32 bits.
        _require(segments < type(uint32).max, "steps");
        _require(s.draws > 0 && s.draws <= segments && s.draws <= SegmentDraw.MAX_DRAWS, "draws");
        _require(s.workUnits > 0, "workUnits");
        _require(s.verifierStake > 0, "verifierStake");
        _require(s.bond > 0, "bond");
        // A rejection costs the submitter the verifier's fee; its share of the slash makes up for it.
        _require(
            s.solverStake > 0
                && Settlement.shareDown(s.solverStake, Settlement.SUBMITTER_OF_SOLVER_STAKE) >= s.verifierFee,
            "solverStake"
        );
        _require(s.trainingWindow > 0, "trainingWindow");
        _require(s.verificationWindow > 0, "verificationWindow");
        _require(s.challengeWindow > 0, "challengeWindow");
        _require(s.clock > 0, "clock");
    }

    function _require(bool holds, string memory field) private pure {
        if (!holds) revert ITaskMarket.InvalidTerms(field);
    }
}
