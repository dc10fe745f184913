// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISeatings} from "./ISeatings.sol";

/// @title IJackpot
/// @notice Pays drawn watchers that have named the truth where a verdict said something else, planted or not
/// (docs/spec/incentives.md, "The jackpot").
/// @dev Assumptions: the desks are code of this deployment, named once. The fund is the vault's pot of this desk under
/// `FUND`; every desk may move money into it.
interface IJackpot {
    /// @notice The desks are named, for ever: who knows the seatings, and who may reserve and release.
    event Wired(address indexed seatings, address[] desks);
    /// @notice `account` gave `amount` to the fund.
    event Donated(address indexed account, uint256 amount);
    /// @notice `amount` of the fund is kept for catches of a task.
    event Reserved(bytes32 indexed taskId, uint256 amount);
    /// @notice `amount`, what is left of it, is the fund's again.
    event Released(bytes32 indexed taskId, uint256 amount);
    /// @notice A watcher has committed to what it found; an earlier commitment of this ticket is void.
    event Watched(
        bytes32 indexed taskId, uint32 indexed seating, address indexed account, uint32 ticket, bytes32 commitment
    );
    /// @notice A watcher that had named the truth where a verdict had said something else was paid.
    event Caught(
        bytes32 indexed taskId, uint32 indexed seating, address indexed account, uint32 ticket, uint256 amount
    );

    /// @notice Shares for twice the average number of watchers at least, some time to commit and some to claim.
    error BadDeployment();
    /// @notice The fund has only `available` that isn't reserved.
    error FundShort(uint256 available, uint256 wanted);
    /// @notice The task has a reserve, or had one that was paid from.
    error AlreadyReserved(bytes32 taskId);
    /// @notice The task has no reserve.
    error NotReserved(bytes32 taskId);
    /// @notice A reserve of `amount` has no share that is worth anything.
    error TooSmall(uint256 amount);
    /// @notice No verdict of the task is watched now, or it is too early to commit.
    error NotWatched(bytes32 taskId);
    /// @notice Submitter, solver and verifier of a task don't watch it.
    error IsParty(bytes32 taskId, address account);
    /// @notice This ticket isn't drawn, or isn't there.
    error NotDrawn(address account, uint32 ticket);
    /// @notice The commitment of this ticket doesn't open to what stands there in the end, or there is none any more.
    error NotCaught(address account, uint32 ticket);
    /// @notice The task isn't closed with a verdict.
    error NotClosed(bytes32 taskId);
    /// @notice All shares of the task are paid.
    error AllPaid(bytes32 taskId);
    /// @notice Catches of the task can be claimed up to `until`.
    error TooLate(uint64 until);
    /// @notice Catches of the task can still be claimed, up to `until`.
    error TooEarly(uint64 until);

    /// @notice Knows verifiers in their seats, and where they have planted errors.
    function seatings() external view returns (ISeatings);

    /// @notice Catches of a task that are paid, at most.
    function shares() external view returns (uint32);

    /// @notice How often verdicts are wrong on purpose, times 2^32.
    function rate() external view returns (uint32);

    /// @notice Last seconds of the watch in which commitments are taken.
    function commitWindow() external view returns (uint32);

    /// @notice Seconds to claim catches, from when the task is closed.
    function catchWindow() external view returns (uint32);

    /// @notice Whether `account` is a desk that may reserve and release.
    function mayReserve(address account) external view returns (bool);

    /// @notice What is reserved for a task, its catches that are paid included.
    function reserves(bytes32 taskId) external view returns (uint128 amount, uint32 catches);

    /// @notice What is reserved for all tasks and not paid.
    function reserved() external view returns (uint256);

    /// @notice What the fund could still reserve.
    function available() external view returns (uint256);

    /// @notice What a ticket has committed to.
    function commitments(bytes32 taskId, uint32 seating, address account, uint32 ticket) external view returns (bytes32);

    /// @notice What a catch is paid of what is reserved for its task.
    function share(uint128 amount) external view returns (uint256);

    /// @notice What a task that got a verdict pays the fund: five quarters of what it costs on average, even if every
    /// drawn ticket catches.
    function tax(uint128 jackpot) external view returns (uint256);

    /// @notice Party: gives free money to the fund.
    function donate(uint256 amount) external;

    /// @notice Desk: keeps `amount` for the catches of a task.
    function reserve(bytes32 taskId, uint128 amount) external;

    /// @notice Desk: gives the reserve of a task back, if nobody can have caught anything. Without a reserve nothing
    /// happens.
    function release(bytes32 taskId) external;

    /// @notice Party: commits a drawn ticket of its own to the error that it found in the verdict on the table, in the
    /// last `commitWindow` seconds of the watch; the last commitment counts.
    /// @param commitment `keccak256(abi.encode(account, taskId, seating, index, entry, salt))` with the whole entry
    /// that the watcher has computed: a lie in a sum or in a second look is caught as one in a root.
    function watch(bytes32 taskId, uint32 ticket, bytes32 commitment) external;

    /// @notice Pays a catch in a verdict of any seating to `account`, up to `catchWindow` seconds after the task was
    /// closed; anybody may bring it.
    /// @param index Of the claim that said another root than the one that stands there in the end.
    /// @param evidence What the desk that knows the seatings needs to be shown.
    function claim(
        bytes32 taskId,
        uint32 seating,
        address account,
        uint32 ticket,
        uint32 index,
        bytes32 salt,
        bytes calldata evidence
    ) external;

    /// @notice Gives back to the fund what nobody has claimed in time; for anybody.
    function sweep(bytes32 taskId) external;
}
