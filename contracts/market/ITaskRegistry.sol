// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Outcome, Status, Task, Terms} from "./TaskTypes.sol";

/// @title ITaskRegistry
/// @notice Which tasks there are, what their submitters ask for, and where each is in its life (docs/spec/market.md).
/// The desks of the market do the work; they move a task from one status to the next, and nobody else does.
///
/// Profiling -> Bidding -> Training -> Committed -> Verifying -> Watched -> Contested -> Closed, without Profiling in
/// exact mode. A solver that defaults leads back to Bidding, a verifier that loses its seat back to Committed. All
/// ways: `Lifecycle`.
///
/// Assumptions: the desks are code of this deployment, named once. Times are block timestamps; what a deadline allows
/// is allowed in its last second too. A program, constants or document that nobody can fetch makes a task that nobody
/// should join: the contract knows hashes only.
interface ITaskRegistry {
    /// @notice A task is there, with `escrow` of the submitter's money.
    event TaskSubmitted(bytes32 indexed taskId, address indexed submitter, uint256 nonce, Terms terms, uint256 escrow);
    /// @notice The task is in `status` now, until `deadline` if that isn't zero.
    event Advanced(bytes32 indexed taskId, Status status, uint64 deadline);
    /// @notice `holder` sits in seat number `seating` now, as profiler or verifier; zero: the seat is empty.
    event Seated(bytes32 indexed taskId, uint32 seating, address indexed holder);
    /// @notice `solver` trains for `price` until `deadline`.
    event Awarded(bytes32 indexed taskId, address indexed solver, uint128 price, uint64 deadline);
    /// @notice The solver has lost the task: it missed its deadline or withheld data.
    event SolverGone(bytes32 indexed taskId, address indexed solver);
    /// @notice The task is over; what it held is free.
    event TaskClosed(bytes32 indexed taskId, Outcome outcome);

    /// @notice The terms break a rule; `field` names the first that does.
    error InvalidTerms(string field);
    /// @notice The task is somewhere else in its life. Read it again: perhaps somebody made your move.
    error WrongStatus(bytes32 taskId, Status status);
    /// @notice `Lifecycle` has no such way for the desk that asks for it.
    error IllegalTransition(Status from, Status to);
    /// @notice The time for this is over.
    error DeadlinePassed(uint64 deadline);
    /// @notice It is too early: others may still act until `deadline`.
    error DeadlineNotPassed(uint64 deadline);
    /// @notice A hash is zero, which means nothing.
    error ZeroHash();

    /// @notice Opens a task; the escrow is locked from the caller's free money in the vault.
    /// @return taskId `keccak256(abi.encode(chainid, registry, submitter, nonce, terms))`, the nonce counting the
    /// submitter's tasks from 0.
    function submit(Terms calldata terms_) external returns (bytes32 taskId);

    /// @notice The submitter withdraws a task for which no solver trains: the escrow is free. Not while a profile can
    /// be challenged or a dispute about it is open: a cancelled task would be the exit of a profiler that lied.
    function cancel(bytes32 taskId) external;

    /// @notice Desks: the profile is final, or a solver is gone: the auction begins.
    function openBidding(bytes32 taskId) external;

    /// @notice Anybody: ends a round of the auction. There is a solver, or a new round.
    function award(bytes32 taskId) external;

    /// @notice Desks: from one status to the next, along a row of `Lifecycle`.
    function advance(bytes32 taskId, Status from, Status to, uint64 deadline) external;

    /// @notice Seats: the holder of the seat, zero to empty it.
    function seat(bytes32 taskId, uint32 seating, address holder) external;

    /// @notice Settlement: the task is over.
    function close(bytes32 taskId, Outcome outcome) external;

    /// @notice The id that a task of this submitter would get with this nonce.
    function computeTaskId(address submitter, uint256 nonce, Terms calldata terms_) external view returns (bytes32);

    /// @notice The state of a task.
    function task(bytes32 taskId) external view returns (Task memory);

    /// @notice The terms of a task.
    function terms(bytes32 taskId) external view returns (Terms memory);

    /// @notice The program of a task.
    function program(bytes32 taskId) external view returns (bytes32);

    /// @notice How many tasks a submitter has opened.
    function nonces(address submitter) external view returns (uint256);
}
