// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Opening} from "./Opening.sol";
import {Position} from "./Position.sol";

/// @notice A primitive on words, what the asserter says that it yields, and what it yields.
struct Outcome {
    uint8 op;
    uint32 a;
    uint32 b;
    uint32 c;
    uint32 claimed;
    uint32 computed;
}

/// @title IOneStep
/// @notice The end of every walk over a replay: one instruction, executed on words that both sides are bound to.
interface IOneStep {
    /// @notice Resolves the operands of the disputed instruction and executes it.
    /// @dev Reverts if anything that is shown is not what the position commits to. Stateless.
    /// @param position A position at level ONE_STEP.
    /// @param constants Root of the task's constants.
    /// @param descriptor The disputed node's descriptor, which hashes to `position.descriptor`.
    /// @param values Results of all instructions, which hash to `position.opening`; empty for a body of one instruction.
    /// @param openings One for each word read, in the order in which registers a, b and c first need them.
    function execute(
        Position calldata position,
        bytes32 constants,
        bytes calldata descriptor,
        bytes calldata values,
        Opening[] calldata openings
    ) external pure returns (Outcome memory);
}
