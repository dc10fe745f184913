// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputeGame, StartParams} from "../../../contracts/interfaces/IDisputeGame.sol";
import {IDisputeResolver} from "../../../contracts/interfaces/IDisputeResolver.sol";

/// @notice A game whose winner the test names: what the market does with a result, without the walk that finds it. The real game meets
/// the real market in the Python tests.
contract ToyGame is IDisputeGame {
    StartParams private params;
    bytes public header;
    address public resolver;
    uint256 public disputes;

    function start(StartParams calldata params_, bytes calldata header_) external returns (uint256 id) {
        params = params_;
        header = header_;
        resolver = msg.sender;
        return ++disputes;
    }

    /// @notice Ends the last dispute.
    function finish(bool asserterWon) external {
        IDisputeResolver(resolver).onResolved(disputes, params.context, asserterWon);
    }

    /// @notice Reports a result that the game never reached.
    function report(uint256 id, bytes32 context, bool asserterWon) external {
        IDisputeResolver(resolver).onResolved(id, context, asserterWon);
    }

    function started() external view returns (StartParams memory) {
        return params;
    }
}
