// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AuctionTerms, Bid, IAuction, Round} from "../../../contracts/incentives/IAuction.sol";
import {Vm} from "../Base.sol";

/// @notice A bot that lost its disk: rebuilds rounds, bids and rates from nothing but the auction's events.
contract AuctionReplay {
    mapping(address desk => mapping(bytes32 taskId => bytes32)) public lastRound;
    mapping(address account => uint256) public rate;
    mapping(bytes32 roundId => Round) private _rounds;
    mapping(bytes32 roundId => mapping(address bidder => Bid)) private _bids;

    function round(bytes32 roundId) external view returns (Round memory) {
        return _rounds[roundId];
    }

    function sealedBid(bytes32 roundId, address bidder) external view returns (Bid memory) {
        return _bids[roundId][bidder];
    }

    function replay(Vm.Log calldata log) external {
        bytes32 topic = log.topics[0];
        bytes32 id = log.topics[1];
        Round storage r = _rounds[id];
        if (topic == IAuction.RoundOpened.selector) {
            lastRound[address(uint160(uint256(log.topics[2])))][log.topics[3]] = id;
            AuctionTerms memory t;
            (r.number, t, r.bidUntil) = abi.decode(log.data, (uint32, AuctionTerms, uint48));
            (r.maximum, r.solverStake, r.bestScore, r.secondScore) = (t.maximum, t.solverStake, t.maximum, t.maximum);
            (r.secondPrice, r.workUnits, r.window, r.trainingWindow) =
            (t.secondPrice, t.workUnits, t.window, t.trainingWindow);
            (r.submitter, r.verifier) = (t.submitter, t.verifier);
        } else if (topic == IAuction.RateProven.selector) {
            rate[address(uint160(uint256(id)))] = abi.decode(log.data, (uint256));
        } else {
            _bidding(log, r, _bids[id][address(uint160(uint256(log.topics[2])))]);
        }
    }

    function _bidding(Vm.Log calldata log, Round storage r, Bid storage b) private {
        bytes32 topic = log.topics[0];
        if (topic == IAuction.BidPlaced.selector) {
            bytes32 commitment;
            (b.number, commitment) = abi.decode(log.data, (uint32, bytes32));
            b.commitment = bytes28(commitment);
            ++r.bids;
        } else if (topic == IAuction.BidRevealed.selector) {
            (uint128 price, uint32 promised, bool leads) = abi.decode(log.data, (uint128, uint32, bool));
            uint128 score = price + r.secondPrice * promised;
            ++r.revealed;
            if (leads) {
                if (r.leader != address(0)) r.secondScore = r.bestScore;
                r.leader = address(uint160(uint256(log.topics[2])));
                (r.promised, r.leaderBid, r.bestScore) = (promised, b.number, score);
            } else if (score < r.secondScore) {
                r.secondScore = score;
            }
            (b.commitment, b.number) = (0, 0);
        } else if (topic == IAuction.BidForfeited.selector) {
            (b.commitment, b.number) = (0, 0);
        } else if (topic == IAuction.RoundClosed.selector) {
            r.closed = true;
            if (uint256(log.topics[2]) == 0) r.leader = address(0);
        } else {
            revert("unknown event");
        }
    }
}
