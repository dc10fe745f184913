// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AuctionRules} from "../incentives/AuctionRules.sol";
import {ITaskRegistry} from "./ITaskRegistry.sol";
import {SegmentDraw} from "./SegmentDraw.sol";
import {Split} from "./Split.sol";

import {Terms} from "./TaskTypes.sol";

/// @title TermsRules
/// @notice What terms must satisfy, whatever their values mean to the parties.
/// @dev The bounds keep out what nobody honest can live with, and still let a test network be quick. How much time a
/// party wants for its work is its own policy: it reads the terms before it stakes.
library TermsRules {
    /// @notice Five blocks of 12 seconds: what is sent at once is heard.
    uint32 internal constant MIN_WINDOW = 60 seconds;
    /// @notice Longest that one missing verdict or one challenge window holds everybody's stakes.
    uint32 internal constant MAX_WINDOW = 90 days;
    /// @notice Trainings are long.
    uint32 internal constant MAX_TRAINING_WINDOW = 365 days;
    /// @notice Fifty blocks of 12 seconds. The longest walk through a segment that a machine can replay takes either
    /// side about 40 moves: with less, the side that is right loses by the pace of the chain.
    uint32 internal constant MIN_CLOCK = 10 minutes;
    /// @notice A dispute lasts at most two clocks and a grace for each move (`IDisputeGame.longest`), and all stakes
    /// wait for it.
    uint32 internal constant MAX_CLOCK = 14 days;
    /// @notice The first bond is at least the verifier's stake divided by this: a delay costs something.
    uint256 internal constant MAX_STAKE_PER_BOND = 16;
    /// @notice The first bond is at most the verifier's stake divided by this: who is right wins half of that stake
    /// (`Split`), so it wins no less than it puts at risk.
    uint256 internal constant MIN_STAKE_PER_BOND = 2;
    /// @notice Reruns of one segment: more give no better threshold, and every party makes all of these programs.
    uint32 internal constant MAX_RERUNS = 2 ** 16;
    /// @notice Profiled segments, whose portions every challenge carries.
    uint32 internal constant MAX_PROFILED = 16;
    /// @notice Reruns of a second look, all of which are posted.
    uint32 internal constant MAX_LOOKS = 64;
    /// @notice Reruns in all second looks of a verdict: 128 bytes each, and nodes relay transactions of 128 KiB at
    /// most.
    uint32 internal constant MAX_RERUNS_POSTED = 512;
    /// @notice With its square and the greatest ratio there is, thresholds are computed without an overflow.
    uint32 internal constant MAX_MARGIN = 2 ** 16 - 1;
    /// @notice No sum or product of amounts that the desks form overflows below it.
    uint128 internal constant MAX_AMOUNT = 2 ** 112;

    /// @notice Reverts with the name of the first field that breaks a rule.
    /// @param shares Of the jackpot.
    /// @param tax Of the task.
    /// @param commitWindow Of the jackpot.
    function check(Terms calldata s, uint256 shares, uint256 tax, uint32 commitWindow) internal pure {
        _require(s.program != 0, "program");
        _require(s.constants != 0, "constants");
        _require(s.initialState != 0, "initialState");
        _require(s.document != 0, "document");
        _require(s.interval > 0, "interval");
        _require(s.steps > 0 && s.steps % s.interval == 0, "steps");
        // Addresses in a program count the step in 32 bits (docs/spec/program.md, "Limits"), a claim its segment.
        _require(s.steps <= type(uint32).max, "steps");
        uint256 segments = s.steps / s.interval;
        _require(segments < type(uint32).max, "steps");
        _require(s.draws > 0 && s.draws <= segments && s.draws <= SegmentDraw.MAX_DRAWS, "draws");
        _checkProfile(s, segments);
        _checkAmounts(s);
        _checkJackpot(s, shares, tax);
        _checkWindow(s.bidWindow, "bidWindow");
        _checkWindow(s.seatWindow, "seatWindow");
        _require(MIN_WINDOW <= s.trainingWindow && s.trainingWindow <= MAX_TRAINING_WINDOW, "trainingWindow");
        _checkWindow(s.verificationWindow, "verificationWindow");
        _checkWindow(s.watchWindow, "watchWindow");
        // Who sees another's commitment could begin to look only then.
        _require(s.watchWindow > commitWindow, "watchWindow");
        _checkWindow(s.disclosureWindow, "disclosureWindow");
        _checkWindow(s.challengeWindow, "challengeWindow");
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
        _require(exact ? s.looks == 0 : s.looks <= MAX_LOOKS && s.looks * s.draws <= MAX_RERUNS_POSTED, "looks");
        _require((s.looks == 0) == (s.lookMargin == 0) && s.lookMargin <= MAX_MARGIN, "lookMargin");
        _require(
            exact ? s.profileWindow == 0 : MIN_WINDOW <= s.profileWindow && s.profileWindow <= MAX_WINDOW,
            "profileWindow"
        );
    }

    function _checkAmounts(Terms calldata s) private pure {
        _require(s.workUnits > 0 && s.workUnits <= MAX_AMOUNT, "workUnits");
        _require(s.unitPrice > 0 && s.unitPrice <= MAX_AMOUNT, "unitPrice");
        // Some bid can win: the auction opens when nobody can change the terms any more.
        uint256 maximum = Split.maximumPrice(s.workUnits, s.unitPrice);
        _require(uint256(s.secondPrice) * AuctionRules.MIN_PROMISE <= maximum, "secondPrice");
        _require(s.verifierFee <= MAX_AMOUNT, "verifierFee");
        _require(s.verifierStake > 0 && s.verifierStake <= MAX_AMOUNT, "verifierStake");
        _require(
            s.bond * MIN_STAKE_PER_BOND <= s.verifierStake && s.verifierStake <= s.bond * MAX_STAKE_PER_BOND, "bond"
        );
        // A rejection costs the submitter the verifier's fee; its share of the slash makes up for it, whatever second
        // looks leave of the stake.
        uint256 kept = _kept(s);
        _require(
            s.solverStake <= MAX_AMOUNT && kept > 0
                && Split.down(kept, Split.SUBMITTER_OF_SOLVER_STAKE) >= s.verifierFee,
            "solverStake"
        );
    }

    /// @dev The jackpot refuses to reserve less than one unit a share, and nobody lies to catch itself, however many of
    /// its own tickets it sees drawn: all catches together bring less than what no party of the task gets of the
    /// verifier's stake (`IJackpot`).
    function _checkJackpot(Terms calldata s, uint256 shares, uint256 tax) private pure {
        _require(shares <= s.jackpot && s.jackpot <= MAX_AMOUNT, "jackpot");
        _require(s.jackpot * 2 <= s.verifierStake, "jackpot");
        // Who withholds data draws the duty of a verifier anew. What that leaves to the fund is at least what a planted
        // error costs it on average: nobody earns by drawing until one is planted.
        uint256 kept = _kept(s);
        uint256 shared =
            Split.down(kept, Split.SUBMITTER_OF_SOLVER_STAKE) + Split.down(kept, Split.DEMANDER_OF_SOLVER_STAKE);
        _require(kept - shared >= tax, "solverStake");
        // Two that aren't served get their shares whole: with less, a word would risk more than it brings.
        uint256 word = Split.unservedBond(Split.maximumPrice(s.workUnits, s.unitPrice), s.solverStake, s.verifierStake);
        _require(2 * Split.down(word, Split.SAYER_OF_BOND) + tax <= s.solverStake, "solverStake");
    }

    /// @dev What is left of the solver's stake if each drawn segment needs a second look; zero if that is more than
    /// there is.
    function _kept(Terms calldata s) private pure returns (uint256) {
        uint256 looked = Split.lookFee(s.verifierFee, s.looks, s.draws) * s.draws;
        return looked < s.solverStake ? s.solverStake - looked : 0;
    }

    function _checkWindow(uint32 window, string memory field) private pure {
        _require(MIN_WINDOW <= window && window <= MAX_WINDOW, field);
    }

    function _require(bool holds, string memory field) private pure {
        if (!holds) revert ITaskRegistry.InvalidTerms(field);
    }
}
