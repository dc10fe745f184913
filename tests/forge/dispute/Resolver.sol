// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputeGame, StartParams} from "../../../contracts/interfaces/IDisputeGame.sol";
import {IDisputeResolver} from "../../../contracts/interfaces/IDisputeResolver.sol";

/// @notice The least that a market has to be: starts disputes for anybody and remembers what it is told.
contract Resolver is IDisputeResolver {
    struct Answer {
        uint256 calls;
        uint256 id;
        bytes32 context;
        bool asserterWon;
    }

    Answer public answer;
    bool public refuses;

    function start(IDisputeGame game, StartParams calldata params, bytes calldata header) external returns (uint256) {
        return game.start(params, header);
    }

    function refuse(bool refuses_) external {
        refuses = refuses_;
    }

    function onResolved(uint256 id, bytes32 context, bool asserterWon) external {
        require(!refuses, "refused");
        answer = Answer(answer.calls + 1, id, context, asserterWon);
    }
}
