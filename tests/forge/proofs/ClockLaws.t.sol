// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Clock, Clocks, PackedClock, Side} from "../../../contracts/dispute/Clock.sol";

/// @notice Laws of the chess clocks. forge draws inputs, `.ci/audit prove` proves them for all.
contract ClockLaws {
    function press(PackedClock packed, Side next, uint256 time) external pure returns (PackedClock) {
        return packed.press(next, time);
    }

    /// @dev The argument of an error.
    function _word(bytes memory data) private pure returns (uint256 value) {
        assembly ("memory-safe") {
            value := mload(add(data, 36))
        }
    }

    /// @dev A press never adds to a budget, takes exactly the time that passed, and leaves the other side's alone.
    function testProve_press_takes_the_time_of_the_mover(
        uint32 asserter,
        uint32 challenger,
        uint64 last,
        uint64 time,
        bool asserters,
        bool again
    ) public view {
        // Half of the times lie within the budget or just behind it.
        if (time % 2 == 0 && last < 2 ** 63) time = last + time / 2 % (uint64(asserters ? asserter : challenger) + 2);
        Side mover = asserters ? Side.ASSERTER : Side.CHALLENGER;
        Side next = again ? Side.ASSERTER : Side.CHALLENGER;
        Clock memory before = Clock(mover, Side.NONE, asserter, challenger, last);
        (bool succeeded, bytes memory output) =
            address(this).staticcall(abi.encodeCall(this.press, (Clocks.pack(before), next, time)));
        uint256 budget = asserters ? asserter : challenger;
        assert(succeeded == (time < uint256(last) + budget) || time < last);
        if (!succeeded) assert(bytes4(output) == Clocks.OutOfTime.selector && _word(output) == uint256(last) + budget);
        if (!succeeded || time < last) return;
        Clock memory later = Clocks.unpack(abi.decode(output, (PackedClock)));
        uint256 left = asserters ? later.asserter : later.challenger;
        uint256 passed = uint256(time) - last;
        assert(left == budget - passed);
        assert(left <= budget && left > 0);
        assert((asserters ? later.challenger : later.asserter) == (asserters ? challenger : asserter));
        assert(later.turn == next && later.winner == Side.NONE && later.last == time);
        // The end of a dispute in which both take all their time: it never moves away.
        assert(uint256(later.last) + later.asserter + later.challenger == uint256(last) + asserter + challenger);
    }

    function testProve_layout(uint32 asserter, uint32 challenger, uint64 last, uint8 turn, uint8 winner) public pure {
        Clock memory clock = Clock(Side(turn % 3), Side(winner % 3), asserter, challenger, last);
        uint256 word = uint256(last) * 2 ** 80 + uint256(challenger) * 2 ** 48 + uint256(asserter) * 2 ** 16;
        assert(PackedClock.unwrap(Clocks.pack(clock)) == word + (winner % 3) * 256 + turn % 3);
    }

    function testProve_packing(uint32 asserter, uint32 challenger, uint64 last, uint8 turn, uint8 winner) public pure {
        Clock memory clock = Clock(Side(turn % 3), Side(winner % 3), asserter, challenger, last);
        Clock memory copy = Clocks.unpack(Clocks.pack(clock));
        assert(copy.turn == clock.turn && copy.winner == clock.winner);
        assert(copy.asserter == asserter && copy.challenger == challenger && copy.last == last);
    }

    function testProve_finish_ends_and_keeps_the_rest(uint32 asserter, uint32 challenger, uint64 last, bool side)
        public
        pure
    {
        Side winner = side ? Side.ASSERTER : Side.CHALLENGER;
        PackedClock packed = Clocks.pack(Clock(Side.ASSERTER, Side.NONE, asserter, challenger, last));
        Clock memory clock = Clocks.unpack(packed.finish(winner));
        assert(clock.turn == Side.NONE && clock.winner == winner);
        assert(clock.asserter == asserter && clock.challenger == challenger && clock.last == last);
    }

    function testProve_the_deadline_is_the_movers(uint32 asserter, uint32 challenger, uint64 last, bool side)
        public
        pure
    {
        Side mover = side ? Side.ASSERTER : Side.CHALLENGER;
        PackedClock packed = Clocks.pack(Clock(mover, Side.NONE, asserter, challenger, last));
        assert(packed.deadline() == uint256(last) + (side ? asserter : challenger));
        assert(packed.turn() == mover && packed.winner() == Side.NONE);
    }
}
