// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AuctionTerms, IAuction} from "../../../contracts/incentives/IAuction.sol";
import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";

/// @notice The least that a desk with tasks does about their auctions: it passes on, and locks the stake of a winner
/// for the task.
contract AuctionDesk {
    IStakeVault private immutable vault;
    IAuction private auction;

    constructor(IStakeVault vault_) {
        vault = vault_;
    }

    function setAuction(IAuction auction_) external {
        auction = auction_;
    }

    function open(bytes32 taskId, AuctionTerms calldata terms) external returns (bytes32) {
        return auction.open(taskId, terms);
    }

    function cancel(bytes32 taskId) external {
        auction.cancel(taskId);
    }

    function conclude(bytes32 taskId) external returns (address winner, uint128 price, uint64 deadline) {
        (winner, price, deadline) = auction.conclude(taskId);
        if (winner != address(0)) {
            vault.lock(taskId, winner, auction.round(auction.lastRound(address(this), taskId)).solverStake);
        }
    }

    function recordAccepted(bytes32 taskId) external {
        auction.recordAccepted(taskId);
    }

    /// @notice The winner of a task is rid of its duty.
    function release(bytes32 taskId, address winner) external {
        vault.unlock(taskId, winner, vault.locked(address(this), taskId, winner));
    }
}
