// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice What the submitter asks for. Fixed at submission; the id of a task is derived from it.
/// @dev Windows and clock are seconds, amounts are wei.
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
    uint128 solverStake;
    uint128 verifierStake;
    uint128 bond; // what the first challenger of a verdict puts up; see `Settlement.bondOf` for the next
    uint128 verifierFee;
    uint32 rerunCount; // reruns of each profiled segment; zero in exact mode
    uint32 profiled; // segments that are profiled, from the first on; zero in exact mode
    uint32 margin; // factor on the distances that a profile has seen; zero is exact mode
    uint32 profileWindow; // from the profile; what is challenged in it may end later; zero in exact mode
    uint32 trainingWindow; // from acceptance to the committed learning proof
    uint32 verificationWindow; // from the draw, or from joining after it, to the verdict
    uint32 challengeWindow; // from the verdict; what is challenged in it may end later
    uint32 clock; // budget of each side in a dispute
}

/// @notice Where a task is. Zero means that it does not exist.
enum Status {
    None,
    Open, // waits for a verifier, for a profile that stood through its window, and for a solver
    Training, // until deadline the solver may commit
    Committed, // waits for the beacon
    Drawn, // until deadline the verifier may post a verdict; no clock runs while nobody is verifier
    Verdict, // until deadline anybody may challenge; then it waits for the disputes that are open
    Closed // everything is paid out
}

/// @notice How a closed task ended.
enum Outcome {
    None,
    Accepted,
    Rejected,
    SolverDefaulted,
    Cancelled
}

/// @notice The state of a task. A zero address or hash means nothing.
struct Task {
    address submitter;
    Status status;
    Outcome outcome;
    bool accepted; // what the current verdict says
    uint32 verdicts; // number of the current verdict; the first is 1
    address verifier;
    uint64 deadline; // last second of what the status allows; zero while no clock runs
    address solver;
    uint64 logSize; // entries of the checkpoint log
    uint64 round; // beacon round that draws the segments
    uint128 fee; // in escrow: maximum price and verifierFee
    uint32 challenges; // of the current verdict, whatever became of them
    uint32 open; // of them, those whose dispute is not resolved
    uint128 price; // agreed with the solver
    uint64[3] thresholds; // that the solver agreed to: by component, squared relative distance times 2^64
    bytes32 logRoot;
    bytes32 seed;
}

/// @notice One challenge of one verdict.
struct Dispute {
    bytes32 taskId;
    address challenger;
    uint32 verdict; // that it is about
    uint32 earlier; // challenges that this verdict had seen before: what the bond depends on
    bool released; // the bond is paid out
}

/// @notice What a verifier says about one drawn segment, see docs/spec/verdict.md.
struct Claim {
    uint32 segment;
    bytes32 start; // solver's state root before the segment
    bytes32 end; // solver's state root after it
    bytes32 replay; // the verifier's state root after replaying it from start
    uint256[3] distances; // by component, between replay and end
    uint256[3] references; // by component, between replay and start
}

/// @notice Inclusion proofs of the two ends of a segment in the solver's checkpoint log.
struct LogProof {
    bytes32[] start; // of entry `segment`
    bytes32[] end; // of entry `segment + 1`
}
