// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IBeacon} from "./IBeacon.sol";
import {RecordedBeacon} from "./RecordedBeacon.sol";

/// @title PrevrandaoBeacon
/// @notice For test chains: round `r` takes the chain's own randomness (PREVRANDAO, EIP-4399) in the first block from
/// `r` on in which somebody records it. What it does not give:
/// - The proposer of each slot before `r` has one bit of influence: it reveals its share of the mix, or skips its block
///   and loses the
///   reward. Who proposes the last k slots before `r` chooses among 2^k seeds.
/// - The value of a block is known as soon as the block before it is. While nobody records, whoever dislikes it waits,
///   and whoever
///   likes it records. A party that wants no choice left records in block `r`.
contract PrevrandaoBeacon is RecordedBeacon {
    /// @notice Blocks between a commitment and its round: the mix of the next block is known to whoever commits.
    uint64 public constant DELAY = 2;

    /// @inheritdoc IBeacon
    function nextRound() external view returns (uint64) {
        return uint64(block.number) + DELAY;
    }

    /// @inheritdoc IBeacon
    function record(uint64 round) external {
        if (recorded(round)) return;
        if (round > block.number) revert RoundNotReached(round);
        // Rounds that are recorded in the same block get seeds of their own.
        bytes32 value = keccak256(abi.encodePacked(block.prevrandao, round));
        _seeds[round] = value;
        emit Recorded(round, value);
    }
}
