// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Ending} from "./TaskTypes.sol";

/// @notice The canonical execution of one profiled segment, see docs/spec/profile.md.
struct Portion {
    bytes32 end; // state root after it
    uint256[3] references; // by component, between end and start
}

/// @notice One execution of a profiled segment in which every sum has another order.
struct Rerun {
    bytes32 end; // state root after it
    uint256[3] distances; // by component, between the portion's end and this one
}

/// @notice A rerun, and the proof that it is the one of this index under a rerun root.
struct Witness {
    uint32 index; // `segment * rerunCount + rerun`
    Rerun rerun;
    bytes32[] path; // RFC 9162 inclusion path of keccak256(abi.encode(rerun))
}

/// @notice A reordered program, proved to be in the terms.
struct Reordered {
    bytes32 program; // its hash
    bytes32[] path; // RFC 9162 inclusion path, at the rerun's number
}

/// @notice How a challenger begins a dispute, see `IDisputeGame.start`.
struct Opening {
    bytes header; // of the program that the dispute is about
    bytes payload; // by which the challenger's version differs
    uint128 mostBond; // that it wants to put up: others may have challenged in between
}

/// @notice What is said to be wrong in a profile. Zero means nothing.
enum Charge {
    None,
    Portion, // the state after a canonical execution
    Rerun, // the state after a rerun
    Distance, // a rerun's distance
    Reference // a portion's reference
}

/// @notice The profile of an open task. Nobody has posted one while `verifier` is zero; `number` counts on.
struct Profile {
    address verifier; // whose stake answers for it
    uint64 deadline; // last second in which it can be challenged
    uint32 number; // profiles that the task has seen, this one included
    uint64[3] thresholds; // by component, squared relative distance times 2^64
    uint32 challenges; // of this profile, whatever became of them
    uint32 open; // of them, those whose dispute is not settled
    bool fell; // its profiler has lost one of them, which is not settled
    bool concluded; // nobody can challenge it any more, and the auction has begun
    bytes32 portions; // keccak256(abi.encode(portions))
    bytes32 rerunRoot; // log root of the reruns
}

/// @notice One challenge of one profile.
struct ProfileDispute {
    bytes32 taskId;
    address challenger;
    uint32 profile; // number of the profile that it is about
    Ending ending;
    uint128 bond;
}
