// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice The two players. Zero means nobody.
enum Side {
    NONE,
    ASSERTER,
    CHALLENGER
}

/// @notice Everything about a dispute that changes with every move but the position: one storage slot when packed.
struct Clock {
    Side turn;
    Side winner;
    uint32 asserter; // seconds left
    uint32 challenger; // seconds left
    uint64 last; // time of the last move
}

/// @title Clocks
/// @notice Chess clocks: only the time of the side on turn runs down.
library Clocks {
    /// @notice The budget of the side on turn is exhausted since `deadline`.
    error OutOfTime(uint256 deadline);

    /// @notice One word for storage.
    function pack(Clock memory clock) internal pure returns (uint256) {
        return uint256(clock.turn) | (uint256(clock.winner) << 8) | (uint256(clock.asserter) << 16)
            | (uint256(clock.challenger) << 48) | (uint256(clock.last) << 80);
    }

    /// @notice The inverse of `pack`.
    function unpack(uint256 packed) internal pure returns (Clock memory clock) {
        clock.turn = Side(uint8(packed));
        clock.winner = Side(uint8(packed >> 8));
        clock.asserter = uint32(packed >> 16);
        clock.challenger = uint32(packed >> 48);
        clock.last = uint64(packed >> 80);
    }

    /// @notice First second in which the side on turn can no longer move.
    function deadline(Clock memory clock) internal pure returns (uint256) {
        return uint256(clock.last) + (clock.turn == Side.ASSERTER ? clock.asserter : clock.challenger);
    }

    /// @notice Charges the side on turn for the time since the last move and gives the turn to `next`.
    function press(Clock memory clock, Side next, uint256 time) internal pure {
        uint256 end = deadline(clock);
        if (time >= end) revert OutOfTime(end);
        // Fits: what is left is at most the budget that it is left of.
        if (clock.turn == Side.ASSERTER) clock.asserter = uint32(end - time);
        else clock.challenger = uint32(end - time);
        clock.turn = next;
        clock.last = uint64(time);
    }
}
