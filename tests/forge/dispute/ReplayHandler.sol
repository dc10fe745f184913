// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {GameHandler} from "./GameHandler.sol";

/// @notice Disputes about two steps, down through all levels.
contract ReplayHandler is GameHandler {
    uint256 private _lie;

    function _open(uint256 dice) internal virtual override {
        if (number > 0) _change(_lie);
        _lie = dice;
        uint256 node = _change(dice);
        // What follows from these nodes is no part of the state.
        if (node == 0 || node == 1 || node > 4) states[_key(1, STEP + 1)][0][0] ^= 1;
        _start(_replay(2));
    }

    /// @dev Version 1 changes one word of an output, or back; or of none, so that only the state after it will be
    /// false.
    function _change(uint256 dice) private returns (uint256 node) {
        uint8[8] memory nodes_ = [0, 1, 2, 5, 3, 3, 4, 6];
        uint8[8] memory elements = [1, 0, 1, 0, 64, 65, 0, 0];
        uint256 which = dice % 8;
        node = nodes_[which];
        if (node < 6) outputs[_key(1, STEP)][node][elements[which]] ^= 1;
        _advance(_key(1, STEP));
    }
}
