// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

// What the parties of a training of many workers sign off chain (docs/spec/rounds.md): the members of the EIP-712
// types, in their order.

/// @notice This program leads from this state to that one; its inputs are bound to other claims.
struct RoundClaim {
    bytes32 plan; // the id of its registration, here and below
    address worker; // the author
    uint64 round;
    uint32 phase; // index into the plan's phases
    uint32 part; // of a worker's claims in one phase and round, from 0
    bytes32 roster; // digest of the round's roster
    bytes32 program; // hash of the step program
    bytes32 constants; // root of the constants
    uint64 firstStep;
    uint64 steps;
    bytes32 start; // state root before
    bytes32 end; // state root after
    bytes32 sources; // root over the bound inputs, one for each slot of the program
}

/// @notice A claim and its author's signature.
struct SignedClaim {
    RoundClaim claim;
    bytes signature; // r || s || v
}

/// @notice The receiver of a claim has it.
struct Delivery {
    bytes32 plan;
    uint64 round;
    bytes32 claim; // digest
}

/// @notice A receipt and its receiver's signature.
struct SignedDelivery {
    Delivery delivery;
    bytes signature;
}

/// @notice Who takes part in a round.
struct Roster {
    bytes32 plan;
    uint64 round;
    bytes32 document; // digest
}

/// @notice The log of all of these, up to an entry.
struct LogHead {
    bytes32 plan;
    uint64 size;
    bytes32 root; // RFC 9162
}

/// @notice A head and the signature of the log's keeper.
struct SignedHead {
    LogHead head;
    bytes signature;
}

/// @notice A bound input: slot `slot` of the end of `claim` has this root. A claim of zeros is an initial value of the
/// plan, and `slot` its index.
struct Source {
    bytes32 claim;
    uint32 slot;
    bytes32 root;
}
