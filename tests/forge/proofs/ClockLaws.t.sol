// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Clock, Clocks, Result} from "../../../contracts/dispute/Clock.sol";
import {Level} from "../../../contracts/dispute/Position.sol";
import {Base} from "../Base.sol";
import {ClockWords} from "../dispute/ClockWords.sol";

/// @notice Laws of the chess clocks. forge draws inputs, `.ci/audit prove` proves them for all.
contract ClockLaws is Base {
    uint40 private constant LATEST = 2 ** 39;

    /// @dev The mover keeps what it had left, the other side what waited or the grace of the level, and no second
    /// appears otherwise.
    function testProve_press_adds_no_more_than_grace(
        uint24 left,
        uint24 spare,
        uint24 grace,
        uint40 time,
        bool isAsserter,
        address mover
    ) public {
        if (left == 0) left = 1; // the caller has checked that the move is in time
        time %= LATEST;
        vm.warp(time);
        uint256 word = ClockWords.pack(Clock(address(1), Level(0), 3, isAsserter, Result.NONE, spare, time + left));
        Clock memory later = Clocks.unpack(Clocks.press(word, mover, Level(1), 2, grace));
        assert(later.spare == left);
        assert(later.deadline == uint256(time) + (spare < grace ? grace : spare));
        // The latest end if both take all their time: it moves only by what a grace adds.
        uint256 added = spare < grace ? grace - spare : 0;
        assert(uint256(later.deadline) + later.spare == uint256(time) + left + spare + added);
        assert(later.isAsserterOnTurn == !isAsserter && later.waiting == mover && later.result == Result.NONE);
        assert(later.level == Level(1) && later.height == 2);
    }

    function testProve_layout(
        address waiting,
        uint8 height,
        bool isAsserter,
        uint8 result,
        uint24 spare,
        uint40 deadline
    ) public pure {
        uint256 word = uint256(uint160(waiting)) * 2 ** 96 + 2 ** 88 + uint256(height) * 2 ** 80;
        word += (isAsserter ? 2 ** 72 : 0) + (result % 3) * 2 ** 64 + uint256(spare) * 2 ** 40 + deadline;
        Clock memory copy = Clocks.unpack(word);
        assert(copy.waiting == waiting && copy.level == Level(1) && copy.height == height);
        assert(copy.isAsserterOnTurn == isAsserter && copy.result == Result(result % 3));
        assert(copy.spare == spare && copy.deadline == deadline);
        assert(Clocks.waiting(word) == waiting && Clocks.level(word) == Level(1) && Clocks.height(word) == height);
        assert(Clocks.isAsserterOnTurn(word) == isAsserter && Clocks.deadline(word) == deadline);
    }

    function testProve_finish_stops_both_clocks(uint256 word, bool asserterWon) public pure {
        Result result = asserterWon ? Result.ASSERTER_WON : Result.CHALLENGER_WON;
        uint256 ended = Clocks.finish(word, result);
        assert(uint24(ended >> 40) == 0 && Clocks.deadline(ended) == 0 && uint8(ended >> 64) == uint8(result));
        assert(ended >> 72 == word >> 72);
    }
}
