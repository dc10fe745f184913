// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AuctionRules} from "./AuctionRules.sol";
import {Desk} from "./Desk.sol";
import {AuctionTerms, Bid, IAuction, Round} from "./IAuction.sol";
import {IStakeVault} from "./IStakeVault.sol";
import {ThroughputLimit} from "./ThroughputLimit.sol";

/// @title Auction
/// @notice See `IAuction`.
/// @dev No verb loops: a bid that loses is paid out by the verb that beats it. The only foreign code that runs is the
/// vault, which calls nobody for a desk. Stakes lie in the vault under the id of the round.
contract Auction is Desk, ThroughputLimit {
    /// @notice The desk whose pot `fundKey` gets what unrevealed bids lose.
    address public immutable fund;
    /// @notice Its key there.
    bytes32 public immutable fundKey;

    /// @inheritdoc IAuction
    mapping(address desk => mapping(bytes32 taskId => bytes32)) public lastRound;
    mapping(bytes32 roundId => Round) private _rounds;
    mapping(bytes32 roundId => mapping(address bidder => Bid)) private _bids;

    /// @param vault_ Holds the stakes.
    /// @param fund_ A desk of the same vault; not the submitter, who could else bid against its solvers for nothing.
    /// @param fundKey_ A pot of it.
    /// @param entryWork_ See `ThroughputLimit`.
    /// @param growth_ See `ThroughputLimit`.
    constructor(IStakeVault vault_, address fund_, bytes32 fundKey_, uint128 entryWork_, uint32 growth_)
        Desk(vault_)
        ThroughputLimit(entryWork_, growth_)
    {
        if (fund_ == address(0)) revert InvalidTerms("fund");
        fund = fund_;
        fundKey = fundKey_;
    }

    /// @inheritdoc IAuction
    function open(bytes32 taskId, AuctionTerms calldata terms) external onlyDesk returns (bytes32 roundId) {
        AuctionRules.check(terms);
        bytes32 last = lastRound[msg.sender][taskId];
        if (last != 0 && !_rounds[last].closed) revert RoundNotOver(last);
        uint32 number = _rounds[last].number + 1;
        roundId = AuctionRules.roundId(msg.sender, taskId, number, terms);
        lastRound[msg.sender][taskId] = roundId;
        Round storage r = _rounds[roundId];
        (r.maximum, r.solverStake) = (terms.maximum, terms.solverStake);
        (r.secondPrice, r.workUnits) = (terms.secondPrice, terms.workUnits);
        (r.submitter, r.window, r.trainingWindow) = (terms.submitter, terms.window, terms.trainingWindow);
        (r.verifier, r.bidUntil) = (terms.verifier, uint48(block.timestamp + terms.window));
        r.number = number;
        (r.bestScore, r.secondScore) = (terms.maximum, terms.maximum);
        emit RoundOpened(roundId, msg.sender, taskId, number, terms, r.bidUntil);
    }

    /// @inheritdoc IAuction
    function cancel(bytes32 taskId) external {
        (bytes32 roundId, Round storage r) = _expectOwn(taskId);
        if (r.bids > 0) revert HasBids(r.bids);
        _close(roundId, r, address(0), 0, 0);
    }

    /// @inheritdoc IAuction
    function conclude(bytes32 taskId) external returns (address winner, uint128 price, uint64 deadline) {
        (bytes32 roundId, Round storage r) = _expectOwn(taskId);
        _after(r.revealed == r.bids ? r.bidUntil : _revealUntil(r));
        winner = r.leader;
        if (winner != address(0)) {
            price = AuctionRules.priceOf(r.secondScore, r.promised, r.secondPrice);
            deadline = uint64(block.timestamp) + r.promised;
        }
        _close(roundId, r, winner, price, deadline);
        if (winner != address(0)) vault.unlock(roundId, winner, r.solverStake);
    }

    /// @inheritdoc IAuction
    function recordAccepted(bytes32 taskId) external {
        bytes32 roundId = lastRound[msg.sender][taskId];
        Round storage r = _rounds[roundId];
        if (!r.closed || r.leader == address(0)) revert NoWinner(roundId);
        _prove(r.leader, r.workUnits, r.promised);
    }

    /// @inheritdoc IAuction
    function bid(bytes32 roundId, bytes32 commitment) external {
        Round storage r = _expectOpen(roundId);
        _notAfter(r.bidUntil);
        address bidder = _party();
        if (bidder == r.submitter || bidder == r.verifier) revert BidderIsParty(bidder);
        if (_bids[roundId][bidder].number != 0) revert AlreadyBid(bidder);
        uint32 number = ++r.bids;
        _bids[roundId][bidder] = Bid(bytes28(commitment), number);
        emit BidPlaced(roundId, bidder, number, commitment);
        vault.lock(roundId, bidder, r.solverStake);
    }

    /// @inheritdoc IAuction
    function reveal(bytes32 roundId, address bidder, uint128 price, uint32 promised, bytes32 salt) external {
        Round storage r = _expectOpen(roundId);
        _after(r.bidUntil);
        _notAfter(_revealUntil(r));
        Bid memory b = _bids[roundId][bidder];
        if (b.number == 0) revert NoSealedBid(bidder);
        bytes32 commitment = AuctionRules.commitment(roundId, bidder, price, promised, salt);
        if (bytes28(commitment) != b.commitment) revert WrongOpening(bidder);
        uint128 score = _admissible(r, bidder, price, promised);
        delete _bids[roundId][bidder];
        ++r.revealed;
        address freed = bidder;
        bool leads = r.leader == address(0) || score < r.bestScore || (score == r.bestScore && b.number < r.leaderBid);
        if (leads) {
            // Without a leader both scores are the maximum.
            (freed, r.secondScore) = (r.leader, r.bestScore);
            (r.leader, r.promised, r.leaderBid, r.bestScore) = (bidder, promised, b.number, score);
        } else if (score < r.secondScore) {
            r.secondScore = score;
        }
        emit BidRevealed(roundId, bidder, price, promised, leads);
        if (freed != address(0)) vault.unlock(roundId, freed, r.solverStake);
    }

    /// @inheritdoc IAuction
    function forfeit(bytes32 roundId, address bidder) external {
        Round storage r = _rounds[roundId];
        _after(_revealUntil(r));
        if (_bids[roundId][bidder].number == 0) revert NoSealedBid(bidder);
        delete _bids[roundId][bidder];
        uint256 lost = AuctionRules.forfeited(r.solverStake);
        emit BidForfeited(roundId, bidder, lost);
        vault.forfeit(roundId, bidder, lost);
        vault.move(roundId, fund, fundKey, lost);
        vault.unlock(roundId, bidder, r.solverStake - lost);
    }

    /// @inheritdoc IAuction
    function expire(bytes32 roundId) external {
        Round storage r = _expectOpen(roundId);
        _after(_revealUntil(r) + r.window);
        address freed = r.leader;
        r.leader = address(0);
        _close(roundId, r, address(0), 0, 0);
        if (freed != address(0)) vault.unlock(roundId, freed, r.solverStake);
    }

    /// @inheritdoc IAuction
    function round(bytes32 roundId) external view returns (Round memory) {
        return _rounds[roundId];
    }

    /// @inheritdoc IAuction
    function sealedBid(bytes32 roundId, address bidder) external view returns (Bid memory) {
        return _bids[roundId][bidder];
    }

    /// @dev The score of a bid that may win.
    function _admissible(Round storage r, address bidder, uint128 price, uint32 promised)
        private
        view
        returns (uint128)
    {
        if (promised < AuctionRules.MIN_PROMISE || promised > r.trainingWindow) {
            revert PromiseOutOfRange(promised, AuctionRules.MIN_PROMISE, r.trainingWindow);
        }
        uint256 score = AuctionRules.score(price, promised, r.secondPrice);
        if (score > r.maximum) revert ScoreTooHigh(score, r.maximum);
        if (!admits(bidder, r.workUnits, promised)) revert NotAdmitted(bidder, rate[bidder]);
        return uint128(score);
    }

    function _close(bytes32 roundId, Round storage r, address winner, uint128 price, uint64 deadline) private {
        r.closed = true;
        emit RoundClosed(roundId, winner, price, deadline);
    }

    /// @dev The round of the calling desk that isn't over. Nobody else has opened one under its address.
    function _expectOwn(bytes32 taskId) private view returns (bytes32 roundId, Round storage r) {
        roundId = lastRound[msg.sender][taskId];
        r = _expectOpen(roundId);
    }

    function _expectOpen(bytes32 roundId) private view returns (Round storage r) {
        r = _rounds[roundId];
        if (r.number == 0) revert UnknownRound(roundId);
        if (r.closed) revert RoundOver(roundId);
    }

    /// @dev Last second for revealing.
    function _revealUntil(Round storage r) private view returns (uint256) {
        return uint256(r.bidUntil) + r.window;
    }

    function _notAfter(uint256 last) private view {
        if (block.timestamp > last) revert TooLate(last);
    }

    function _after(uint256 last) private view {
        if (block.timestamp <= last) revert TooEarly(last);
    }
}
