// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {GameTest, Level, NaiveTree} from "./GameTest.sol";
import {ReplayHandler} from "./GameHandler.sol";

/// @notice Disputes over the toy program in which a trace that lies open was published: the first lie in it is shown.
abstract contract PublishedGame is GameTest {
    uint8 internal constant NODE = 1;
    uint8 internal constant LEAF = 2;

    /// @dev What the side on turn shows below a trace; of a single leaf only if `showsOnlyLeaf`.
    uint8 internal what;
    bool internal showsOnlyLeaf;

    /// @dev Moves below STEPS show a part as `what` says.
    function _describe(uint256 node) internal virtual override returns (bytes memory call, At memory next) {
        (, next) = super._describe(node);
        uint8 part = what;
        if (part == LEAF && next.level == Level.LEAF && !showsOnlyLeaf) part = NODE;
        uint256 leaf = part == LEAF ? _firstLeaf(node) : 0;
        if (part == LEAF) next = _openAt(At(Level.LEAF, 0, next.count, leaf, 0, next.frame, 0, ""));
        bytes memory rest = abi.encodePacked(_shownNode(node), part == LEAF ? _shownLeaf(node, leaf) : bytes(""));
        call = _call(game.show.selector, part, abi.encodePacked(rest, next.opened));
    }

    /// @dev `opening || facts || branch || u16 length || descriptor || u32 node || root || branch`.
    function _shownNode(uint256 node) internal view returns (bytes memory) {
        bytes32[] memory roots = _outputRoots(_key(facts.traceVersion, facts.step));
        return abi.encodePacked(
            _openingRoot(),
            _stepFacts(),
            _branch(_nodeHashes(), node),
            _sized(nodes[node]),
            uint32(node),
            roots[node],
            _branch(roots, node)
        );
    }

    /// @dev `u64 leaf || leaf hash || branch`.
    function _shownLeaf(uint256 node, uint256 leaf) internal view returns (bytes memory) {
        bytes32[] memory hashes = NaiveTree.leafHashes(outputs[_key(facts.traceVersion, facts.step)][node]);
        return abi.encodePacked(uint64(leaf), hashes[leaf], _branch(hashes, leaf));
    }

    /// @dev The first in which the versions differ.
    function _firstLeaf(uint256 node) internal view returns (uint256 leaf) {
        bytes32[] memory theirs = NaiveTree.leafHashes(outputs[_key(facts.traceVersion, facts.step)][node]);
        bytes32[] memory own = NaiveTree.leafHashes(outputs[_key(_mine(), facts.step)][node]);
        while (leaf + 1 < own.length && own[leaf] == theirs[leaf]) leaf++;
    }
}

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
