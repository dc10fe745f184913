// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DisputeGame, SlotProof} from "../../../contracts/dispute/DisputeGame.sol";
import {Opening} from "../../../contracts/dispute/Opening.sol";
import {OneStep} from "../../../contracts/dispute/OneStep.sol";
import {Level, Position} from "../../../contracts/dispute/Position.sol";
import {KIND_DISTANCE, KIND_REPLAY, StartParams} from "../../../contracts/interfaces/IDisputeGame.sol";
import {NaiveTree} from "../commitments/NaiveTree.sol";
import {Resolver} from "./Resolver.sol";
import {Toy} from "./Toy.sol";
import {WalkHarness} from "./WalkHarness.sol";

/// @notice A game over the toy program, the two players, and the moves that honest ones make.
/// The position is carried along by the rules in a harness, and compared with the game's hash after every move.
abstract contract GameTest is Toy {
    uint32 internal constant CLOCK = 1000;
    bytes32 internal constant CONTEXT = keccak256("context");

    Resolver internal resolver;
    DisputeGame internal game;
    WalkHarness internal walk;
    address internal asserter;
    address internal challenger;
    uint256 internal id;
    Position internal p;
    bytes internal opened;

    function setUp() public virtual {
        vm.warp(1_000_000);
        asserter = account("asserter");
        challenger = account("challenger");
        resolver = new Resolver();
        game = new DisputeGame(address(resolver), new OneStep());
        walk = new WalkHarness();
        _buildToy(2);
    }

    function _replay(uint64 steps) internal view returns (StartParams memory s) {
        s.asserter = asserter;
        s.challenger = challenger;
        s.program = _program();
        s.constants = _constantsRoot();
        s.kind = KIND_REPLAY;
        s.firstStep = FIRST_STEP;
        s.steps = steps;
        s.start = _stateRoot(FIRST_STEP);
        s.end = _stateRoot(FIRST_STEP + steps);
        s.clock = CLOCK;
        s.context = CONTEXT;
    }

    function _distance(uint8 component, uint256 sum) internal view returns (StartParams memory s) {
        s = _replay(2);
        s.kind = KIND_DISTANCE;
        s.component = component;
        s.x = s.end;
        s.y = s.start;
        s.sum = sum;
    }

    function _start(StartParams memory s) internal {
        id = resolver.start(game, s, _header());
        p = s.kind == KIND_REPLAY
            ? walk.startReplay(_header(), s.program, s.firstStep, s.steps, s.start, s.end)
            : walk.startSum(3, s.component, s.x, s.y, s.sum);
        _agree();
    }

    /// @dev The chain and the rules stand at the same position.
    function _agree() internal view {
        vm.assertEq(game.positionHash(id), keccak256(abi.encode(p)));
    }

    function _open(bytes memory payload) internal {
        bytes32 program = p.level == Level.STATE ? _program() : bytes32(0);
        Position memory next = walk.open(p, payload, program);
        vm.prank(asserter);
        game.open(id, p, payload);
        opened = payload;
        // The challenger repeats the children only.
        if (program != 0) opened = walk.tail(payload, 112);
        p = next;
        _agree();
    }

    function _open() internal {
        _open(_payload(p));
    }

    function _pick(uint256 index) internal {
        bytes memory payload = p.level == Level.BODY ? bytes("") : opened;
        Position memory next = walk.pick(p, index, payload);
        vm.prank(challenger);
        game.pick(id, p, index, payload);
        p = next;
        _agree();
    }

    function _describe() internal {
        bytes32 tree = NaiveTree.tree(NaiveTree.leafHashes(outputs[p.step][p.node]));
        bytes32[] memory branch = NaiveTree.branch(_nodeHashes(), p.node);
        Position memory next = walk.describe(p, branch, nodes[p.node], tree);
        vm.prank(asserter);
        game.describe(id, p, branch, nodes[p.node], tree);
        p = next;
        _agree();
    }

    function _describeSlot() internal {
        bytes32[] memory branch = NaiveTree.branch(_slotHashes(), p.lo);
        bytes memory descriptor = slots[p.lo];
        (bool isCounted, Position memory next) = walk.describeSlot(p, _header(), _program(), branch, descriptor);
        vm.prank(asserter);
        game.describeSlot(id, p, _header(), branch, descriptor);
        p = next;
        if (isCounted) _agree();
    }

    /// @dev From the start of a game of two steps to a node of the second one.
    function _toNode(uint256 node) internal {
        _open();
        _pick(1);
        _open();
        _pick(node);
    }

    /// @dev From a node to one of its elements.
    function _toElement(uint256 element) internal {
        _describe();
        if (p.level == Level.LEAVES) {
            _open();
            _pick(element / 64);
        }
        _open();
        _pick(element % 64);
    }

    function _toSlot(uint256 slot) internal {
        _open();
        _pick(1);
        _open();
        Position memory next = walk.pickState(p);
        vm.prank(challenger);
        game.pickState(id, p);
        p = next;
        _agree();
        _open();
        _pick(slot);
    }

    function _prove(bytes memory values, Opening[] memory openings) internal {
        vm.prank(asserter);
        game.proveStep(id, p, nodes[p.node], values, openings);
    }

    function _slotProof(uint256 slot) internal view returns (SlotProof memory) {
        uint256 producer = slot + 2;
        return SlotProof(
            _header(),
            slots[slot],
            NaiveTree.branch(_slotHashes(), slot),
            NaiveTree.branch(_outputRoots(FIRST_STEP + 1), producer)
        );
    }

    function _expectAnswer(bool asserterWon) internal view {
        (uint256 calls, uint256 answered, bytes32 context, bool won) = resolver.answer();
        vm.assertEq(calls, 1);
        vm.assertEq(answered, id);
        vm.assertEq(context, CONTEXT);
        vm.assertEq(won, asserterWon);
        vm.assertEq(game.deadline(id), 0);
        vm.assertEq(game.timeLeft(id), 0);
    }
}
