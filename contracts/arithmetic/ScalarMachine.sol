// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Conversion} from "./Conversion.sol";
import {Float32} from "./Float32.sol";

/// @notice Where the parts of an encoded scalar program begin.
struct ProgramLayout {
    uint256 inputs;
    uint256 constants;
    uint256 instructions;
    uint256 instructionAt; // byte of the first instruction; the constants begin at byte 3
}

/// @title ScalarMachine
/// @notice Executes the primitives and scalar programs of docs/spec/arithmetic.md.
library ScalarMachine {
    /// @notice The code is not that of a primitive.
    error InvalidInstruction(uint8 code);
    /// @notice The program breaks a rule at byte `position`.
    error InvalidProgram(uint256 position);
    /// @notice The program has `expected` inputs.
    error WrongInputCount(uint256 expected);

    uint8 internal constant FADD = 0x01;
    uint8 internal constant FSUB = 0x02;
    uint8 internal constant FMUL = 0x03;
    uint8 internal constant FDIV = 0x04;
    uint8 internal constant FFMA = 0x05;
    uint8 internal constant FSQRT = 0x06;
    uint8 internal constant FMIN = 0x07;
    uint8 internal constant FMAX = 0x08;
    uint8 internal constant FEQ = 0x09;
    uint8 internal constant FLT = 0x0a;
    uint8 internal constant FLE = 0x0b;
    uint8 internal constant FNEG = 0x0c;
    uint8 internal constant FABS = 0x0d;
    uint8 internal constant FRINT = 0x0e;
    uint8 internal constant F2I = 0x10;
    uint8 internal constant I2F = 0x11;
    uint8 internal constant F2U = 0x12;
    uint8 internal constant U2F = 0x13;
    uint8 internal constant F2LHI = 0x14;
    uint8 internal constant F2LLO = 0x15;
    uint8 internal constant L2F = 0x16;
    uint8 internal constant RBF16 = 0x17;
    uint8 internal constant RF16 = 0x18;
    uint8 internal constant ADD = 0x20;
    uint8 internal constant SUB = 0x21;
    uint8 internal constant MUL = 0x22;
    uint8 internal constant MULHI = 0x23;
    uint8 internal constant AND = 0x24;
    uint8 internal constant OR = 0x25;
    uint8 internal constant XOR = 0x26;
    uint8 internal constant SHL = 0x27;
    uint8 internal constant SHR = 0x28;
    uint8 internal constant SAR = 0x29;
    uint8 internal constant EQ = 0x2a;
    uint8 internal constant LTU = 0x2b;
    uint8 internal constant LTS = 0x2c;
    uint8 internal constant SELECT = 0x30;
    uint8 internal constant MOV = 0x31;

    uint256 private constant SIGN = 0x80000000;
    uint256 private constant MAX_REGISTERS = 256;
    uint256 private constant CONSTANT_AT = 3;
    uint256 private constant WORD_BYTES = 4;

    /// @notice Result of one primitive; operands that it does not use are ignored.
    function execute(uint8 code, uint32 a, uint32 b, uint32 c) internal pure returns (uint32) {
        return uint32(code < F2I ? _float(code, a, b, c) : _integer(code, a, b, c));
    }

    /// @notice Number of operands of a primitive.
    function arity(uint8 code) internal pure returns (uint256) {
        if (code == FFMA || code == SELECT) return 3;
        if ((code >= FADD && code <= FLE && code != FSQRT) || (code >= ADD && code <= LTS) || code == L2F) return 2;
        if (code == MOV || code == FSQRT || (code >= FNEG && code <= FRINT) || (code >= F2I && code <= RF16)) return 1;
        revert InvalidInstruction(code);
    }

    /// @notice Layout of a program; reverts unless the counts and the length agree with the specification.
    function decode(bytes calldata program) internal pure returns (ProgramLayout memory result) {
        layout(result, program);
    }

    /// @notice The same, into `result`.
    function layout(ProgramLayout memory result, bytes calldata program) internal pure {
        if (program.length < CONSTANT_AT) revert InvalidProgram(0);
        uint256 counts;
        assembly ("memory-safe") {
            counts := shr(232, calldataload(program.offset))
        }
        (uint256 inputs, uint256 constants, uint256 instructions) = (counts >> 16, (counts >> 8) & 255, counts & 255);
        unchecked {
            // Sums of bytes.
            if (instructions == 0 || inputs + constants + instructions > MAX_REGISTERS) revert InvalidProgram(2);
            result.instructionAt = CONSTANT_AT + WORD_BYTES * constants;
            uint256 end = result.instructionAt + WORD_BYTES * instructions;
            if (program.length != end) revert InvalidProgram(end);
        }
        (result.inputs, result.constants, result.instructions) = (inputs, constants, instructions);
    }

    /// @notice Instruction `index`; reverts if it breaks a rule or is not there. `program` has the layout `shape`.
    function instruction(bytes calldata program, ProgramLayout memory shape, uint256 index)
        internal
        pure
        returns (uint8 code, uint8 a, uint8 b, uint8 c)
    {
        if (index >= shape.instructions) revert InvalidProgram(program.length);
        unchecked {
            // Numbers of registers and bytes, far below 2^256.
            uint256 start = shape.instructionAt + WORD_BYTES * index;
            assembly ("memory-safe") {
                let word := calldataload(add(program.offset, start))
                code := byte(0, word)
                a := byte(1, word)
                b := byte(2, word)
                c := byte(3, word)
            }
            uint256 operands = arity(code);
            uint256 defined = shape.inputs + shape.constants + index;
            if (a >= defined) revert InvalidProgram(start + 1);
            if (operands > 1 ? b >= defined : b != 0) revert InvalidProgram(start + 2);
            if (operands > 2 ? c >= defined : c != 0) revert InvalidProgram(start + 3);
        }
    }

    /// @notice Result of a program; reverts if it is invalid or does not have so many inputs.
    function run(bytes calldata program, uint32[] memory inputs) internal pure returns (uint32) {
        uint32[] memory registers = _registers(program, inputs);
        return registers[registers.length - 1];
    }

    /// @notice Results of all instructions in order; reverts as `run` does.
    function values(bytes calldata program, uint32[] memory inputs) internal pure returns (uint32[] memory results) {
        uint32[] memory registers = _registers(program, inputs);
        results = new uint32[](uint8(program[2]));
        uint256 first = registers.length - results.length;
        for (uint256 i = 0; i < results.length; ++i) {
            results[i] = registers[first + i];
        }
    }

    function _registers(bytes calldata program, uint32[] memory inputs)
        private
        pure
        returns (uint32[] memory registers)
    {
        ProgramLayout memory shape = decode(program);
        if (inputs.length != shape.inputs) revert WrongInputCount(shape.inputs);
        uint256 first = shape.inputs + shape.constants;
        registers = new uint32[](first + shape.instructions);
        for (uint256 i = 0; i < shape.inputs; ++i) {
            registers[i] = inputs[i];
        }
        for (uint256 i = 0; i < shape.constants; ++i) {
            registers[shape.inputs + i] = uint32(bytes4(program[CONSTANT_AT + WORD_BYTES * i:]));
        }
        for (uint256 i = 0; i < shape.instructions; ++i) {
            (uint8 code, uint8 a, uint8 b, uint8 c) = instruction(program, shape, i);
            registers[first + i] = execute(code, registers[a], registers[b], registers[c]);
        }
    }

    /// @dev The branches halve the codes, so that no primitive waits for more than four comparisons or so.
    function _float(uint256 code, uint256 a, uint256 b, uint256 c) private pure returns (uint256) {
        if (code < FMIN) {
            if (code > FMUL) {
                if (code == FFMA) return Float32.fma(a, b, c);
                return code == FDIV ? Float32.div(a, b) : Float32.sqrt(a);
            }
            if (code == FADD) return Float32.add(a, b);
            if (code == FMUL) return Float32.mul(a, b);
            if (code == FSUB) return Float32.sub(a, b);
        } else if (code < FLE) {
            if (code < FEQ) return code == FMIN ? Float32.min(a, b) : Float32.max(a, b);
            return _flag(code == FEQ ? Float32.eq(a, b) : Float32.lt(a, b));
        } else {
            if (code == FLE) return _flag(Float32.le(a, b));
            if (code == FNEG) return Float32.neg(a);
            if (code == FABS) return Float32.abs(a);
            if (code == FRINT) return Float32.rint(a);
        }
        revert InvalidInstruction(uint8(code));
    }

    /// @dev As `_integer`.
    function _conversion(uint256 code, uint256 a, uint256 b) private pure returns (uint256) {
        if (code < F2LHI) {
            if (code < F2U) return code == F2I ? Float32.toInt(a) : Float32.fromInt(a);
            return code == F2U ? Conversion.toU32(a) : Conversion.fromU32(a);
        }
        if (code < L2F) return code == F2LHI ? Conversion.toI64(a) >> 32 : Conversion.toI64(a);
        if (code == L2F) return Conversion.fromI64((a << 32) | b);
        if (code == RBF16) return Conversion.toBf16(a);
        if (code == RF16) return Conversion.toF16(a);
        revert InvalidInstruction(uint8(code));
    }

    /// @dev Results may have bits above the 32nd; `execute` cuts them off. Shifts are those of 256 bits: beyond 31 they
    /// yield 0.
    function _integer(uint256 code, uint256 a, uint256 b, uint256 c) private pure returns (uint256) {
        unchecked {
            if (code < AND) {
                if (code < ADD) return _conversion(code, a, b);
                if (code < MUL) return code == ADD ? a + b : a - b;
                return code == MUL ? a * b : (a * b) >> 32;
            } else if (code < SAR) {
                if (code < SHL) return code == AND ? a & b : code == OR ? a | b : a ^ b;
                return code == SHL ? a << b : a >> b;
            } else {
                if (code == SELECT) return a == 0 ? c : b;
                if (code == MOV) return a;
                if (code == EQ) return _flag(a == b);
                if (code == LTU) return _flag(a < b);
                if (code == LTS) return _flag((a ^ SIGN) < (b ^ SIGN)); // flipped, the sign bit orders like the others
                if (code == SAR) return uint256(int256(int32(uint32(a))) >> b);
            }
            revert InvalidInstruction(uint8(code));
        }
    }

    function _flag(bool condition) private pure returns (uint256 flag) {
        assembly ("memory-safe") {
            flag := condition
        }
    }
}
