// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Terms} from "./TaskTypes.sol";

/// @title ISettlement
/// @notice Holds escrows and pays when a task ends or somebody loses money, one row of docs/spec/market.md ("Who pays whom") per verb.
interface ISettlement {
    /// @notice `amount` of what somebody has lost: `share` to `party`, the rest to the fund of the jackpot.
    event Split(bytes32 indexed taskId, address indexed party, uint256 amount, uint256 share);
    /// @notice The escrow has paid its parts: what is left of it is the submitter's again.
    event Settled(bytes32 indexed taskId, uint256 price, uint256 verifierFee, uint256 tax, uint256 treasuryShare);

    /// @notice The solver has withheld data: `bounty` of its stake to `demander`, `share` to the submitter, `fee` to a verifier whose verdict
    /// stood, the rest to the fund of the jackpot.
    event Withheld(
        bytes32 indexed taskId,
        address indexed solver,
        address indexed demander,
        uint256 bounty,
        uint256 share,
        uint256 fee
    );

    /// @notice The work at this price costs more than any task may.
    error PriceTooHigh(uint256 maximum);
    /// @notice The verdict waits for so many disputes.
    error DisputesOpen(uint32 open);
    /// @notice The task waits for the answers of so many demands.
    error DemandsOpen(uint32 open);

    /// @notice Registry: locks the escrow of a new task.
    function hold(bytes32 taskId, address submitter, Terms calldata terms) external returns (uint256 escrow);

    /// @notice Registry: locks the stake of the winner of the auction.
    function holdStake(bytes32 taskId, address solver, uint256 stake) external;

    /// @notice Registry: the task is cancelled, what is left of the escrow is the submitter's.
    function refund(bytes32 taskId) external;

    /// @notice Profiles: the profiler has earned its fee.
    function payProfiler(bytes32 taskId, address profiler) external;

    /// @notice Desks: `amount` has been moved to the pot of the task; `party` gets `points` of it.
    function split(bytes32 taskId, uint256 amount, address party, uint256 points) external;

    /// @notice Anybody closes a task whose verdict stood through its challenge window, all disputes and, if it accepts, all demands.
    function settle(bytes32 taskId) external;

    /// @notice Anybody removes a solver that missed its deadline; a new auction begins.
    function claimSolverDefault(bytes32 taskId) external;

    /// @notice Demands: removes a solver that withholds data. Who verifies has its stake back; a new auction begins.
    function claimWithheld(bytes32 taskId, address demander) external;

    /// @notice Anybody removes a profiler or verifier that missed its deadline; the seat is empty.
    function claimSeatDefault(bytes32 taskId) external;

    /// @notice What the escrow of a task with these terms is.
    function escrowOf(Terms calldata terms) external view returns (uint256);
}
