// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {GameTest} from "./GameTest.sol";
import {PublishedGame} from "./PublishedGame.sol";
import {ReplayHandler} from "./ReplayHandler.sol";

/// @notice Disputes about two steps whose traces are published: the first lie in one is shown, by its node or its leaf.
contract PublishedHandler is ReplayHandler, PublishedGame {
    function setUp() public override(GameTest) {
        super.setUp();
    }

    function _describe(uint256 node)
        internal
        override(GameTest, PublishedGame)
        returns (bytes memory call, At memory next)
    {
        return PublishedGame._describe(node);
    }

    function _open(uint256 dice) internal override {
        (what, showsOnlyLeaf) = (dice & 256 == 0 ? NODE : LEAF, dice & 512 == 0);
        super._open(dice);
    }
}
