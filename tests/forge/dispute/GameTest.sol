// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Clock, Result} from "../../../contracts/dispute/Clock.sol";
import {ClockExpiry} from "../../../contracts/dispute/ClockExpiry.sol";
import {Descriptor} from "../../../contracts/dispute/Descriptor.sol";
import {KIND_DISTANCE, KIND_REPLAY} from "../../../contracts/dispute/DisputeKinds.sol";
import {DisputeStorage, Verb} from "../../../contracts/dispute/DisputeStorage.sol";
import {MovePayload} from "../../../contracts/dispute/MovePayload.sol";
import {PackedReader} from "../../../contracts/dispute/PackedReader.sol";
import {Deployment, DisputeGame, IOneStep} from "./Deployment.sol";
import {Resolver} from "./Resolver.sol";
import {PlainProofs} from "./PlainProofs.sol";
import {Distance, Level, NaiveTree, StartParams} from "./PlainRules.sol";

/// @notice A game over the toy program and two players, each of which stands by one version of everything and moves as
/// an honest one does: the first part that differs. The position is carried along by the plain rules, and its head
/// compared with the game's after every move.
abstract contract GameTest is PlainProofs, Deployment {
    uint32 internal constant CLOCK = 1000;
    uint24 internal constant REPLAY_GRACE = 400;
    uint24 internal constant MOVE_GRACE = 100;
    uint256 internal constant ASSERTER_KEY = 0xa11ce;
    uint256 internal constant CHALLENGER_KEY = 0xb0b;

    Resolver internal resolver;
    DisputeGame internal game;
    address internal asserter;
    address internal challenger;
    uint256 internal number;
    bool internal isAsserterOnTurn;
    /// @dev Seconds of each side, in disputes to come.
    uint32 internal budget = CLOCK;

    function setUp() public virtual {
        vm.warp(1_000_000);
        asserter = vm.addr(ASSERTER_KEY);
        challenger = vm.addr(CHALLENGER_KEY);
        resolver = new Resolver();
        game = _deployGame(address(resolver), _deployOneStep(), _deployStarts(), _width(), REPLAY_GRACE, MOVE_GRACE);
        _buildToy(2);
        challengerVersion = 1;
    }

    // --- starts ---

    /// @dev The versions change sides: the one that lies is version 1.
    function _cast(bool asserterLies) internal {
        (asserterVersion, challengerVersion) = asserterLies ? (1, 0) : (0, 1);
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
        s.end = _stateRoot(_key(asserterVersion, FIRST_STEP + steps));
        s.clock = budget;
    }

    function _distance(uint8 component) internal view returns (StartParams memory s) {
        s = _replay(2);
        s.kind = KIND_DISTANCE;
        s.component = component;
        s.x = _stateRoot(FIRST_STEP + 2);
        s.y = s.start;
        for (uint256 i = 0; i < 3; i++) {
            s.sum = Distance.add(s.sum, slotSums[asserterVersion][i]);
        }
    }

    function _start(StartParams memory s) internal {
        delete p;
        delete facts;
        params = s;
        if (s.kind == KIND_REPLAY) {
            p.level = Level.STEPS;
            (p.count, p.lo, p.hi) = (6, s.firstStep, s.firstStep + s.steps);
            p.agreed = s.start;
        } else {
            p.level = Level.SUM_SLOTS;
            p.hi = 3;
        }
        p.opened = _own(challengerVersion);
        number = resolver.start(game, s, _header(), p.opened);
        facts.id = keccak256(abi.encode(block.chainid, address(game), number, s));
        p.frame = s.kind == KIND_REPLAY
            ? keccak256(abi.encodePacked(_origin(), s.constants))
            : keccak256(abi.encodePacked(_origin(), s.x, s.y, s.component));
        isAsserterOnTurn = true;
        _agree();
    }

    // --- moves ---

    function _onTurn() internal view returns (address) {
        return isAsserterOnTurn ? asserter : challenger;
    }

    /// @dev The chain and the rules stand at the same position.
    function _agree() internal view {
        vm.assertEq(game.head(number), _headOf(_onTurn()));
    }

    /// @dev A move as it is sent: what precedes `rest` comes from the position.
    function _call(bytes4 selector, uint256 index, bytes memory rest) internal view returns (bytes memory) {
        bytes memory witness = _isWhole(selector) ? bytes("") : _witness(index);
        return abi.encodePacked(selector, _position(), uint8(index), witness, rest);
    }

    /// @dev Whether a move names the whole opening, and no part of it.
    function _isWhole(bytes4 selector) internal view returns (bool) {
        return selector == game.openState.selector || selector == game.show.selector || selector == game.resign.selector;
    }

    function _position() internal view returns (bytes memory) {
        return abi.encodePacked(uint32(number), p.frame, uint32(p.count), uint64(p.lo), uint64(p.hi));
    }

    function _send(address sender, bytes memory data) internal {
        vm.prank(sender);
        (bool success, bytes memory reason) = address(game).call(data);
        if (success) return;
        assembly {
            revert(add(reason, 32), mload(reason))
        }
    }

    function _refuse(address sender, bytes memory data, bytes memory reason) internal {
        vm.assertEq(_refuse(sender, data), reason);
    }

    function _refuse(address sender, bytes memory data) internal returns (bytes memory answer) {
        bool success;
        vm.prank(sender);
        (success, answer) = address(game).call(data);
        vm.assertFalse(success);
    }

    function _mine() internal view returns (uint256) {
        return isAsserterOnTurn ? asserterVersion : challengerVersion;
    }

    /// @dev The first part that the side on turn disagrees with; past the end if there is none.
    function _firstDifference() internal view returns (uint256 index) {
        (bytes memory own, bytes memory opened) = (_own(_mine()), p.opened);
        bool areWords = p.level == Level.LEAF || p.level == Level.TERMS || p.level == Level.BODY;
        uint256 size = areWords ? 4 : 32;
        for (; index < opened.length / size; index++) {
            if (areWords ? _u32(own, index) != _u32(opened, index) : _word(own, index) != _word(opened, index)) break;
        }
    }

    /// @dev What the side on turn has to do, by whatever function it takes: the call, and the position after it (no
    /// level if it is a proof).
    function _prepare() internal returns (bytes memory call, At memory next) {
        uint256 index = _firstDifference();
        if (p.level == Level.STEPS) return _enterStep(index);
        if (p.level == Level.NODES) return 32 * index < p.opened.length ? _describe(index) : _openState();
        if (p.level == Level.LEAVES) return _answerLeaf(index);
        if (p.level == Level.LEAF) return _element(index);
        if (p.level == Level.TERMS) return facts.node == 5 ? _openBody(index) : _proveTerm(index);
        if (p.level == Level.BODY) {
            return (_call(game.proveStep.selector, index, _proof(Level.BODY, index)), next);
        }
        if (p.level == Level.STATE) return (_call(game.proveSlot.selector, index, _slotProof(index)), next);
        if (p.level == Level.SUM_SLOTS) {
            return _bound(index + 1) - _bound(index) > 1 ? _answerSlots(index) : _describeSlot(index);
        }
        return (_call(game.proveSum.selector, index, _sumProof(index)), next);
    }

    /// @dev The side on turn moves as it has to.
    function _move() internal returns (bytes memory call) {
        At memory next;
        (call, next) = _prepare();
        _send(_onTurn(), call);
        _advanceTo(next);
    }

    function _advanceTo(At memory next) internal {
        if (next.level == Level.NONE) return;
        p = next;
        isAsserterOnTurn = !isAsserterOnTurn;
        _agree();
    }

    /// @dev Fills `next` with what the side on turn opens there.
    function _openAt(At memory next) internal returns (At memory) {
        At memory before = p;
        p = next;
        next.opened = _own(_mine());
        p = before;
        return next;
    }

    function _enterStep(uint256 index) internal returns (bytes memory, At memory next) {
        (facts.pre, facts.end) = (index == 0 ? p.agreed : _word(p.opened, index - 1), _word(p.opened, index));
        (facts.step, facts.traceVersion) = (_bound(index), _mine());
        if (_bound(index + 1) - facts.step > 1) {
            next = At(p.level, 0, p.count, facts.step, _bound(index + 1), p.frame, facts.pre, "");
        } else {
            bytes32 frame = keccak256(abi.encodePacked(p.frame, facts.end));
            frame = keccak256(abi.encodePacked(frame, facts.pre, uint64(facts.step)));
            next = At(Level.NODES, 3, 6, 0, 0, frame, 0, "");
        }
        next = _openAt(next);
        return (_call(game.answer.selector, index, next.opened), next);
    }

    function _describe(uint256 node) internal virtual returns (bytes memory, At memory next) {
        facts.node = node;
        facts.picked = _openingRoot();
        facts.beforeNode = keccak256(abi.encodePacked(p.frame, facts.picked, uint8(3)));
        uint256 elements = outputs[_key(0, facts.step)][node].length;
        next.level = elements > 64 ? Level.LEAVES : Level.LEAF;
        next.height = elements > 64 ? 1 : 0;
        next.count = elements;
        next.frame = keccak256(abi.encodePacked(facts.beforeNode, _outline()));
        next = _openAt(next);
        bytes memory rest =
            abi.encodePacked(_stepFacts(), _branch(_nodeHashes(), node), _sized(nodes[node]), next.opened);
        return (_call(game.describe.selector, node, rest), next);
    }

    function _openState() internal returns (bytes memory, At memory next) {
        facts.picked = _openingRoot();
        next = At(Level.STATE, 2, 3, 0, 0, keccak256(abi.encodePacked(p.frame, facts.picked)), 0, "");
        next = _openAt(next);
        return (_call(game.openState.selector, 0, abi.encodePacked(facts.picked, _stepFacts(), next.opened)), next);
    }

    function _answerLeaf(uint256 index) internal returns (bytes memory, At memory next) {
        next = _openAt(At(Level.LEAF, 0, p.count, p.lo + index, 0, p.frame, 0, ""));
        return (_call(game.answer.selector, index, next.opened), next);
    }

    function _element(uint256 index) internal returns (bytes memory, At memory next) {
        facts.element = 64 * p.lo + index;
        bytes memory outline = _outline();
        bytes32 frame = keccak256(abi.encodePacked(p.frame, uint64(facts.element)));
        if (facts.node == 1 || facts.node == 5) {
            next = _openAt(At(Level.TERMS, 0, 0, 0, 3, frame, 0, ""));
        } else if (facts.node == 2) {
            frame = keccak256(abi.encodePacked(frame, uint64(0), uint32(0)));
            next = _openAt(At(Level.BODY, 0, 2, 0, 0, frame, 0, ""));
        } else {
            return (_call(game.proveStep.selector, index, _proof(Level.LEAF, 0)), next);
        }
        bytes memory rest = abi.encodePacked(facts.beforeNode, outline, next.opened);
        return (_call(game.unfold.selector, index, rest), next);
    }

    function _enterTerm(uint256 term) private {
        facts.term = term;
        facts.agreed = term == 0 ? uint32(uint256(p.agreed)) : _u32(p.opened, term - 1);
    }

    function _proveTerm(uint256 term) internal returns (bytes memory, At memory next) {
        _enterTerm(term);
        return (_call(game.proveStep.selector, term, _proof(Level.TERMS, 0)), next);
    }

    function _openBody(uint256 term) internal returns (bytes memory, At memory next) {
        _enterTerm(term);
        bytes32 frame = keccak256(abi.encodePacked(p.frame, uint64(term), facts.agreed));
        next = _openAt(At(Level.BODY, 0, 2, 0, 0, frame, 0, ""));
        bytes memory rest = abi.encodePacked(facts.beforeNode, _outline(), uint64(facts.element), next.opened);
        return (_call(game.openBody.selector, term, rest), next);
    }

    function _answerSlots(uint256 index) internal returns (bytes memory, At memory next) {
        next = _openAt(At(p.level, 0, 0, _bound(index), _bound(index + 1), p.frame, 0, ""));
        return (_call(game.answer.selector, index, next.opened), next);
    }

    function _describeSlot(uint256 index) internal returns (bytes memory, At memory next) {
        uint256 slot = _bound(index);
        facts.slot = slot;
        bool counts = uint8(slots[slot][0]) == params.component;
        if (counts) {
            bytes32 frame = keccak256(abi.encodePacked(p.frame, uint32(slot), keccak256(slots[slot])));
            uint256 leaves = slot == 1 ? 2 : 1;
            next = _openAt(At(Level.SUM_LEAVES, 0, 0, 0, leaves, frame, 0, ""));
        }
        bytes memory rest = abi.encodePacked(
            _header(),
            facts.id,
            params.x,
            params.y,
            params.component,
            _branch(_slotHashes(), slot),
            _sized(slots[slot]),
            next.opened
        );
        return (_call(game.describeSlot.selector, index, rest), next);
    }

    // --- ends ---

    /// @dev Both sides move until one cannot; the one that lies must lose.
    function _finish(bool asserterLies) internal {
        for (uint256 moves = 0; resolver.calls() == 0; moves++) {
            vm.assertLt(moves, 12);
            (bytes memory call, At memory next) = _prepare();
            bool isLiar = isAsserterOnTurn == asserterLies;
            if (next.level == Level.NONE && isLiar) {
                _refuse(_onTurn(), call, abi.encodeWithSelector(DisputeGame.Upheld.selector));
                _runOut();
            } else {
                _send(_onTurn(), call);
                _advanceTo(next);
            }
        }
        _expectResult(!asserterLies);
    }

    /// @dev The side that lies cannot prove it, and its time runs out.
    function _runOut() internal {
        vm.warp(game.deadline(number));
        game.timeout(number);
    }

    function _expectResult(bool asserterWon) internal view {
        vm.assertEq(resolver.calls(), 1);
        vm.assertEq(resolver.number(), number);
        vm.assertEq(resolver.asserterWon(), asserterWon);
        vm.assertEq(game.deadline(number), 0);
        vm.assertEq(game.timeLeft(number), 0);
    }
}
