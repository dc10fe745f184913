// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IBeacon} from "../../../contracts/market/IBeacon.sol";

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
