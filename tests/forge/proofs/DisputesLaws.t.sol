// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Clocks, Result} from "../../../contracts/dispute/Clock.sol";
import {ClockExpiry} from "../../../contracts/dispute/ClockExpiry.sol";
import {DisputeStorage, Reason} from "../../../contracts/dispute/DisputeStorage.sol";
import {IDisputeResolver} from "../../../contracts/dispute/IDisputeResolver.sol";
import {Base} from "../Base.sol";

/// @notice Whatever clock a dispute has, and the two ways of asking whether it runs.
contract Hall is ClockExpiry {
    constructor(address market_) DisputeStorage(market_, 1, 0, 0) {}

    function put(uint256 number, uint256 clock) external {
        _disputes[number].clock = clock;
    }

    function end(uint256 number, bool asserterWon) external {
        _end(number, _disputes[number].clock, asserterWon, Reason.RESIGNED);
    }

    function clockOf(uint256 number) external view returns (uint256) {
        return _disputes[number].clock;
    }

    function running(uint256 number) external view returns (uint256) {
        return _running(number);
    }
}

/// @notice Laws of who may move at all. forge draws inputs, `.ci/audit prove` proves them for all.
contract DisputesLaws is Base, IDisputeResolver {
    Hall private hall;
    uint256 private told;

    function setUp() public {
        hall = new Hall(address(this));
    }

    function onResolved(uint256, bool) external {
        ++told;
    }

    function _runs(uint256 number) private view returns (bool success) {
        (success,) = address(hall).staticcall(abi.encodeCall(Hall.running, (number)));
    }

    /// @dev Every move asks `_running` first.
    function testProve_a_side_moves_before_its_deadline_and_never_after(uint256 clock, uint40 time) public {
        vm.warp(time);
        hall.put(7, clock);
        assert(_runs(7) == (uint256(time) < Clocks.deadline(clock)));
    }

    /// @dev The market is told once; from then on no second exists in which somebody moves, and the deadline of 0
    /// refuses timeouts.
    function testProve_after_the_end_nobody_moves(uint256 clock, bool asserterWon, uint40 time) public {
        hall.put(7, clock);
        hall.end(7, asserterWon);
        vm.warp(time);
        uint256 ended = hall.clockOf(7);
        assert(told == 1 && Clocks.deadline(ended) == 0 && !_runs(7));
        assert(uint8(ended >> 64) == uint8(asserterWon ? Result.ASSERTER_WON : Result.CHALLENGER_WON));
    }

    /// @dev A dispute's end leaves all others as they are.
    function testProve_ends_are_apart(uint256 clock, uint256 other, bool asserterWon) public {
        hall.put(7, clock);
        hall.put(8, other);
        hall.end(7, asserterWon);
        assert(hall.clockOf(8) == other);
    }
}
