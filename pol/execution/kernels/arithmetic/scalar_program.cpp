#include "arithmetic/scalar_program.h"

#include <string>

namespace pol {
namespace {

[[noreturn]] void fail(const std::string& what) { throw Malformed(what); }

}  // namespace

uint64_t Reader::take(size_t bytes) {
    if (size_ - position_ < bytes) fail("the bytes end early");
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | data_[position_++];
    return value;
}

int arity(uint8_t op) {
    switch (op) {
        case FSQRT: case FNEG: case FABS: case FRINT: case MOV:
        case F2I: case I2F: case F2U: case U2F: case F2LHI: case F2LLO: case RBF16: case RF16:
            return 1;
        case FADD: case FSUB: case FMUL: case FDIV: case FMIN: case FMAX: case FEQ: case FLT: case FLE:
        case ADD: case SUB: case MUL: case MULHI: case AND: case OR: case XOR: case SHL: case SHR: case SAR:
        case EQ: case LTU: case LTS: case L2F:
            return 2;
        case FFMA: case SELECT:
            return 3;
        default:
            return 0;
    }
}

ScalarProgram ScalarProgram::read(Reader& reader) {
    ScalarProgram program;
    program.inputs = reader.u8();
    const int constants = reader.u8();
    const int instructions = reader.u8();
    if (instructions == 0) fail("a scalar program has at least one instruction");
    if (program.inputs + constants + instructions > kMaxRegisters) fail("a scalar program has at most 256 registers");
    for (int i = 0; i < constants; ++i) program.constants.push_back(reader.u32());
    for (int i = 0; i < instructions; ++i) {
        Instruction instruction;
        instruction.op = reader.u8();
        instruction.a = reader.u8();
        instruction.b = reader.u8();
        instruction.c = reader.u8();
        const int operands = arity(instruction.op);
        if (operands == 0) fail("unknown primitive code " + std::to_string(instruction.op));
        const uint8_t registers[3] = {instruction.a, instruction.b, instruction.c};
        for (int j = 0; j < 3; ++j) {
            if (j < operands && registers[j] >= program.inputs + constants + i) fail("an instruction reads a register before it is written");
            if (j >= operands && registers[j] != 0) fail("an operand byte that a primitive does not use is not zero");
        }
        program.instructions.push_back(instruction);
    }
    if (!reader.at_end()) fail("bytes follow the scalar program");
    return program;
}

}  // namespace pol
