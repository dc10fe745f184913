// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

// What a dispute is about: `StartParams.kind` (docs/spec/dispute.md, docs/spec/verdict.md). Zero means nothing. The
// market has kinds of its own (`IChallenges.sol`, 5, 6 and 8): each is one of these to the game.

/// @dev An execution: the program leads from `start` to `end` in `steps` steps.
uint8 constant KIND_REPLAY = 1;
/// @dev A sum: the distance of one component between the state after a replay and the state claimed.
uint8 constant KIND_DISTANCE = 2;
/// @dev The same sum between the state after a replay and the one before it, by which distances are measured.
uint8 constant KIND_REFERENCE = 3;
/// @dev A receipt of execution: drawn nodes of one step have these outputs. Numbers between are the market's.
uint8 constant KIND_RECEIPT = 7;
