// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Level} from "../../../contracts/dispute/Position.sol";
import {KIND_PUBLISHED} from "../../../contracts/dispute/DisputeKinds.sol";
import {StartParams} from "../../../contracts/dispute/IDisputeGame.sol";
import {NaiveTree} from "../commitments/NaiveTree.sol";
import {GameTest} from "./GameTest.sol";

/// @notice Starts of disputes below a published trace of the toy program: what is shown, and the position to which it
/// leads.
abstract contract PublishedGame is GameTest {
    uint8 internal constant NODE = 1;
    uint8 internal constant LEAF = 2;
    uint8 internal constant STATE = 3;
    /// @dev Bytes of `what || s || pre || trace || branch`; two steps have one sibling.
    uint256 internal constant STEP_SHOWN = 1 + 4 + 3 * 32;

    // --- what is published and shown ---

    function _trace(uint256 version, uint256 step) internal view returns (bytes32) {
        return NaiveTree.tree(_outputRoots(_key(version, FIRST_STEP + step)));
    }

    function _pre(uint256 version, uint256 step) internal view returns (bytes32) {
        return _stateRoot(_key(version, FIRST_STEP + step));
    }

    function _steps(uint256 version) internal view returns (bytes32[] memory leaves) {
        leaves = new bytes32[](2);
        for (uint256 s = 0; s < 2; s++) {
            leaves[s] = keccak256(abi.encodePacked(uint8(11), _pre(version, s), _trace(version, s)));
        }
    }

    /// @dev What the asserter claims, with its traces.
    function _claim() internal view returns (StartParams memory s) {
        s = _replay(2);
        s.kind = KIND_PUBLISHED;
        s.x = NaiveTree.listRoot(10, _steps(asserterVersion));
    }

    function _shownStep(uint256 step) internal view returns (bytes memory) {
        bytes32[] memory leaves = _steps(asserterVersion);
        return abi.encodePacked(_pre(asserterVersion, step), _trace(asserterVersion, step), leaves[1 - step]);
    }

    function _shownRoot(uint256 step, uint256 node) internal view returns (bytes memory) {
        bytes32[] memory roots = _outputRoots(_key(asserterVersion, FIRST_STEP + step));
        return abi.encodePacked(uint32(node), roots[node], _branch(roots, node));
    }

    function _shownDescriptor(uint256 node) internal view returns (bytes memory) {
        return abi.encodePacked(_branch(_nodeHashes(), node), _sized(nodes[node]));
    }

    function _shownNode(uint256 step, uint256 node) internal view returns (bytes memory) {
        return abi.encodePacked(NODE, uint32(step), _shownStep(step), _shownRoot(step, node), _shownDescriptor(node));
    }

    function _shownLeaf(uint256 step, uint256 node, uint256 leaf) internal view returns (bytes memory) {
        bytes32[] memory hashes = NaiveTree.leafHashes(outputs[_key(asserterVersion, FIRST_STEP + step)][node]);
        return abi.encodePacked(
            LEAF,
            uint32(step),
            _shownStep(step),
            _shownRoot(step, node),
            _shownDescriptor(node),
            uint64(leaf),
            hashes[leaf],
            _branch(hashes, leaf)
        );
    }

    function _shownState(uint256 step) internal view returns (bytes memory) {
        bytes memory next = step == 0 ? _shownStep(1) : bytes("");
        return abi.encodePacked(STATE, uint32(step), _shownStep(step), next);
    }

    // --- starts ---

    /// @dev The position that the start should lead to, by the rules of the specification; `shown` goes to the game.
    function _begin(uint256 step) internal {
        delete p;
        delete facts;
        params = _claim();
        facts.step = FIRST_STEP + step;
        facts.pre = step == 0 ? params.start : _pre(asserterVersion, step);
        facts.end = params.end;
        (facts.traceVersion, facts.picked) = (asserterVersion, _trace(asserterVersion, step));
        uint256 expected = game.disputes() + 1;
        facts.id = keccak256(abi.encode(block.chainid, address(game), expected, params));
        bytes32 frame = keccak256(abi.encodePacked(_origin(), params.constants));
        frame = keccak256(abi.encodePacked(frame, facts.end));
        p.frame = keccak256(abi.encodePacked(frame, facts.pre, uint64(facts.step)));
    }

    function _beginNode(uint256 step, uint256 node) internal {
        _begin(step);
        facts.node = node;
        p.count = outputs[_key(0, facts.step)][node].length;
        (p.level, p.height) = p.count > 64 ? (Level.LEAVES, 1) : (Level.LEAF, 0);
        facts.beforeNode = keccak256(abi.encodePacked(p.frame, facts.picked, uint8(3)));
        p.frame = keccak256(abi.encodePacked(facts.beforeNode, _outline()));
        p.opened = _own(challengerVersion);
    }

    function _beginLeaf(uint256 step, uint256 node, uint256 leaf) internal {
        _beginNode(step, node);
        (p.level, p.height, p.lo) = (Level.LEAF, 0, leaf);
        p.opened = _own(challengerVersion);
    }

    function _beginState(uint256 step) internal {
        _begin(step);
        (p.level, p.height, p.count) = (Level.STATE, 2, 3);
        p.frame = keccak256(abi.encodePacked(p.frame, facts.picked));
        p.opened = _own(challengerVersion);
    }

    function _show(bytes memory shown) internal {
        number = resolver.start(game, params, _header(), abi.encodePacked(shown, p.opened));
        isAsserterOnTurn = true;
        _agree();
    }
}
