// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputeGame, StartParams} from "../../../contracts/dispute/IDisputeGame.sol";
import {IDisputeResolver} from "../../../contracts/dispute/IDisputeResolver.sol";

/// @notice The least that a market has to be: starts disputes for anybody and remembers what it is told.
contract Resolver is IDisputeResolver {
    /// @dev One word, which every result changes: gas does not depend on the results before.
    uint64 public calls;
    uint128 public number;
    bool public asserterWon;
    bool private _isSet = true; // so that the word is not zero before

    bool public refuses;
    /// @dev What it does to the game when it is told, and what comes of it.
    bytes public reentry;
    bytes public answer;

    function start(IDisputeGame game, StartParams calldata params, bytes calldata header, bytes calldata payload)
        external
        returns (uint256)
    {
        return game.start(params, header, payload);
    }

    function refuse(bool refuses_) external {
        refuses = refuses_;
    }

    function reenter(bytes calldata reentry_) external {
        reentry = reentry_;
    }

    function onResolved(uint256 number_, bool asserterWon_) external {
        require(!refuses, "refused");
        (calls, number, asserterWon) = (calls + 1, uint128(number_), asserterWon_);
        if (reentry.length > 0) (, answer) = msg.sender.call(reentry);
    }
}
