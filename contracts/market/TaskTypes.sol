// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice What the submitter asks for. Fixed at submission; the id of a task is derived from it.
/// @dev Windows and clock are seconds, amounts are units of the vault's asset.
struct Terms {
    bytes32 program; // hash of the step program
    bytes32 constants; // root of the constants (data set, sample order, schedules)
    bytes32 initialState; // state root before step 0
    bytes32 document; // content address of the task document
    bytes32 reruns; // log root of the hashes of the reordered programs; zero in exact mode
    uint64 steps; // training steps
    uint32 interval; // steps between two checkpoints; divides steps
    uint32 draws; // segments that are verified
    uint128 workUnits; // weighted operations of the whole training
    uint128 unitPrice; // of 2^32 work units: bounds what a solver can be paid
    uint128 secondPrice; // what a second of training time weighs in the auction
    uint128 solverStake;
    uint128 verifierStake;
    uint128 bond; // what the first challenger of a verdict puts up; see `Split.bondOf` for the next
    uint128 verifierFee; // of the verifier, and as much again of the profiler
    uint128 jackpot; // reserved from the choice of a solver until it is swept
    uint32 rerunCount; // reruns of each profiled segment; zero in exact mode
    uint32 profiled; // segments that are profiled, from the first on; zero in exact mode
    uint32 margin; // factor on the distances that a profile has seen; zero is exact mode
    uint32 looks; // reruns of a segment that the thresholds reject; zero if there is no second look
    uint32 lookMargin; // factor on the distances of those
    uint32 profileWindow; // from the profile; what is challenged in it may end later; zero in exact mode
    uint32 bidWindow; // for bids, and again to reveal them
    uint32 seatWindow; // for claims of a seat
    uint32 trainingWindow; // most seconds of training that a bid may promise
    uint32 verificationWindow; // from the seat to the verdict, or the profile
    uint32 watchWindow; // from the draw of the watchers until its verifier has to disclose whether it erred on purpose
    uint32 disclosureWindow; // for that
    uint32 challengeWindow; // from the disclosure; what is challenged in it may end later
    uint32 clock; // budget of each side in a dispute
}

/// @notice Where a task is. Zero means that it does not exist.
enum Status {
    None,
    Profiling, // waits for somebody in the profiler's seat, its profile, and until that can't be challenged any more
    Bidding, // the auction of solvers goes on
    Training, // until deadline the solver may commit
    Committed, // waits for the beacon and for a verifier
    Verifying, // until deadline the verifier may post a verdict
    Watched, // until deadline watchers look; for the disclosure window after it the verifier may disclose
    Contested, // until deadline anybody may challenge; then it waits for the disputes that are open
    Closed // everything is paid out
}

/// @notice How a closed task ended.
enum Outcome {
    None,
    Accepted,
    Rejected,
    Cancelled,
    Abandoned // the beacon was silent for too long
}

/// @notice What a desk knows of how a dispute has ended.
enum Ending {
    None, // the game has not ended it, or when it did, the matter was decided already
    Stood, // what was disputed
    Fell, // what was disputed, in this dispute before all others
    Settled // the bond is free or lost, and nothing is left to do
}

/// @notice What all desks know of a task; what only one has to know is there. A zero address or hash means nothing.
struct Task {
    address submitter;
    Status status;
    Outcome outcome;
    uint64 deadline; // last second of what the status allows; zero while no clock of the task runs
    address solver;
    uint64 began; // when the solver was chosen
    address holder; // of the seat: profiler or verifier
    uint32 seating; // of all seats of this task, from 1; zero while nobody has been seated
    uint128 price; // that the solver is paid if it is accepted
    uint64 closed; // when it was
}

/// @notice What a verifier says about one drawn segment, see docs/spec/verdict.md.
struct Claim {
    uint32 segment;
    bytes32 start; // solver's state root before the segment
    bytes32 end; // solver's state root after it
    bytes32 replay; // the verifier's state root after replaying it from start
    uint256[3] distances; // by component, between replay and end
    uint256[3] references; // by component, between replay and start
    bytes32 before; // exact mode: the verifier's state root before the last step of the segment; else zero
    bytes32 receipt; // exact mode: of that step, over the nodes that the draw names; else zero
}

/// @notice Inclusion proofs of the two ends of a segment in the solver's checkpoint log.
struct LogProof {
    bytes32[] start; // of entry `segment`
    bytes32[] end; // of entry `segment + 1`
}
