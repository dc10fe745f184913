// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IBeacon} from "./IBeacon.sol";
import {RecordedBeacon} from "./RecordedBeacon.sol";

/// @title BlockBeacon
/// @notice Round `r` is the hash of block `r`. Good enough for a test network; know what it does not give:
/// - The producer of block `r` sees its hash first and may withhold the block, at the price of a block reward, to draw
///   again.
/// - The chain forgets a hash after 256 blocks. If nobody recorded round `r` by then, its seed becomes the hash of the
///   next block in
///   `r + 256, r + 512, ...` that is still known. Someone who dislikes the seed can therefore hope that nobody records
/// it in 256
///   blocks; anybody who likes it records it. Nobody can *choose* a block: at any time only one is admissible.
contract BlockBeacon is RecordedBeacon {
    /// @notice Blocks between a commitment and the round that it is bound to.
    uint64 public constant DELAY = 2;
    /// @notice How many past block hashes the EVM knows.
    uint64 public constant HISTORY = 256;

    /// @inheritdoc IBeacon
    function nextRound() external view returns (uint64) {
        return uint64(block.number) + DELAY;
    }

    /// @inheritdoc IBeacon
    function record(uint64 round) external {
        if (recorded(round)) return;
        if (round >= block.number) revert RoundNotReached(round);
        bytes32 value = blockhash(admissibleBlock(round));
        if (value == 0) revert RoundNotRecorded(round);
        _seeds[round] = value;
        emit Recorded(round, value);
    }

    /// @notice The one block whose hash `round` would get if it were recorded now: `round` itself, or the only `round +
    /// 256 * j` among the last 256 blocks.
    function admissibleBlock(uint64 round) public view returns (uint256) {
        if (round >= block.number) return round;
        // Whole multiples are wanted: the remainder is to be lost.
        // slither-disable-next-line divide-before-multiply
        return round + (block.number - 1 - round) / HISTORY * HISTORY;
    }
}
