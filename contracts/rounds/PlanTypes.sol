// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice What a plan is on a chain. Fixed at its registration; the plan's id is derived from it.
/// @dev Windows and delays are seconds, amounts are units of the vault's asset. All but the money follows from the
/// plan's document: whoever joins computes it, and joins no registration that says something else.
struct PlanTerms {
    bytes32 plan; // digest of the document
    bytes32 phases; // tree over the phases
    bytes32 initial; // tree over the roots of the initial values; zero if there are none
    uint32 phaseCount;
    uint32 initialCount;
    uint64 rounds;
    address coordinator; // signs rosters, keeps the log
    uint32 answerWindow; // for answers to demands
    uint32 leaveDelay; // in which a worker that leaves can still be accused
    uint32 clock; // budget of each side in a dispute
    uint128 stake; // of a worker
    uint128 keeperStake; // of the coordinator
    uint128 price; // of a replay of one claim, or of an answer, on top of gas
    uint128 pay; // of one settlement
    uint128 work; // units that a settlement pays in full: more of them share its pay, fewer get their part of it
    uint32 settlements;
    uint32 period; // from one settlement to the next
    uint32 lineWindow; // in which workers count their claims; and again, to dispute that
}

/// @notice What each claim of a phase has in common.
struct Phase {
    bytes32 name; // H of it: phases for rosters of several sizes share one
    bytes32 program; // hash
    bytes32 constants; // tree over the roots of the constants: one for each seat, or one for all
    uint32 seats; // roots in that tree
    uint64 steps; // of one claim
    uint32 parts; // claims of one worker in a round
    uint32 slots; // of the program
    bytes32 rules; // tree over the rules of its sources, one for each slot
    uint128 units; // of work that one claim counts for; zero where members make the same claim
    Giver author; // who makes its claims: a member, a route by the part, or nothing: any member
    uint32 authorIndex; // number behind `member:` or `route:`
}

/// @notice A phase and its place in the plan.
struct PhaseProof {
    Phase phase;
    bytes32[] branch;
}

/// @notice By whom a source is given. Zero means nothing.
enum Giver {
    None,
    Own, // the claim's own author, its last part
    Member, // a member of the roster
    Partner, // that the roster gives
    Route, // a member that the roster gives for the part
    Part, // the author's own claim of the part before
    Holder, // who holds a stage, by the roster of the source's round
    Arrival // a claim of a round before that the roster takes
}

/// @notice Which claim gives a slot.
struct SourceRule {
    bytes32 phase; // its name; zero: always the initial value
    uint32 slot; // of that claim's end
    Giver giver;
    uint32 index; // first number behind `member:`, `route:`, `holder:` and `arrival:`
    uint32 part; // second number behind `route:`, + 1; zero: the part of the claim
    uint32 lag; // rounds: 0 or 1; of an arrival, the most
    uint32 initial; // index + 1; zero: none
    bool inherits; // a worker that joins takes it from the first member of the round before
}
