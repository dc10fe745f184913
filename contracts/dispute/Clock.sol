// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Level} from "./Position.sol";

/// @notice How a dispute ended, as the clock has it.
enum Result {
    NONE,
    ASSERTER_WON,
    CHALLENGER_WON
}

/// @notice Everything that the chain keeps of a dispute in the clear. The side on turn stands in the head only.
struct Clock {
    address waiting; // the side that is not on turn
    Level level; // of the position
    uint8 height; // of the position
    bool isAsserterOnTurn;
    Result result;
    uint24 spare; // seconds left to the side that is not on turn
    uint40 deadline; // first second in which the side on turn can no longer move; 0 after the end
}

/// @title Clocks
/// @notice Chess clocks: only the time of the side on turn runs down. A clock is one word, from the highest bits on
/// `address of the waiting side (160) || level (8) || height (8) || whether the asserter is on turn (8) || result (8)
/// || seconds left to the waiting side (24) || deadline of the side on turn (40)`.
library Clocks {
    uint256 private constant WAITING_AT = 96;
    uint256 private constant LEVEL_AT = 88;
    uint256 private constant HEIGHT_AT = 80;
    uint256 private constant ASSERTER_AT = 72;
    uint256 private constant RESULT_AT = 64;
    uint256 private constant SPARE_AT = 40;

    /// @notice The asserter is on turn.
    /// @param budget Seconds of the challenger.
    /// @param end First second in which the asserter can no longer move.
    function begin(address challenger, Level level_, uint256 height_, uint256 budget, uint256 end)
        internal
        pure
        returns (uint256)
    {
        return (uint256(uint160(challenger)) << WAITING_AT) | (uint256(level_) << LEVEL_AT) | (height_ << HEIGHT_AT)
            | (1 << ASSERTER_AT) | (budget << SPARE_AT) | end;
    }

    /// @notice The parts of a word.
    function unpack(uint256 word) internal pure returns (Clock memory clock) {
        clock.waiting = address(uint160(word >> WAITING_AT));
        clock.level = Level(uint8(word >> LEVEL_AT));
        clock.height = uint8(word >> HEIGHT_AT);
        clock.isAsserterOnTurn = uint8(word >> ASSERTER_AT) != 0;
        clock.result = Result(uint8(word >> RESULT_AT));
        clock.spare = uint24(word >> SPARE_AT);
        clock.deadline = uint40(word);
    }

    /// @notice First second in which the side on turn can no longer move; 0 after the end, and of no dispute.
    function deadline(uint256 word) internal pure returns (uint256) {
        return uint40(word);
    }

    /// @notice What lies open.
    function level(uint256 word) internal pure returns (Level) {
        return Level(uint8(word >> LEVEL_AT));
    }

    /// @notice Height of the position.
    function height(uint256 word) internal pure returns (uint256) {
        return uint8(word >> HEIGHT_AT);
    }

    /// @notice The side that is not on turn.
    function waiting(uint256 word) internal pure returns (address) {
        return address(uint160(word >> WAITING_AT));
    }

    /// @notice Whether the asserter is on turn.
    function isAsserterOnTurn(uint256 word) internal pure returns (bool) {
        return uint8(word >> ASSERTER_AT) != 0;
    }

    /// @notice The dispute has ended: no budget runs any more.
    function finish(uint256 word, Result result) internal pure returns (uint256) {
        return ((word >> ASSERTER_AT) << ASSERTER_AT) | (uint256(result) << RESULT_AT);
    }

    /// @notice The side on turn has moved in time: what it has left waits, and the other side is on turn with what it
    /// had left, but no less than the grace of the level that it has to answer.
    /// @param mover The side that has moved.
    /// @param level_ Of the new position.
    /// @param height_ Of the new position.
    /// @param grace Least number of seconds for the answer.
    function press(uint256 word, address mover, Level level_, uint256 height_, uint256 grace)
        internal
        view
        returns (uint256)
    {
        unchecked {
            // The move was in time, and what is left is at most what the side had: 24 bits.
            uint256 left = deadline(word) - block.timestamp;
            uint256 budget = uint24(word >> SPARE_AT);
            if (budget < grace) budget = grace;
            uint256 turn = (~word >> ASSERTER_AT) & 1;
            return (uint256(uint160(mover)) << WAITING_AT) | (uint256(level_) << LEVEL_AT) | (height_ << HEIGHT_AT)
                | (turn << ASSERTER_AT) | (left << SPARE_AT) | (block.timestamp + budget);
        }
    }
}
