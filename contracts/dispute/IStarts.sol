// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {StartParams} from "./IDisputeGame.sol";
import {Position} from "./Position.sol";

/// @title IStarts
/// @notice Where disputes begin (docs/spec/dispute.md, `start`).
/// @dev Stateless. Reverts if the parameters mean nothing, or if the challenger opens what the other side has said.
interface IStarts {
    /// @notice A hash that has to mean something is zero.
    error ZeroHash();
    /// @notice A number in `StartParams` is outside of what the specification allows.
    error InvalidStart();
    /// @notice The header is not that of the program.
    error WrongProgram();

    /// @notice The first position; the asserter is on turn.
    /// @param params Of the dispute; the players and the clock are not looked at.
    /// @param header The program's.
    /// @param id Of the dispute.
    /// @param payload What the challenger opens, of a receipt behind what it shows of it.
    /// @param width Levels that an opening shows at most.
    function first(
        StartParams calldata params,
        bytes calldata header,
        bytes32 id,
        bytes calldata payload,
        uint256 width
    ) external pure returns (Position memory);
}
