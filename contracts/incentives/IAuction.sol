// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice What a desk asks bids for in one round.
/// @dev Amounts are in the smallest unit of the vault's asset, windows are seconds.
struct AuctionTerms {
    uint128 maximum; // no score is above it, so no price is either
    uint128 solverStake; // what each bid locks
    uint128 secondPrice; // what one second of the promise adds to the score
    uint128 workUnits; // weighted operations of the training
    address submitter; // may not bid
    address verifier; // may not bid; zero if there is none
    uint32 window; // for bids, and once more for revealing them
    uint32 trainingWindow; // the longest promise
    bytes32 thresholds; // hash of the thresholds that solvers agree to by their bids
}

/// @notice A round of an auction as it is stored. The id of a round binds all of its terms.
struct Round {
    uint128 maximum;
    uint128 solverStake;
    uint128 secondPrice;
    uint128 workUnits;
    address submitter;
    uint32 window;
    uint32 trainingWindow;
    uint32 bids; // so far
    address verifier;
    uint48 bidUntil; // last second for bids; they are revealed in the `window` seconds after it
    uint32 revealed; // of the bids
    bool closed; // the leader has won, or nobody can any more
    address leader; // has revealed the best bid so far; zero while there is none
    uint32 promised; // seconds that the leader has promised
    uint32 leaderBid; // number of the leader's bid
    uint32 number; // of the round of this task; counts from 1
    uint128 bestScore; // of the leader; `maximum` while there is none
    uint128 secondScore; // the smallest of the others, or `maximum` if that is smaller
}

/// @notice A bid that nobody has revealed yet.
struct Bid {
    bytes28 commitment; // the first bytes of it
    uint32 number; // of the bid in its round; counts from 1, zero means that there is none
}

/// @title IAuction
/// @notice Solvers' reverse auction with sealed bids; the winner is paid the second score (docs/spec/incentives.md,
/// "The auction").
/// @dev Assumptions: a block's time is what it says within seconds, everybody gets a transaction into some block of a
/// window, and the desks of the vault are code of this deployment. A desk reaches only the rounds that it has opened
/// itself.
interface IAuction {
    /// @notice Bids for a task are taken until `bidUntil`, and revealed in `terms.window` seconds after it.
    event RoundOpened(
        bytes32 indexed roundId,
        address indexed desk,
        bytes32 indexed taskId,
        uint32 number,
        AuctionTerms terms,
        uint48 bidUntil
    );
    /// @notice A solver has committed to a bid and locked its stake.
    event BidPlaced(bytes32 indexed roundId, address indexed bidder, uint32 number, bytes32 commitment);
    /// @notice A bid is known. Unless it `leads`, its stake is free; the stake of the leader before is free if it does.
    event BidRevealed(bytes32 indexed roundId, address indexed bidder, uint128 price, uint32 promised, bool leads);
    /// @notice Nobody has revealed this bid: `amount` of its stake is lost, the remainder is free.
    event BidForfeited(bytes32 indexed roundId, address indexed bidder, uint256 amount);
    /// @notice The round is over. `winner` is zero if nobody has won: there were no bids, none was revealed, or the
    /// desk was too late.
    event RoundClosed(bytes32 indexed roundId, address indexed winner, uint128 price, uint64 deadline);
    /// @notice The best rate of `account` among its accepted tasks is now `rate`.
    event RateProven(address indexed account, uint256 rate);

    /// @notice The terms break a rule of `AuctionRules`.
    error InvalidTerms(string field);
    /// @notice No such round was opened.
    error UnknownRound(bytes32 roundId);
    /// @notice The task's round isn't over.
    error RoundNotOver(bytes32 roundId);
    /// @notice The round is over.
    error RoundOver(bytes32 roundId);
    /// @notice The last second for this was `last`.
    error TooLate(uint256 last);
    /// @notice This can be done after second `last`.
    error TooEarly(uint256 last);
    /// @notice Submitter and verifier of a task don't bid for it.
    error BidderIsParty(address bidder);
    /// @notice One bid for each account in a round, and it can't be taken back.
    error AlreadyBid(address bidder);
    /// @notice There are bids: they decide.
    error HasBids(uint32 bids);
    /// @notice `bidder` has no bid in this round that is still sealed.
    error NoSealedBid(address bidder);
    /// @notice `bidder` has committed to something else.
    error WrongOpening(address bidder);
    /// @notice A promise is at least `least` seconds and at most `most`.
    error PromiseOutOfRange(uint32 promised, uint32 least, uint32 most);
    /// @notice The score is above the maximum.
    error ScoreTooHigh(uint256 score, uint128 maximum);
    /// @notice Nothing that `bidder` has finished suggests that it can keep this promise.
    error NotAdmitted(address bidder, uint256 rate);
    /// @notice The round has no winner.
    error NoWinner(bytes32 roundId);

    /// @notice Desk: opens the next round of a task. The one before must be over.
    /// @return roundId What bids are for.
    function open(bytes32 taskId, AuctionTerms calldata terms) external returns (bytes32 roundId);

    /// @notice Desk: ends a round for which nobody has bid.
    function cancel(bytes32 taskId) external;

    /// @notice Desk: ends a round whose bids are revealed, or whose time for that is over. The winner's stake is free
    /// by this: the desk locks it for the task in the same transaction.
    /// @return winner Zero if no bid was revealed.
    /// @return price What makes the winner's score equal the second one.
    /// @return deadline Last second of the winner's promise, counted from now.
    function conclude(bytes32 taskId) external returns (address winner, uint128 price, uint64 deadline);

    /// @notice Desk: the winner of the task's last round has kept its promise and the task is accepted.
    function recordAccepted(bytes32 taskId) external;

    /// @notice Bids for the caller, and locks its stake.
    /// @param commitment keccak256(abi.encode(roundId, bidder, uint128 price, uint32 promised, bytes32 salt)). The salt
    /// keeps the bid secret: 32 random bytes.
    function bid(bytes32 roundId, bytes32 commitment) external;

    /// @notice Reveals a bid; for whoever knows what is in it. A bid that can't win by the rules can't be revealed.
    function reveal(bytes32 roundId, address bidder, uint128 price, uint32 promised, bytes32 salt) external;

    /// @notice After the time for revealing, for anybody: frees the stake of a bid that nobody has revealed, less a
    /// sixteenth.
    function forfeit(bytes32 roundId, address bidder) external;

    /// @notice For anybody, if the desk hasn't concluded a round one more window after its time: nobody wins it, and
    /// the leader's stake is free.
    function expire(bytes32 roundId) external;

    /// @notice The id of the last round of a task; zero if there was none.
    function lastRound(address desk, bytes32 taskId) external view returns (bytes32);

    /// @notice What is known of a round.
    function round(bytes32 roundId) external view returns (Round memory);

    /// @notice A bid that is still sealed.
    function sealedBid(bytes32 roundId, address bidder) external view returns (Bid memory);

    /// @notice Best rate among the tasks of `account` that were accepted: work units per 2^32 seconds of the promise.
    function rate(address account) external view returns (uint256);

    /// @notice Whether `account` is believed to do `workUnits` in `promised` seconds.
    function admits(address account, uint128 workUnits, uint32 promised) external view returns (bool);
}
