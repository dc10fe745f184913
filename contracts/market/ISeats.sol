// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice One seat of one task, from the day that it is empty until its holder leaves it.
struct Seating {
    uint32 number; // of the seats of this task, from 1
    bool verifies; // a verifier's seat; else a profiler's
    uint64 round; // of the beacon, that ranks claims
    uint64 fixedAt; // when the round was fixed: tickets count as they were then
    uint64 until; // last second for claims; zero while the round has no seed
    bytes32 seed; // of the round
    address best; // who has claimed with the smallest rank so far
    uint256 rank; // of that claim
    bytes32 commitment; // to the secret of that claim
    address holder; // who sits
    uint64 dutyRound; // of the beacon, fixed when the holder sat down: it says whether the holder has to err
    uint64 dutyFixedAt; // when that round was fixed
    uint128 stake; // of the holder, locked until it leaves
    bool left; // the holder has left
}

/// @title ISeats
/// @notice Who profiles and who verifies: the ticket of smallest rank that claims (docs/spec/incentives.md, "Weights
/// and draws").
interface ISeats {
    /// @notice Seat `number` is empty; `round` of the beacon ranks claims of those who were enrolled at `fixedAt`.
    event SeatOpened(
        bytes32 indexed taskId, uint32 indexed number, bool verifies, uint64 round, uint64 fixedAt, uint128 stake
    );
    /// @notice The seed is there: claims until `until`.
    event ClaimsOpened(bytes32 indexed taskId, uint32 indexed number, bytes32 seed, uint64 until);
    /// @notice `account` has the best claim so far; whoever had it before has its stake back.
    event SeatClaimed(
        bytes32 indexed taskId,
        uint32 indexed number,
        address indexed account,
        uint32 ticket,
        uint256 rank,
        bytes32 commitment
    );
    /// @notice `holder` sits. `dutyRound` says whether it has to err.
    event SeatTaken(
        bytes32 indexed taskId, uint32 indexed number, address indexed holder, uint64 dutyRound, uint64 dutyFixedAt
    );
    /// @notice The holder has left the seat; its stake is free or lost.
    event SeatLeft(bytes32 indexed taskId, uint32 indexed number, address indexed holder, bool slashed);

    /// @notice There is no empty seat of this task, or it isn't in the state that this needs.
    error NoSeat(bytes32 taskId);
    /// @notice The beacon has given the round.
    error RoundStands(uint64 round);
    /// @notice The wait has had its other round: it ends by `ISettlement.abandon`.
    error AlreadyReplaced(bytes32 taskId);
    /// @notice A claim of smaller rank is there.
    error Beaten(uint256 rank);

    /// @notice Desks: a seat is empty. An earlier one of the task is closed.
    function open(bytes32 taskId, bool verifies) external;

    /// @notice Anybody: takes the seed of the round, recording it if nobody did. Claims begin.
    function openClaims(bytes32 taskId) external;

    /// @notice Anybody: a round that the beacon has not given in `PATIENCE` is replaced by one that nobody knows yet,
    /// once.
    function replaceRound(bytes32 taskId) external;

    /// @notice Claims the seat with one of the caller's tickets and locks the stake.
    /// @param commitment `keccak256(abi.encode(account, taskId, secret))`; zero for a profiler's seat.
    function claim(bytes32 taskId, uint32 ticket, bytes32 commitment) external;

    /// @notice Anybody, after the window: the best claim sits down, or nobody claimed and a new round is drawn.
    function decide(bytes32 taskId) external;

    /// @notice Desks: the holder has done its duty.
    function release(bytes32 taskId) external;

    /// @notice Desks: the holder has lost its stake; `party` gets `points` of it, see `Split`.
    function slash(bytes32 taskId, address party, uint256 points) external;

    /// @notice Settlement: a verifier that knew its duty hasn't done it. Its stake is in the settlement's pot of the
    /// task.
    function forfeit(bytes32 taskId) external returns (uint256 stake);

    /// @notice The seat of a task.
    function seating(bytes32 taskId) external view returns (Seating memory);

    /// @notice The seed of the duty round; zero while the beacon has none.
    function dutySeed(bytes32 taskId) external view returns (bytes32);

    /// @notice Last second that the seat waits for a round that the beacon hasn't given, of claims or of the duty; zero
    /// if it waits for none.
    function patientUntil(bytes32 taskId) external view returns (uint64);
}
