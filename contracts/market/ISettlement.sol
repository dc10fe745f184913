// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Terms} from "./TaskTypes.sol";

/// @title ISettlement
/// @notice Holds escrows and pays when a task ends or somebody loses money, one row of docs/spec/market.md ("Who pays
/// whom") per verb.
interface ISettlement {
    /// @notice `amount` of what somebody has lost: `share` to `party`, the rest to the fund of the jackpot.
    event Split(bytes32 indexed taskId, address indexed party, uint256 amount, uint256 share);
    /// @notice The escrow has paid its parts: what is left of it is the submitter's again.
    event Settled(bytes32 indexed taskId, uint256 price, uint256 verifierFee, uint256 tax, uint256 treasuryShare);

    /// @notice The solver has paid the verifier `amount` for second looks, out of its stake (`Split.lookFee`).
    event LooksPaid(bytes32 indexed taskId, address indexed solver, address indexed verifier, uint256 amount);
    /// @notice The solver has withheld data: `bounty` of its stake to `demander`, `share` to the submitter, `fee` to a
    /// verifier whose verdict stood, the rest to those that had said so (`NotServed`) and the fund of the jackpot.
    event Withheld(
        bytes32 indexed taskId,
        address indexed solver,
        address indexed demander,
        uint256 bounty,
        uint256 share,
        uint256 fee
    );

    /// @notice A segment of the solver's log is false: `amount` of its stake to the objector that has shown it.
    event ObjectorPaid(bytes32 indexed taskId, address indexed solver, address indexed objector, uint256 amount);
    /// @notice A verifier that knew its duty hasn't done it: `claimer` has shown it, and gets `bounty` of its `stake`.
    event SeatDefaulted(bytes32 indexed taskId, address indexed claimer, uint256 stake, uint256 bounty);
    /// @notice The verifier of this seating says that the solver doesn't serve the states, and answers for it with
    /// `bond`.
    event Unserved(bytes32 indexed taskId, uint32 indexed seating, address indexed verifier, uint256 bond);
    /// @notice A word that the solver doesn't serve has ended: its bond is free, or lost to the fund of the jackpot.
    event WordEnded(bytes32 indexed taskId, address indexed verifier, uint256 bond, bool lost);
    /// @notice Two have said that the solver doesn't serve, or one and it has withheld data: of the rest of its stake,
    /// `left`, each of them has got `share`, the submitter `half`.
    event NotServed(bytes32 indexed taskId, address indexed solver, uint256 left, uint256 share, uint256 half);
    /// @notice The beacon has been silent for too long: stakes and escrow are free, but for `tax`, if a verifier had
    /// been seated.
    event Abandoned(bytes32 indexed taskId, uint256 tax);

    /// @notice The beacon hasn't given a round that says whether, or about what, the verifier had a duty: bring it, and
    /// claim again.
    error DutyUnknown(bytes32 taskId);
    /// @notice The rounds are there: the deadline stays.
    error DutyKnown(bytes32 taskId);
    /// @notice Two have to say that the solver doesn't serve.
    error NotUnserved(bytes32 taskId);
    /// @notice The task waits for no round, or not for long enough.
    error NotSilent(bytes32 taskId);
    /// @notice The work at this price costs more than any task may.
    error PriceTooHigh(uint256 maximum);
    /// @notice The task waits for so many disputes about verdict and log.
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

    /// @notice Objections: a segment of the log is false, as `objector` has shown with a `bond`, which has come back
    /// (`Split.objectorReward`). What is left of the stake is split when the task ends.
    function payObjector(bytes32 taskId, address objector, uint256 bond) external;

    /// @notice Anybody closes a task whose verdict stood through its challenge window, all disputes, objections and, if
    /// it accepts, all demands. A proof that fell by an objection is rejected, whatever the verdict says.
    function settle(bytes32 taskId) external;

    /// @notice Anybody removes a solver that missed its deadline; a new auction begins.
    function claimSolverDefault(bytes32 taskId) external;

    /// @notice Demands: removes a solver that withholds data. Who verifies has its stake back; a new auction begins.
    /// @param fell Whether a segment of its log is known to be false: then an objector has had the demander's share.
    /// Those that had said that the solver doesn't serve get theirs instead of it.
    function claimWithheld(bytes32 taskId, address demander, bool fell) external;

    /// @notice Anybody removes a profiler or verifier that missed its deadline; the seat is empty. The rounds that say
    /// what a verifier had to do are recorded before: nobody decides by silence whether a duty counts. The caller gets
    /// a share of a verifier's stake.
    function claimSeatDefault(bytes32 taskId) external;

    /// @notice The seated verifier, within its window and instead of a verdict: the solver doesn't serve the states.
    /// It leaves its seat, which is drawn anew, and answers for its word with a part of its stake
    /// (`Split.unservedBond`). The second word, of another account, ends the training. A verdict that stands takes the
    /// bond of the first, unless its verifier has withdrawn its own word by it, or the log has fallen.
    function unserved(bytes32 taskId) external;

    /// @notice Anybody: ends a training that two have called unserved while an objection was open. A new auction
    /// begins.
    function claimUnserved(bytes32 taskId) external;

    /// @notice Who has said that the present solver of a task doesn't serve.
    function unservedBy(bytes32 taskId) external view returns (address[2] memory);

    /// @notice Anybody: while the beacon hasn't given the rounds that say what a verifier has to do, it has its whole
    /// window from now on.
    function extend(bytes32 taskId) external;

    /// @notice Anybody closes a task that waits for a round which the beacon hasn't given: after `PATIENCE` for a round
    /// that has replaced another, twice that for one that hasn't. Stakes go back; a seating that had been decided pays
    /// its tax from the escrow.
    function abandon(bytes32 taskId) external;

    /// @notice What the escrow of a task with these terms is.
    function escrowOf(Terms calldata terms) external view returns (uint256);
}
