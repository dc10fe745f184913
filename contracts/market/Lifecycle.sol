// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Status} from "./TaskTypes.sol";

/// @title Lifecycle
/// @notice Every way of a task from one status to the next, and the desks that may take it there. What is closed stays
/// closed. docs/spec/market.md, "Transitions", is the same table; `tests/chain/test_transitions.py` compares it with what the
/// desks do.
library Lifecycle {
    // A bit for each desk that moves tasks.
    uint256 internal constant REGISTRY = 1; // by itself: the verb of a party
    uint256 internal constant SEATS = 2;
    uint256 internal constant PROOFS = 4;
    uint256 internal constant PROFILES = 8;
    uint256 internal constant VERDICTS = 16;
    uint256 internal constant DEMANDS = 32;
    uint256 internal constant SETTLEMENT = 64;

    /// @notice The desks that may move a task from one status to another; zero if there is no such way.
    /// @dev A row each: behind it the verbs that take it, and when.
    function movers(Status from, Status to) internal pure returns (uint256) {
        if (from == Status.None) {
            if (to == Status.Profiling) return REGISTRY; // TaskRegistry.submit: in tolerant mode
            if (to == Status.Bidding) return REGISTRY; // TaskRegistry.submit: in exact mode
        } else if (from == Status.Profiling) {
            // Seats.decide, Profiles.post, Settlement.claimSeatDefault: a profiler sits, has posted, or lost its seat
            if (to == Status.Profiling) return SEATS | PROFILES | SETTLEMENT;
            if (to == Status.Bidding) return PROFILES; // Profiles.conclude: the profile can't be challenged any more
            // TaskRegistry.cancel, Settlement.abandon: before a profile is posted, or the beacon is silent
            if (to == Status.Closed) return REGISTRY | SETTLEMENT;
        } else if (from == Status.Bidding) {
            if (to == Status.Bidding) return REGISTRY; // TaskRegistry.award: the round has no winner
            if (to == Status.Training) return REGISTRY; // TaskRegistry.award: the round has a winner
            // TaskRegistry.cancel: before anybody bids, or after a round that has expired
            if (to == Status.Closed) return REGISTRY;
        } else if (from == Status.Training) {
            if (to == Status.Committed) return PROOFS; // ProofRegistry.commit: the log is complete
            if (to == Status.Bidding) return SETTLEMENT; // Settlement.claimSolverDefault: after the deadline
        } else if (from == Status.Committed) {
            if (to == Status.Verifying) return SEATS; // Seats.decide: a verifier sits
            // Settlement.claimWithheld, Settlement.unserved, Settlement.claimUnserved: data are withheld, or not served
            if (to == Status.Bidding) return SETTLEMENT;
            if (to == Status.Closed) return SETTLEMENT; // Settlement.abandon: the beacon is silent
        } else if (from == Status.Verifying) {
            // DataDemands.demand, Settlement.extend: the verifier waits for data, or for a round
            if (to == Status.Verifying) return DEMANDS | SETTLEMENT;
            if (to == Status.Watched) return VERDICTS; // Verdicts.post: the verdict is posted
            // Verdicts.reportLeak, Settlement.claimSeatDefault, Settlement.unserved: the verifier has left its seat
            if (to == Status.Committed) return VERDICTS | SETTLEMENT;
            if (to == Status.Bidding) return SETTLEMENT; // Settlement.claimWithheld: data are withheld
            if (to == Status.Closed) return SETTLEMENT; // Settlement.abandon: the beacon is silent
        } else if (from == Status.Watched) {
            if (to == Status.Watched) return VERDICTS; // Verdicts.openWatch: the watchers are drawn
            if (to == Status.Contested) return VERDICTS; // Verdicts.disclose: whether it erred on purpose is known
            if (to == Status.Committed) return VERDICTS; // Verdicts.claimUndisclosed: nobody has disclosed it in time
            if (to == Status.Closed) return SETTLEMENT; // Settlement.abandon: the beacon is silent
        } else if (from == Status.Contested) {
            if (to == Status.Committed) return VERDICTS; // Verdicts.void: a claim was refuted
            if (to == Status.Bidding) return SETTLEMENT; // Settlement.claimWithheld: data are withheld
            if (to == Status.Closed) return SETTLEMENT; // Settlement.settle: the verdict stands
        }
        return 0;
    }
}
