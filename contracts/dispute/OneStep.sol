// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ScalarMachine} from "../arithmetic/ScalarMachine.sol";
import {LEAF_WORDS, TAG_STATE} from "../commitments/MerkleBranch.sol";
import {Chunk} from "./Chunk.sol";
import {Descriptor, NodeView, SlotView} from "./Descriptor.sol";
import {Distance} from "./Distance.sol";
import {IOneStep, Outcome, Picked} from "./IOneStep.sol";
import {Openings} from "./Opening.sol";
import {Operands, Source} from "./Operands.sol";
import {Cursor, PackedReader} from "./PackedReader.sol";

/// @title OneStep
/// @notice Checks the facts of a proof against the frame, resolves the operands and executes (docs/spec/dispute.md,
/// proveStep and proveSum).
contract OneStep is IOneStep {
    using PackedReader for Cursor;

    uint8 private constant LEVEL_LEAF = 4;
    uint8 private constant LEVEL_TERMS = 5;
    uint8 private constant LEVEL_BODY = 6;
    uint8 private constant LEVEL_SUM_LEAVES = 9;

    uint8 private constant INPUT_ACCUMULATOR = 1;
    uint8 private constant INPUT_OPERAND = 2;
    uint8 private constant INPUT_COORDINATE = 3;

    uint256 private constant MAX_CHUNK = 64;
    /// @dev A root of the prefix: bytes32 ‖ u8 height.
    uint256 private constant ROOT_BYTES = 33;
    /// @dev Byte of a scalar program at which its constants begin.
    uint256 private constant CONSTANTS_AT = 3;
    uint256 private constant WORD_BYTES = 4;

    /// @dev What is executed: instruction `index` of the terms `[term, end)` of an element.
    struct Run {
        uint256 element;
        uint256 term;
        uint256 end;
        uint256 index;
        uint32 accumulator;
    }

    /// @dev Leaf `leaf` of slot `slot` in the states `x` and `y`.
    struct Place {
        bytes32 x;
        bytes32 y;
        uint256 slot;
        uint256 leaf;
    }

    /// @inheritdoc IOneStep
    function execute(Picked calldata picked, bytes calldata values, bytes calldata rest)
        external
        pure
        returns (Outcome memory outcome)
    {
        (Source memory source, Run memory run, bytes calldata descriptor) = _facts(picked, rest);
        // Results of other instructions are opened in BODY only.
        if (values.length != (picked.level == LEVEL_BODY ? WORD_BYTES * source.node.body.instructions : 0)) {
            revert WrongValues();
        }
        outcome.claimed = picked.claimed;
        if (run.end - run.term == 1) {
            _operands(source, run, outcome, descriptor, values);
            outcome.computed = ScalarMachine.execute(outcome.op, outcome.a, outcome.b, outcome.c);
        } else {
            outcome.computed = _chunk(source, run, descriptor);
        }
        source.proof.finish();
    }

    /// @inheritdoc IOneStep
    function sum(Picked calldata picked, bytes calldata rest) external pure returns (uint256) {
        if (picked.level != LEVEL_SUM_LEAVES) revert NotProvable(picked.level);
        Cursor memory proof = PackedReader.over(rest);
        (Place memory place, bytes calldata descriptor) = _place(picked, proof);
        SlotView memory slot = Descriptor.slot(descriptor);
        bytes calldata x = _leafOf(proof, place, place.x, slot, descriptor);
        bytes calldata y = _leafOf(proof, place, place.y, slot, descriptor);
        proof.finish();
        uint256 words = slot.tensor.elements - LEAF_WORDS * place.leaf;
        return Distance.ofLeaves(x, y, words < LEAF_WORDS ? words : LEAF_WORDS, slot.tensor.dtype, slot.scale);
    }

    /// @dev Reads the facts of a sum; reverts unless they yield the frame.
    function _place(Picked calldata picked, Cursor memory proof)
        private
        pure
        returns (Place memory place, bytes calldata descriptor)
    {
        bytes32 program = proof.hash();
        (place.x, place.y) = (proof.hash(), proof.hash());
        bytes32 frame = keccak256(abi.encodePacked(program, place.x, place.y, uint8(proof.number(1))));
        (place.slot, place.leaf) = (proof.number(4), picked.lo);
        descriptor = proof.slice(proof.number(2));
        frame = keccak256(abi.encodePacked(frame, uint32(place.slot), keccak256(descriptor)));
        if (frame != picked.frame) revert WrongFacts(frame);
    }

    function _leafOf(
        Cursor memory proof,
        Place memory place,
        bytes32 state,
        SlotView memory slot,
        bytes calldata descriptor
    ) private pure returns (bytes calldata leaf) {
        uint256 count = proof.number(4);
        bytes32 tensorRoot;
        (leaf, tensorRoot) = Openings.leafOf(proof, slot.tensor, place.leaf, descriptor);
        Openings.requireIn(proof, TAG_STATE, state, count, place.slot, tensorRoot);
    }

    /// @dev The frame after the last pick from NODES.
    function _prefix(Source memory source) private pure returns (bytes32 frame) {
        Cursor memory proof = source.proof;
        uint256 hasConstants = proof.number(1);
        if (hasConstants > 1) revert InvalidFlag(hasConstants);
        frame = proof.hash();
        if (hasConstants == 1) {
            source.constants = proof.hash();
            frame = keccak256(abi.encodePacked(frame, source.constants));
            frame = keccak256(abi.encodePacked(frame, proof.hash()));
        }
        source.pre = proof.hash();
        source.step = proof.number(8);
        frame = keccak256(abi.encodePacked(frame, source.pre, uint64(source.step)));
        uint256 count = proof.number(1);
        bytes calldata roots = proof.slice(ROOT_BYTES * count);
        uint256 begin;
        assembly ("memory-safe") {
            begin := roots.offset
            // Free memory: the frame, and behind it a root and its height.
            let hashed := mload(0x40)
            for { let i := 0 } lt(i, roots.length) { i := add(i, ROOT_BYTES) } {
                mstore(hashed, frame)
                calldatacopy(add(hashed, 32), add(begin, i), ROOT_BYTES)
                frame := keccak256(hashed, 65)
            }
        }
        source.roots = begin;
        source.rootsEnd = begin + roots.length;
    }

    /// @dev Reads the facts; the openings are next.
    function _facts(Picked calldata picked, bytes calldata rest)
        private
        pure
        returns (Source memory source, Run memory run, bytes calldata descriptor)
    {
        source.proof.start(rest);
        bytes32 frame = _prefix(source);
        source.nodeIndex = source.proof.number(4);
        descriptor = source.proof.slice(source.proof.number(2));
        Descriptor.readNode(source.node, descriptor);
        _setRun(run, picked, source, _nodeFrame(frame, descriptor, source));
        source.coordinates = Operands.coordinates(source, descriptor, run.element, run.term);
    }

    function _nodeFrame(bytes32 frame, bytes calldata descriptor, Source memory source) private pure returns (bytes32) {
        NodeView memory node = source.node;
        return keccak256(
            abi.encodePacked(
                frame,
                keccak256(descriptor),
                uint32(source.nodeIndex),
                uint64(node.terms),
                node.init,
                uint8(node.body.instructions)
            )
        );
    }

    /// @dev `run` becomes what is picked; reverts unless the facts yield the frame.
    function _setRun(Run memory run, Picked calldata picked, Source memory source, bytes32 frame) private pure {
        uint8 level = picked.level;
        run.element = picked.lo;
        run.end = source.node.terms;
        run.accumulator = source.node.init;
        if (level == LEVEL_TERMS || level == LEVEL_BODY) {
            run.element = source.proof.number(8);
            frame = keccak256(abi.encodePacked(frame, uint64(run.element)));
            (run.term, run.end, run.accumulator) = (picked.lo, picked.hi, picked.agreed);
        }
        if (level == LEVEL_BODY) {
            run.term = source.proof.number(8);
            run.end = run.term + 1;
            run.accumulator = uint32(source.proof.number(4));
            run.index = picked.index;
            frame = keccak256(abi.encodePacked(frame, uint64(run.term), run.accumulator));
        } else if ((level != LEVEL_LEAF && level != LEVEL_TERMS) || source.node.body.instructions != 1) {
            // A longer body is opened first.
            revert NotProvable(level);
        }
        uint256 terms = run.end - run.term;
        if (terms == 0 || terms > MAX_CHUNK) revert NotProvable(level);
        if (frame != picked.frame) revert WrongFacts(frame);
    }

    function _chunk(Source memory source, Run memory run, bytes calldata descriptor) private pure returns (uint32) {
        (uint256 a, uint256 b, bool isSame) = _factors(source, descriptor);
        uint256 terms = run.end - run.term;
        Chunk.requireRow(source, terms - 1, descriptor);
        uint256 x = Chunk.open(source, a, terms - 1, descriptor);
        uint256 y = isSame ? x : Chunk.open(source, b, terms - 1, descriptor);
        return uint32(Chunk.fold(x, y, terms, run.accumulator));
    }

    /// @dev The operands of a body that is one product added to the accumulator, and whether they are the same
    /// register.
    function _factors(Source memory source, bytes calldata descriptor)
        private
        pure
        returns (uint256 first, uint256 second, bool isSame)
    {
        (uint8 op, uint8 a, uint8 b, uint8 c) =
            ScalarMachine.instruction(descriptor[source.node.bodyAt:], source.node.body, 0);
        (uint8 kind,) = _input(source, c, descriptor);
        if (op != ScalarMachine.FFMA || kind != INPUT_ACCUMULATOR) revert NotAProduct();
        return (_operandOf(source, a, descriptor), _operandOf(source, b, descriptor), a == b);
    }

    function _operandOf(Source memory source, uint256 register, bytes calldata descriptor)
        private
        pure
        returns (uint256)
    {
        (uint8 kind, uint256 index) = _input(source, register, descriptor);
        if (kind != INPUT_OPERAND) revert NotAProduct();
        return index;
    }

    /// @dev Equal registers are read once.
    function _operands(
        Source memory source,
        Run memory run,
        Outcome memory outcome,
        bytes calldata descriptor,
        bytes calldata values
    ) private pure {
        (uint8 op, uint8 a, uint8 b, uint8 c) = ScalarMachine.instruction(
            descriptor[source.node.bodyAt:], source.node.body, run.index
        );
        uint256 arity = ScalarMachine.arity(op);
        outcome.op = op;
        outcome.a = _register(source, run, a, descriptor, values);
        if (arity > 1) outcome.b = b == a ? outcome.a : _register(source, run, b, descriptor, values);
        if (arity > 2) {
            outcome.c = c == a ? outcome.a : c == b ? outcome.b : _register(source, run, c, descriptor, values);
        }
    }

    function _register(
        Source memory source,
        Run memory run,
        uint256 register,
        bytes calldata descriptor,
        bytes calldata values
    ) private pure returns (uint32) {
        (uint8 kind, uint256 index) = _input(source, register, descriptor);
        if (kind == INPUT_OPERAND) return Operands.read(source, index, descriptor);
        if (kind == INPUT_COORDINATE) return uint32(source.coordinates[index]);
        if (kind == INPUT_ACCUMULATOR) return run.accumulator;
        register -= source.node.body.inputs;
        if (register < source.node.body.constants) {
            return Descriptor.u32(descriptor, source.node.bodyAt + CONSTANTS_AT + WORD_BYTES * register);
        }
        // The machine has checked that this is an earlier instruction.
        return Descriptor.u32(values, WORD_BYTES * (register - source.node.body.constants));
    }

    /// @dev What an input register holds: a kind that exists, and an index that the node has. Kind 0: it is not an
    /// input.
    function _input(Source memory source, uint256 register, bytes calldata descriptor)
        private
        pure
        returns (uint8 kind, uint256 index)
    {
        if (register >= source.node.body.inputs) return (0, 0);
        uint256 inputAt = source.node.inputAt;
        assembly ("memory-safe") {
            // A byte each for kind and index; the body lies behind them.
            let input := calldataload(add(descriptor.offset, add(inputAt, mul(2, register))))
            kind := byte(0, input)
            index := byte(1, input)
        }
        bool exists;
        if (kind == INPUT_OPERAND) exists = index < source.node.operandAt.length;
        else if (kind == INPUT_COORDINATE) exists = index < source.coordinates.length;
        else if (kind == INPUT_ACCUMULATOR) exists = index == 0 && Descriptor.u8(descriptor, source.node.foldAt) != 0;
        if (!exists) revert InvalidInput(register);
    }
}
