// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ProgramLayout, ScalarMachine} from "../arithmetic/ScalarMachine.sol";
import {LEAF_WORDS, TAG_CONSTANTS, TAG_STATE, TAG_TRACE} from "../commitments/MerkleBranch.sol";
import {Descriptor, NodeView, OperandView} from "./Descriptor.sol";
import {IOneStep, Outcome} from "./IOneStep.sol";
import {Opening, Openings, Place} from "./Opening.sol";
import {Position} from "./Position.sol";

/// @title OneStep
/// @notice Resolves the operand registers of one instruction and executes it (docs/spec/dispute.md, ONE_STEP).
contract OneStep is IOneStep {
    using Openings for Opening;

    /// @notice `descriptor` is not the disputed node's.
    error WrongDescriptor();
    /// @notice `values` are not the opened ones.
    error WrongValues();
    /// @notice An input is of no known kind, or names something that the node does not have.
    error InvalidInput(uint256 register);
    /// @notice An operand breaks the topological order, or gathers through an operand that it may not.
    error InvalidOperand(uint256 operand);
    /// @notice `given` openings, but the instruction reads `needed` words or more.
    error WrongNumberOfOpenings(uint256 given, uint256 needed);

    uint8 private constant INPUT_ACCUMULATOR = 1;
    uint8 private constant INPUT_OPERAND = 2;
    uint8 private constant INPUT_COORDINATE = 3;
    /// @dev Byte of a scalar program at which its constants begin.
    uint256 private constant CONSTANTS_AT = 3;
    uint256 private constant WORD_BYTES = 4;
    uint256 private constant SOURCE_STATE = 1;
    uint256 private constant SOURCE_CONSTANT = 2;

    /// @dev What the resolution of a register needs; memory, because it does not fit the stack.
    struct Run {
        NodeView node;
        uint256[] coordinates;
        uint256 instruction;
        bytes32 accumulator;
        bytes32 pre;
        bytes32 constants;
        bytes32 trace;
        uint256 nodeIndex;
        uint256 opened; // openings used
    }

    /// @inheritdoc IOneStep
    function execute(
        Position calldata position,
        bytes32 constants,
        bytes calldata descriptor,
        bytes calldata values,
        Opening[] calldata openings
    ) external pure returns (Outcome memory outcome) {
        if (keccak256(descriptor) != position.descriptor) revert WrongDescriptor();
        Run memory run = _run(position, constants, descriptor);
        outcome.claimed = _claimed(position, values);
        _operands(run, outcome, descriptor, values, openings);
        if (run.opened != openings.length) revert WrongNumberOfOpenings(openings.length, run.opened);
        outcome.computed = ScalarMachine.execute(outcome.op, outcome.a, outcome.b, outcome.c);
    }

    function _run(Position calldata position, bytes32 constants, bytes calldata descriptor)
        private
        pure
        returns (Run memory run)
    {
        run.node = Descriptor.node(descriptor);
        run.coordinates = new uint256[](run.node.coordinates);
        run.coordinates[0] = position.step;
        uint256 rank = _unravel(run, descriptor, run.node.output.begin + 1, position.element, 1);
        _unravel(run, descriptor, run.node.foldAt, position.term, 1 + rank);
        run.instruction = position.instruction;
        run.accumulator = position.agreed;
        run.pre = position.pre;
        run.constants = constants;
        run.trace = position.trace;
        run.nodeIndex = position.node;
    }

    /// @dev Row-major coordinates of `index` in the shape at byte `offset`, written from `first` on.
    function _unravel(Run memory run, bytes calldata descriptor, uint256 offset, uint256 index, uint256 first)
        private
        pure
        returns (uint256 rank)
    {
        rank = Descriptor.u8(descriptor, offset);
        for (uint256 i = rank; i > 0; --i) {
            uint256 size = Descriptor.u32(descriptor, offset + 4 * i - 3);
            run.coordinates[first + i - 1] = index % size;
            index /= size;
        }
    }

    function _claimed(Position calldata position, bytes calldata values) private pure returns (uint32) {
        if (position.instructions == 1) {
            if (values.length != 0) revert WrongValues();
            return uint32(uint256(position.claimed));
        }
        if (keccak256(values) != position.opening) revert WrongValues();
        return Descriptor.u32(values, WORD_BYTES * uint256(position.instruction));
    }

    /// @dev Equal registers are read once.
    function _operands(
        Run memory run,
        Outcome memory outcome,
        bytes calldata descriptor,
        bytes calldata values,
        Opening[] calldata openings
    ) private pure {
        (uint8 op, uint8 a, uint8 b, uint8 c) = ScalarMachine.instruction(
            descriptor[run.node.bodyAt:], run.node.body, run.instruction
        );
        uint256 arity = ScalarMachine.arity(op);
        outcome.op = op;
        outcome.a = _register(run, a, descriptor, values, openings);
        if (arity > 1) outcome.b = b == a ? outcome.a : _register(run, b, descriptor, values, openings);
        if (arity > 2) {
            outcome.c = c == a ? outcome.a : c == b ? outcome.b : _register(run, c, descriptor, values, openings);
        }
    }

    function _register(
        Run memory run,
        uint256 register,
        bytes calldata descriptor,
        bytes calldata values,
        Opening[] calldata openings
    ) private pure returns (uint32) {
        ProgramLayout memory body = run.node.body;
        if (register < body.inputs) return _input(run, register, descriptor, openings);
        register -= body.inputs;
        if (register < body.constants) {
            return Descriptor.u32(descriptor, run.node.bodyAt + CONSTANTS_AT + WORD_BYTES * register);
        }
        // The machine has checked that this is an earlier instruction.
        return Descriptor.u32(values, WORD_BYTES * (register - body.constants));
    }

    function _input(Run memory run, uint256 register, bytes calldata descriptor, Opening[] calldata openings)
        private
        pure
        returns (uint32)
    {
        uint8 kind = Descriptor.u8(descriptor, run.node.inputAt + 2 * register);
        uint256 index = Descriptor.u8(descriptor, run.node.inputAt + 2 * register + 1);
        if (kind == INPUT_OPERAND && index < run.node.operandAt.length) {
            return _read(run, index, descriptor, openings);
        }
        if (kind == INPUT_COORDINATE && index < run.coordinates.length) return uint32(run.coordinates[index]);
        bool folds = Descriptor.u8(descriptor, run.node.foldAt) != 0;
        if (kind != INPUT_ACCUMULATOR || index != 0 || !folds) revert InvalidInput(register);
        return uint32(uint256(run.accumulator));
    }

    /// @dev One operand at the run's coordinates: the fill, or a word proved by the next opening.
    function _read(Run memory run, uint256 index, bytes calldata descriptor, Opening[] calldata openings)
        private
        pure
        returns (uint32)
    {
        OperandView memory operand = _operand(run, index, descriptor);
        if (operand.gatherAt == 0) return _readAt(run, operand, 0, descriptor, openings);
        uint256 through = Descriptor.u8(descriptor, operand.gatherAt);
        if (through >= index) revert InvalidOperand(index);
        OperandView memory indices = _operand(run, through, descriptor);
        if (indices.gatherAt != 0) revert InvalidOperand(index);
        int256 value = int32(_readAt(run, indices, 0, descriptor, openings));
        if (value < 0 || value >= Descriptor.i64(descriptor, operand.gatherAt + 9)) return operand.fill;
        return _readAt(run, operand, Descriptor.i64(descriptor, operand.gatherAt + 1) * value, descriptor, openings);
    }

    /// @dev An operand of the disputed node; the others are not looked at.
    function _operand(Run memory run, uint256 index, bytes calldata descriptor)
        private
        pure
        returns (OperandView memory)
    {
        return Descriptor.operand(descriptor, run.node.operandAt[index], run.node.coordinates);
    }

    /// @dev The operand's word, `gathered` past the address that its coordinates give.
    function _readAt(
        Run memory run,
        OperandView memory operand,
        int256 gathered,
        bytes calldata descriptor,
        Opening[] calldata openings
    ) private pure returns (uint32) {
        int256 address_ =
            Descriptor.affine(descriptor, operand.affineAt, run.coordinates) + gathered;
        if (_isOutOfBounds(run, operand, descriptor)) return operand.fill;
        if (address_ < 0 || uint256(address_) >= operand.tensor.elements) return operand.fill;
        return _open(run, operand, uint256(address_), descriptor, openings);
    }

    function _isOutOfBounds(Run memory run, OperandView memory operand, bytes calldata descriptor)
        private
        pure
        returns (bool)
    {
        uint256 offset = operand.boundAt;
        for (uint256 i = 0; i < operand.bounds; ++i) {
            int256 value = Descriptor.affine(descriptor, offset, run.coordinates);
            offset += 8 + 8 * run.coordinates.length;
            if (value < 0 || value >= Descriptor.i64(descriptor, offset)) return true;
            offset += 8;
        }
        return false;
    }

    function _open(
        Run memory run,
        OperandView memory operand,
        uint256 element,
        bytes calldata descriptor,
        Opening[] calldata openings
    ) private pure returns (uint32) {
        if (run.opened >= openings.length) {
            revert WrongNumberOfOpenings(openings.length, run.opened + 1);
        }
        Opening calldata opening = openings[run.opened++];
        Place memory place;
        (place.tag, place.root) = _commitment(run, operand);
        place.index = operand.index;
        place.tensor = operand.tensor;
        place.leaf = element / LEAF_WORDS;
        opening.verify(place, descriptor);
        return Openings.word(opening.leaf, element);
    }

    /// @dev What both sides are bound to: the state before the step, the constants, the trace of the step.
    function _commitment(Run memory run, OperandView memory operand) private pure returns (uint8, bytes32) {
        if (operand.source == SOURCE_STATE) return (TAG_STATE, run.pre);
        if (operand.source == SOURCE_CONSTANT) return (TAG_CONSTANTS, run.constants);
        // Later nodes are not agreed upon: a program that reads one is invalid.
        if (operand.index >= run.nodeIndex) revert InvalidOperand(operand.index);
        return (TAG_TRACE, run.trace);
    }
}
