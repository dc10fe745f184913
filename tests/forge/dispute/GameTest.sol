// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DisputeGame} from "../../../contracts/dispute/DisputeGame.sol";
import {Distance} from "../../../contracts/dispute/Distance.sol";
import {IOneStep} from "../../../contracts/dispute/IOneStep.sol";
import {Level} from "../../../contracts/dispute/Position.sol";
import {Starts} from "../../../contracts/dispute/Starts.sol";
import {KIND_DISTANCE, KIND_REPLAY, StartParams} from "../../../contracts/interfaces/IDisputeGame.sol";
import {NaiveTree} from "../commitments/NaiveTree.sol";
import {Resolver} from "./Resolver.sol";
import {Toy} from "./Toy.sol";

/// @notice A game over the toy program and two players, each of which stands by one version of everything and moves as an honest one does: the
/// first part that differs. The position is carried along by the rules of the specification, written as plainly as possible, and its
/// head compared with the game's after every move.
abstract contract GameTest is Toy {
    uint32 internal constant CLOCK = 1000;
    uint24 internal constant REPLAY_GRACE = 400;
    uint24 internal constant MOVE_GRACE = 100;
    uint64 internal constant STEP = FIRST_STEP + 1;
    uint256 internal constant ASSERTER_KEY = 0xa11ce;
    uint256 internal constant CHALLENGER_KEY = 0xb0b;

    /// @dev What lies open.
    struct At {
        Level level;
        uint256 height;
        uint256 count;
        uint256 lo;
        uint256 hi;
        bytes32 frame;
        bytes32 agreed; // before the range
        bytes opened;
    }

    /// @dev What is agreed on the way down.
    struct Facts {
        bytes32 id;
        bytes32 end;
        bytes32 pre;
        uint256 step;
        uint256 traceVersion; // whose trace lies open
        bytes32 picked; // root of the trace that was picked from
        bytes32 beforeNode; // frame
        uint256 node;
        uint256 element;
        uint256 term;
        uint32 agreed;
        uint256 slot;
    }

    Resolver internal resolver;
    DisputeGame internal game;
    address internal asserter;
    address internal challenger;
    uint256 internal number;
    StartParams internal params;
    At internal p;
    Facts internal facts;
    /// @dev Version that each side stands by.
    uint256 internal asserterVersion;
    uint256 internal challengerVersion;
    bool internal isAsserterOnTurn;
    /// @dev By version: of every slot, and of every leaf of the slot that is disputed.
    mapping(uint256 version => uint256[]) internal slotSums;
    mapping(uint256 version => uint256[]) internal leafSums;

    function setUp() public virtual {
        vm.warp(1_000_000);
        asserter = vm.addr(ASSERTER_KEY);
        challenger = vm.addr(CHALLENGER_KEY);
        resolver = new Resolver();
        IOneStep oneStep = IOneStep(vm.deployCode("OneStep.sol:OneStep"));
        game = new DisputeGame(address(resolver), oneStep, new Starts(), 4, REPLAY_GRACE, MOVE_GRACE);
        _buildToy(2);
        challengerVersion = 1;
    }

    // --- starts ---

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
        s.clock = CLOCK;
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

    // --- what a version says ---

    /// @dev What a side would open at the position.
    function _own(uint256 version) internal view returns (bytes memory row) {
        uint256 key = _key(version, facts.step);
        if (p.level == Level.STEPS) {
            for (uint256 i = 1; i <= _parts(); i++) {
                row = abi.encodePacked(row, _stateRoot(_key(version, _bound(i))));
            }
        } else if (p.level == Level.NODES) {
            row = NaiveTree.children(_outputRoots(key), 0, 3);
        } else if (p.level == Level.STATE) {
            row = NaiveTree.children(_slotRoots(key + 1), 0, 2);
        } else if (p.level == Level.LEAVES) {
            row = NaiveTree.children(NaiveTree.leafHashes(outputs[key][facts.node]), p.lo, p.height);
        } else if (p.level == Level.LEAF) {
            row = NaiveTree.leaf(outputs[key][facts.node], p.lo);
        } else if (p.level == Level.TERMS) {
            uint32[] memory accumulators = _accumulators(key, facts.node);
            row = abi.encodePacked(accumulators[1], accumulators[2], outputs[key][facts.node][0]);
        } else if (p.level == Level.BODY) {
            row = _results(version);
        } else {
            uint256[] storage sums = p.level == Level.SUM_SLOTS ? slotSums[version] : leafSums[version];
            for (uint256 i = 0; i < sums.length; i++) {
                row = abi.encodePacked(row, sums[i]);
            }
        }
    }

    /// @dev A body ends in the value that the side has said, right or wrong.
    function _results(uint256 version) internal view returns (bytes memory) {
        uint256 key = _key(version, facts.step);
        uint32 last = facts.node == 2 ? outputs[key][2][facts.element] : _accumulators(key, 5)[facts.term + 1];
        if (facts.node == 5 && facts.term == 2) last = outputs[key][5][0];
        return abi.encodePacked(_body(key, facts.node, facts.element, facts.term, facts.agreed)[0], last);
    }

    /// @dev Sums of all slots, of which one component counts, the same for both versions.
    function _sum(uint8 component) internal {
        for (uint256 version = 0; version < 2; version++) {
            for (uint256 slot = 0; slot < 3; slot++) {
                bool counts = component == (slot == 0 ? 1 : slot == 1 ? 3 : 2);
                slotSums[version].push(counts ? _between(slot, 0, states[FIRST_STEP][slot].length) : 0);
            }
        }
    }

    /// @dev Sums of the leaves of the slot that is disputed.
    function _sumLeaves(uint256 slot) internal {
        for (uint256 version = 0; version < 2; version++) {
            uint256 length = states[FIRST_STEP][slot].length;
            for (uint256 from = 0; from < length; from += 64) {
                leafSums[version].push(_between(slot, from, from + 64 < length ? from + 64 : length));
            }
        }
    }

    function _between(uint256 slot, uint256 from, uint256 to) private view returns (uint256 sum) {
        for (uint256 i = from; i < to; i++) {
            uint32 x = states[FIRST_STEP + 2][slot][i];
            uint32 y = states[FIRST_STEP][slot][i];
            sum = Distance.add(sum, Distance.ofWords(x, y, slot == 2 ? 2 : 1, slot == 1 ? 12 : 0));
        }
    }

    // --- the rules, once more ---

    function _origin() internal view returns (bytes32) {
        return keccak256(abi.encodePacked(facts.id, params.program));
    }

    /// @dev Parts of a range of steps, slots or leaves: up to 16 of them, of which four levels are cut evenly into openings.
    function _parts() internal view returns (uint256 parts) {
        uint256 depth = 0;
        while (2 ** depth < p.hi - p.lo) depth++;
        uint256 openings = (depth + 3) / 4;
        parts = 1;
        for (uint256 i = 0; openings > 0 && i < (depth + openings - 1) / openings; i++) {
            parts *= 2;
        }
        if (parts > p.hi - p.lo) parts = p.hi - p.lo;
    }

    function _bound(uint256 part) internal view returns (uint256) {
        return p.lo + part * (p.hi - p.lo) / _parts();
    }

    function _words(bytes memory row) internal pure returns (bytes32[] memory words) {
        words = new bytes32[](row.length / 32);
        for (uint256 i = 0; i < words.length; i++) {
            words[i] = _word(row, i);
        }
    }

    function _word(bytes memory row, uint256 index) internal pure returns (bytes32 word) {
        assembly {
            word := mload(add(add(row, 32), mul(32, index)))
        }
    }

    function _u32(bytes memory row, uint256 index) internal pure returns (uint32 value) {
        assembly {
            value := shr(224, mload(add(add(row, 32), mul(4, index))))
        }
    }

    /// @dev The leaves of the tree that the opening is.
    function _opening() internal view returns (bytes32[] memory leaves) {
        bytes memory row = p.opened;
        leaves = _words(row);
        if (p.level == Level.STEPS) {
            bytes32 before = p.agreed;
            for (uint256 i = 0; i < leaves.length; i++) {
                (before, leaves[i]) = (leaves[i], keccak256(abi.encodePacked(before, leaves[i])));
            }
        } else if (p.level == Level.TERMS) {
            leaves = new bytes32[](1);
            leaves[0] = keccak256(abi.encodePacked(uint8(0), _piece()));
        }
    }

    /// @dev The only piece of accumulators that three terms need.
    function _piece() internal view returns (bytes memory) {
        bytes memory padding = new bytes(32 - p.opened.length);
        return abi.encodePacked(uint32(uint256(p.agreed)), p.opened, padding);
    }

    function _openingRoot() internal view returns (bytes32) {
        return p.level == Level.BODY ? keccak256(p.opened) : NaiveTree.tree(_opening());
    }

    function _branch(bytes32[] memory leaves, uint256 index) internal pure returns (bytes memory branch) {
        bytes32[] memory siblings = NaiveTree.branch(leaves, index);
        for (uint256 i = 0; i < siblings.length; i++) {
            branch = abi.encodePacked(branch, siblings[i]);
        }
    }

    function _witness(uint256 index) internal view returns (bytes memory) {
        bytes memory row = p.opened;
        if (p.level == Level.BODY) return row;
        if (p.level == Level.TERMS) return _piece();
        if (p.level == Level.STEPS) {
            bytes32 before = index == 0 ? p.agreed : _word(row, index - 1);
            return abi.encodePacked(before, _word(row, index), _branch(_opening(), index));
        }
        if (p.level == Level.LEAF) index /= 8;
        return abi.encodePacked(_word(row, index), _branch(_opening(), index));
    }

    function _headOf(address turn) internal view returns (bytes32) {
        return keccak256(
            abi.encodePacked(
                p.frame,
                _openingRoot(),
                turn,
                uint8(p.level),
                uint8(p.height),
                uint32(p.count),
                uint64(p.lo),
                uint64(p.hi)
            )
        );
    }

    function _onTurn() internal view returns (address) {
        return isAsserterOnTurn ? asserter : challenger;
    }

    /// @dev The chain and the rules stand at the same position.
    function _agree() internal view {
        vm.assertEq(game.head(number), _headOf(_onTurn()));
    }

    // --- moves ---

    /// @dev A move as it is sent: what precedes `rest` comes from the position.
    function _call(bytes4 selector, uint256 index, bytes memory rest) internal view returns (bytes memory) {
        bytes memory witness =
            selector == game.openState.selector || selector == game.resign.selector ? bytes("") : _witness(index);
        return abi.encodePacked(selector, _position(), uint8(index), witness, rest);
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
        vm.prank(sender);
        (bool success, bytes memory answer) = address(game).call(data);
        vm.assertFalse(success);
        vm.assertEq(answer, reason);
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

    /// @dev What the side on turn has to do, by whatever function it takes: the call, and the position after it (no level if it is a
    /// proof).
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
        if (p.level == Level.SUM_SLOTS) return _describeSlot(index);
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

    function _describe(uint256 node) internal returns (bytes memory, At memory next) {
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

    /// @dev `H(descriptor) || u32 node || u64 terms || u32 init || u8 instructions`.
    function _outline() internal view returns (bytes memory) {
        uint64 terms = facts.node == 1 || facts.node == 5 ? 3 : 1;
        uint8 instructions = facts.node == 2 || facts.node == 5 ? 2 : 1;
        return abi.encodePacked(keccak256(nodes[facts.node]), uint32(facts.node), terms, uint32(0), instructions);
    }

    function _sized(bytes memory descriptor) internal pure returns (bytes memory) {
        return abi.encodePacked(uint16(descriptor.length), descriptor);
    }

    function _stepFacts() internal view returns (bytes memory) {
        return abi.encodePacked(_header(), facts.id, params.constants, facts.end, facts.pre, uint64(facts.step));
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

    function _describeSlot(uint256 slot) internal returns (bytes memory, At memory next) {
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
        return (_call(game.describeSlot.selector, slot, rest), next);
    }

    // --- proofs ---

    function _proof(Level level, uint256 instruction) internal view returns (bytes memory rest) {
        rest = abi.encodePacked(
            uint8(1),
            _origin(),
            params.constants,
            facts.end,
            facts.pre,
            uint64(facts.step),
            uint8(1),
            facts.picked,
            uint8(3)
        );
        rest = abi.encodePacked(rest, uint32(facts.node), _sized(nodes[facts.node]));
        if (level != Level.LEAF) rest = abi.encodePacked(rest, uint64(facts.element));
        if (level == Level.BODY) {
            rest = abi.encodePacked(rest, uint64(facts.node == 5 ? facts.term : 0), facts.agreed);
        }
        return abi.encodePacked(rest, _openings(instruction));
    }

    /// @dev What the disputed instruction reads.
    function _openings(uint256 instruction) internal view returns (bytes memory) {
        uint256 element = facts.element;
        if (facts.node == 0) {
            bytes memory indices = _openList(_constantRoots(), 0, constants[0], 0);
            return abi.encodePacked(indices, _openList(_constantRoots(), 1, constants[1], constants[0][element] / 64));
        }
        if (facts.node == 1) {
            bytes memory gathered = facts.term < 2 ? _openOutput(0) : bytes("");
            return abi.encodePacked(_openSlot(0, 0), gathered);
        }
        if (facts.node == 2) return instruction == 0 ? _openOutput(1) : _openSlot(0, 0);
        if (facts.node == 3) return element < 65 ? _openSlot(1, (element + 1) / 64) : bytes("");
        if (facts.node == 4) return _openSlot(2, 0);
        return instruction == 0 ? _openSlot(0, 0) : bytes("");
    }

    function _openSlot(uint256 slot, uint256 leaf) internal view returns (bytes memory) {
        uint256 key = _key(facts.traceVersion, facts.step);
        return _openList(_slotRoots(key), slot, states[key][slot], leaf);
    }

    function _openList(bytes32[] memory roots, uint256 index, uint32[] memory words, uint256 leaf)
        internal
        pure
        returns (bytes memory)
    {
        return abi.encodePacked(uint32(roots.length), _openTensor(roots, index, words, leaf));
    }

    /// @dev A node before the disputed one, in the trace that lay open.
    function _openOutput(uint256 node) internal view returns (bytes memory) {
        uint256 key = _key(facts.traceVersion, facts.step);
        return _openTensor(_outputRoots(key), node, outputs[key][node], 0);
    }

    function _openTensor(bytes32[] memory roots, uint256 index, uint32[] memory words, uint256 leaf)
        internal
        pure
        returns (bytes memory)
    {
        return abi.encodePacked(
            NaiveTree.leaf(words, leaf), _branch(NaiveTree.leafHashes(words), leaf), _branch(roots, index)
        );
    }

    function _slotProof(uint256 slot) internal view returns (bytes memory) {
        bytes32[] memory roots = _outputRoots(_key(facts.traceVersion, facts.step));
        return abi.encodePacked(
            _stepFacts(),
            facts.picked,
            _branch(_slotHashes(), slot),
            _sized(slots[slot]),
            roots[slot + 2],
            _branch(roots, slot + 2)
        );
    }

    function _sumProof(uint256 leaf) internal view returns (bytes memory) {
        uint256 slot = facts.slot;
        bytes memory x = _openList(_slotRoots(FIRST_STEP + 2), slot, states[FIRST_STEP + 2][slot], leaf);
        bytes memory y = _openList(_slotRoots(FIRST_STEP), slot, states[FIRST_STEP][slot], leaf);
        bytes memory facts_ = abi.encodePacked(_origin(), params.x, params.y, params.component);
        return abi.encodePacked(facts_, uint32(slot), _sized(slots[slot]), x, y);
    }

    // --- ends ---

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
