// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {PlanTerms} from "./PlanTypes.sol";

/// @notice Where a worker of a plan is. Zero means that it has never joined.
enum Standing {
    None,
    Joined,
    Leaving, // can be accused until `until`, which an answer puts off
    Left,
    Slashed // for ever
}

/// @notice A worker's stake in a plan.
struct WorkerBond {
    Standing standing;
    uint64 until; // last second in which a leaving worker can be accused
    uint32 open; // accusations that aren't decided
    uint32 accusations; // all of them
    uint64 quiet; // last second in which its last answer is refuted before its work is paid
    uint128 stake;
    uint64 entries; // of the log, as the keeper says, when it was in no roster any more: of a worker that has gone
    uint64 last; // second of `until`, however often it has still to answer: of a leaving worker
}

/// @title IWorkerBonds
/// @notice Plans on a chain, and the stakes of those who sign claims for them (docs/spec/rounds.md, "On a chain").
/// @dev Verbs of desks are for the desks of the deployment. The key of all locks and pots is the plan's id.
interface IWorkerBonds {
    /// @notice A plan is registered, and all that it will pay is escrowed.
    event Registered(bytes32 indexed id, bytes32 indexed plan, address indexed submitter, PlanTerms terms);
    /// @notice A worker, or the coordinator, answers for what it signs with its stake.
    event Joined(bytes32 indexed id, address indexed worker, uint256 stake);
    /// @notice It wants to leave, and can be accused until then.
    event LeaveStarted(bytes32 indexed id, address indexed worker, uint64 until);
    /// @notice Its stake is free.
    event Departed(bytes32 indexed id, address indexed worker);
    /// @notice An accusation is open, or one is decided; `open` are left.
    event Accused(bytes32 indexed id, address indexed worker, uint32 open);
    /// @notice The stake of a worker is lost: `reward` to the prover, the rest to the treasury.
    event Slashed(bytes32 indexed id, address indexed worker, address indexed prover, uint256 reward, uint256 rest);

    /// @notice The first member of the terms that breaks a rule.
    error InvalidPlan(string field);
    /// @notice No plan has this id, or it is registered already.
    error UnknownPlan(bytes32 id);
    /// @notice See `UnknownPlan`.
    error AlreadyRegistered(bytes32 id);
    /// @notice The worker's standing doesn't allow this.
    error WrongStanding(address worker, Standing standing);
    /// @notice Accusations have to be decided first.
    error AccusationsOpen(uint32 open);
    /// @notice The keeper stays until all settlements are open.
    error SettlementsAhead(bytes32 id);
    /// @notice It is possible after `until`.
    error TooEarly(uint256 until);

    /// @notice Registers a plan of the caller; escrows the pay of all settlements.
    function register(PlanTerms calldata t) external returns (bytes32 id);

    /// @notice The caller joins: with the coordinator's stake if it is that, else with a worker's, and after the
    /// coordinator.
    function join(bytes32 id) external;

    /// @notice The caller leaves; after the delay and all accusations `depart` frees its stake.
    function startLeaving(bytes32 id) external;

    /// @notice Frees the stake of a worker that has left in peace. Anybody.
    function depart(bytes32 id, address worker) external;

    /// @notice For desks: an accusation begins, of a worker that can be accused now.
    /// @return earlier Accusations that it has seen before.
    function accuse(bytes32 id, address worker) external returns (uint32 earlier);

    /// @notice For desks: an accusation is decided.
    /// @param answered Something was shown that nobody may have seen before: pay and departure leave time to refute it.
    function conclude(bytes32 id, address worker, bool answered) external;

    /// @notice For desks: the keeper's word about a worker that has gone (`WorkerBond.entries`); the first one counts.
    function tell(bytes32 id, address worker, uint64 entries) external;

    /// @notice For desks: what `worker` has signed is false. Its stake is lost, once.
    /// @param risked By the prover, as a bond: it wins at least the smaller share, and more if it has risked more.
    /// @return Whether the stake was lost by this.
    function slash(bytes32 id, address worker, address prover, uint256 risked) external returns (bool);

    /// @notice Reverts unless the worker can be accused now.
    function requireAccusable(bytes32 id, address worker) external view;

    /// @notice Reverts unless the worker can be accused until then: the last claim that it shows can be refuted.
    function requireStaying(bytes32 id, address worker, uint64 until) external view;

    /// @notice The terms of a plan; reverts if there is none.
    function terms(bytes32 id) external view returns (PlanTerms memory);

    /// @notice Who has registered a plan.
    function submitterOf(bytes32 id) external view returns (address);

    /// @notice When that was.
    function registeredAt(bytes32 id) external view returns (uint256);

    /// @notice A worker's stake in a plan.
    function bond(bytes32 id, address worker) external view returns (WorkerBond memory);

    /// @notice Where slashed money goes, but for what its prover gets.
    function treasury() external view returns (address);
}
