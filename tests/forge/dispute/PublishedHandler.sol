// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {GameHandler} from "./GameHandler.sol";
import {GameTest} from "./GameTest.sol";
import {PublishedGame} from "./PublishedGame.sol";

/// @notice Disputes that begin below the trace of one of two steps: at a node, at a leaf of one, or at a state.
contract PublishedHandler is GameHandler, PublishedGame {
    function setUp() public override(GameTest) {
        super.setUp();
    }

    function _open(uint256 dice) internal override {
        for (uint256 i = FIRST_STEP; i < FIRST_STEP + 2; i++) {
            outputs[_key(1, i)] = outputs[_key(0, i)];
            states[_key(1, i + 1)] = states[_key(0, i + 1)];
        }
        uint256 step = dice & 1;
        dice >>= 1;
        if (dice % 4 == 0) _openState(step, dice >> 2);
        else _openNode(step, dice >> 2);
    }

    /// @dev The traces are right, the state after the step is not.
    function _openState(uint256 step, uint256 dice) private {
        uint32[] storage words = states[_key(1, FIRST_STEP + step + 1)][dice % 3];
        words[(dice >> 8) % words.length] ^= uint32(1 << ((dice >> 16) % 32));
        _beginState(step);
        _show(_shownState(step));
    }

    /// @dev One bit of one output is wrong; the step after it is executed from there.
    function _openNode(uint256 step, uint256 dice) private {
        uint256 node = [uint8(0), 1, 2, 3, 3, 4, 5, 5][dice % 8];
        uint256 key = _key(1, FIRST_STEP + step);
        uint32[] storage words = outputs[key][node];
        uint256 element = (dice >> 8) % words.length;
        words[element] ^= uint32(1 << ((dice >> 16) % 32));
        _advance(key);
        if (step == 0) {
            _execute(key + 1);
            _advance(key + 1);
        }
        if (node == 3 && dice & (1 << 24) == 0) {
            _beginLeaf(step, node, element / 64);
            _show(_shownLeaf(step, node, element / 64));
        } else {
            _beginNode(step, node);
            _show(_shownNode(step, node));
        }
    }
}
