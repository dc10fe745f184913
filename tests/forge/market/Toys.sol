// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputeGame, StartParams} from "../../../contracts/dispute/IDisputeGame.sol";
import {IDisputeResolver} from "../../../contracts/dispute/IDisputeResolver.sol";
import {IBeacon} from "../../../contracts/market/IBeacon.sol";

/// @notice A game whose winner the test names: what the market does with a result, without the walk that finds it. The
/// real game meets the real market in the Python tests.
contract ToyGame is IDisputeGame {
    event Resolved(uint256 indexed number, bool asserterWon, uint8 reason);

    StartParams private params;
    bytes public header;
    bytes public payload;
    address public resolver;
    uint256 public disputes;

    function start(StartParams calldata params_, bytes calldata header_, bytes calldata payload_)
        external
        returns (uint256 number)
    {
        params = params_;
        header = header_;
        payload = payload_;
        resolver = msg.sender;
        return ++disputes;
    }

    /// @notice Ends the last dispute.
    function finish(bool asserterWon) external {
        report(disputes, asserterWon);
    }

    /// @notice Reports a result that the game never reached.
    function report(uint256 number, bool asserterWon) public {
        emit Resolved(number, asserterWon, 0);
        IDisputeResolver(resolver).onResolved(number, asserterWon);
    }

    function longest(uint32 clock) external pure returns (uint256) {
        return 2 * uint256(clock);
    }

    function started() external view returns (StartParams memory) {
        return params;
    }
}

/// @notice A beacon whose seeds the test names: draws can be looked for. Real beacons meet the market in BlockBeacon.t.sol
/// and in Python.
contract ToyBeacon is IBeacon {
    uint64 public round = 7;
    mapping(uint64 round => bytes32) private _seeds;

    /// @notice Names the seed of a round; from then on later ones are drawn.
    function give(uint64 round_, bytes32 seed_) external {
        _seeds[round_] = seed_;
        if (round_ > round) round = round_;
        emit Recorded(round_, seed_);
    }

    function nextRound() external view returns (uint64) {
        return round + 1;
    }

    function recorded(uint64 round_) external view returns (bool) {
        return _seeds[round_] != 0;
    }

    function seed(uint64 round_) external view returns (bytes32) {
        if (_seeds[round_] == 0) revert RoundNotRecorded(round_);
        return _seeds[round_];
    }

    function record(uint64 round_) external view {
        if (_seeds[round_] == 0) revert RoundNotReached(round_);
    }
}
