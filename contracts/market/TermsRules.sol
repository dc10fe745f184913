// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ITaskMarket} from "./ITaskMarket.sol";
import {SegmentDraw} from "./SegmentDraw.sol";
import {Settlement} from "./Settlement.sol";
import {Terms} from "./TaskTypes.sol";

/// @title TermsRules
/// @notice What terms must satisfy, whatever their values mean to the parties.
/// @dev The bounds keep out what nobody honest can live with, and still let a test network be quick. How much time a party wants for
/// its work is its own policy: it reads the terms before it stakes.
library TermsRules {
    /// @notice Five blocks of 12 seconds: what is sent at once is heard.
    uint32 internal constant MIN_WINDOW = 60 seconds;
    /// @notice Longest that one missing verdict or one challenge window holds everybody's stakes.
    uint32 internal constant MAX_WINDOW = 90 days;
    /// @notice Trainings are long; the verifier's stake waits for them.
    uint32 internal constant MAX_TRAINING_WINDOW = 365 days;
    /// @notice Fifty blocks of 12 seconds. The longest walk through a segment that a machine can replay takes either side about 40
    /// moves: with less, the side that is right loses by the pace of the chain.
    uint32 internal constant MIN_CLOCK = 10 minutes;
    /// @notice A dispute lasts at most two clocks and a grace for each move (`IDisputeGame.longest`), and all stakes wait for it.
    uint32 internal constant MAX_CLOCK = 14 days;
    /// @notice The first bond is at least the verifier's stake divided by this: a delay costs something.
    uint256 internal constant MAX_STAKE_PER_BOND = 16;
    /// @notice The first bond is at most the verifier's stake divided by this: who is right wins half of that stake
    /// (`Settlement`), so it wins no less than it puts at risk.
    uint256 internal constant MIN_STAKE_PER_BOND = 2;
    /// @notice Reruns of one segment: more give no better threshold, and every party makes all of these programs.
    uint32 internal constant MAX_RERUNS = 2 ** 16;
    /// @notice Profiled segments, whose portions every challenge carries.
    uint32 internal constant MAX_PROFILED = 16;
    /// @notice With its square and the greatest ratio there is, thresholds are computed without an overflow.
    uint32 internal constant MAX_MARGIN = 2 ** 16 - 1;

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
        _checkProfile(s, segments);
        _require(s.verifierStake > 0, "verifierStake");
        _require(
            s.bond * MIN_STAKE_PER_BOND <= s.verifierStake && s.verifierStake <= s.bond * MAX_STAKE_PER_BOND, "bond"
        );
        // A rejection costs the submitter the verifier's fee; its share of the slash makes up for it.
        _require(
            s.solverStake > 0
                && Settlement.shareDown(s.solverStake, Settlement.SUBMITTER_OF_SOLVER_STAKE) >= s.verifierFee,
            "solverStake"
        );
        _require(MIN_WINDOW <= s.trainingWindow && s.trainingWindow <= MAX_TRAINING_WINDOW, "trainingWindow");
        _require(MIN_WINDOW <= s.verificationWindow && s.verificationWindow <= MAX_WINDOW, "verificationWindow");
        _require(MIN_WINDOW <= s.challengeWindow && s.challengeWindow <= MAX_WINDOW, "challengeWindow");
        _require(MIN_CLOCK <= s.clock && s.clock <= MAX_CLOCK, "clock");
    }

    /// @dev Exact mode needs no profile, so nothing may look as if there were one.
    function _checkProfile(Terms calldata s, uint256 segments) private pure {
        bool exact = s.margin == 0;
        _require(s.margin <= MAX_MARGIN, "margin");
        _require(exact == (s.reruns == 0), "reruns");
        _require(exact ? s.rerunCount == 0 : s.rerunCount > 0 && s.rerunCount <= MAX_RERUNS, "rerunCount");
        _require(
            exact ? s.profiled == 0 : s.profiled > 0 && s.profiled <= segments && s.profiled <= MAX_PROFILED, "profiled"
        );
        _require(
            exact ? s.profileWindow == 0 : MIN_WINDOW <= s.profileWindow && s.profileWindow <= MAX_WINDOW,
            "profileWindow"
        );
    }

    function _require(bool holds, string memory field) private pure {
        if (!holds) revert ITaskMarket.InvalidTerms(field);
    }
}
