// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Clocks} from "./Clock.sol";
import {DisputeStorage, Reason} from "./DisputeStorage.sol";

/// @title ClockExpiry
/// @notice The rule that ends a clock. The side on turn may move before its deadline; from the deadline on nobody may
/// move, and anybody may end the dispute for the other side. A dispute that is over has the deadline 0: neither is
/// possible then.
/// @dev How much time a move leaves to either side, says `Clocks.press`.
abstract contract ClockExpiry is DisputeStorage {
    /// @notice Dispute `number` has a winner.
    error Finished(uint256 number);
    /// @notice The budget of the side on turn is exhausted since `deadline`.
    error OutOfTime(uint256 deadline);
    /// @notice The side on turn may still move, until before `deadline`.
    error NotExpired(uint256 deadline);

    /// @notice Ends a dispute whose side on turn has no time left. Anybody may call it.
    /// @param number The dispute.
    function timeout(uint256 number) external {
        uint256 clock = _existing(number);
        uint256 end = Clocks.deadline(clock);
        if (end == 0) revert Finished(number);
        if (block.timestamp < end) revert NotExpired(end);
        _end(number, clock, !Clocks.isAsserterOnTurn(clock), Reason.TIMEOUT);
    }

    /// @notice First second in which `timeout` is possible; 0 if the dispute is finished.
    function deadline(uint256 number) public view returns (uint256) {
        return Clocks.deadline(_existing(number));
    }

    /// @notice Seconds in which the side on turn can still move; 0 if none are left or the dispute is finished.
    function timeLeft(uint256 number) external view returns (uint256) {
        uint256 end = deadline(number);
        return end > block.timestamp ? end - block.timestamp : 0;
    }

    /// @dev The clock of a dispute whose side on turn may still move: every move asks for it first.
    function _running(uint256 number) internal view returns (uint256 clock) {
        clock = _at(number).clock;
        if (block.timestamp >= Clocks.deadline(clock)) _refuseLate(number);
    }

    /// @dev Says why a dispute does not run.
    function _refuseLate(uint256 number) private view {
        uint256 end = Clocks.deadline(_existing(number));
        if (end == 0) revert Finished(number);
        revert OutOfTime(end);
    }
}
