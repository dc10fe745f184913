// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice The two players. Zero means nobody.
enum Side {
    NONE,
    ASSERTER,
    CHALLENGER
}

/// @notice Everything about a dispute that changes with every move but the position.
struct Clock {
    Side turn;
    Side winner;
    uint32 asserter; // seconds left
    uint32 challenger; // seconds left
    uint64 last; // time of the last move
}

/// @notice A `Clock` in one word, as it is stored: `last << 80 | challenger << 48 | asserter << 16 | winner << 8 | turn`.
type PackedClock is uint256;

using Clocks for PackedClock global;

/// @title Clocks
/// @notice Chess clocks: only the time of the side on turn runs down.
library Clocks {
    /// @notice The budget of the side on turn is exhausted since `deadline`.
    error OutOfTime(uint256 deadline);

    uint256 private constant WINNER_AT = 8;
    uint256 private constant ASSERTER_AT = 16;
    uint256 private constant CHALLENGER_AT = 48;
    uint256 private constant LAST_AT = 80;

    /// @notice One word for storage.
    function pack(Clock memory clock) internal pure returns (PackedClock) {
        return PackedClock.wrap(
            uint256(clock.turn) | (uint256(clock.winner) << WINNER_AT) | (uint256(clock.asserter) << ASSERTER_AT)
                | (uint256(clock.challenger) << CHALLENGER_AT) | (uint256(clock.last) << LAST_AT)
        );
    }

    /// @notice The inverse of `pack`.
    function unpack(PackedClock packed) internal pure returns (Clock memory clock) {
        uint256 word = PackedClock.unwrap(packed);
        clock.turn = packed.turn();
        clock.winner = packed.winner();
        clock.asserter = uint32(word >> ASSERTER_AT);
        clock.challenger = uint32(word >> CHALLENGER_AT);
        clock.last = uint64(word >> LAST_AT);
    }

    /// @notice Who has to move; nobody after the end.
    function turn(PackedClock packed) internal pure returns (Side) {
        return Side(uint8(PackedClock.unwrap(packed)));
    }

    /// @notice Who has won; nobody before the end.
    function winner(PackedClock packed) internal pure returns (Side) {
        return Side(uint8(PackedClock.unwrap(packed) >> WINNER_AT));
    }

    /// @notice First second in which the side on turn can no longer move.
    function deadline(PackedClock packed) internal pure returns (uint256) {
        uint256 word = PackedClock.unwrap(packed);
        uint256 budget = uint32(word >> (packed.turn() == Side.ASSERTER ? ASSERTER_AT : CHALLENGER_AT));
        return uint256(uint64(word >> LAST_AT)) + budget;
    }

    /// @notice Charges the side on turn for the time since the last move and gives the turn to `next`.
    function press(PackedClock packed, Side next, uint256 time) internal pure returns (PackedClock) {
        uint256 end = packed.deadline();
        if (time >= end) revert OutOfTime(end);
        bool isAsserter = packed.turn() == Side.ASSERTER;
        (uint256 mine, uint256 other) = isAsserter ? (ASSERTER_AT, CHALLENGER_AT) : (CHALLENGER_AT, ASSERTER_AT);
        uint256 kept = PackedClock.unwrap(packed) & (uint256(type(uint32).max) << other);
        // What is left fits, it is at most the budget that it is left of; and nobody has won a dispute that goes on.
        return PackedClock.wrap(uint256(next) | ((end - time) << mine) | kept | (time << LAST_AT));
    }

    /// @notice Nobody is on turn any more, and `side` has won.
    function finish(PackedClock packed, Side side) internal pure returns (PackedClock) {
        uint256 turnAndWinner = type(uint16).max;
        return PackedClock.wrap((PackedClock.unwrap(packed) & ~turnAndWinner) | (uint256(side) << WINNER_AT));
    }
}
