// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IBeacon} from "./IBeacon.sol";

/// @title RecordedBeacon
/// @notice What all beacons share: a round gets one seed, which stays.
abstract contract RecordedBeacon is IBeacon {
    /// @dev A beacon writes a round once, and never zero.
    mapping(uint64 round => bytes32) internal _seeds;

    /// @inheritdoc IBeacon
    function recorded(uint64 round) public view returns (bool) {
        return _seeds[round] != 0;
    }

    /// @inheritdoc IBeacon
    function seed(uint64 round) external view returns (bytes32) {
        bytes32 value = _seeds[round];
        if (value == 0) revert RoundNotRecorded(round);
        return value;
    }
}
