// The functions of docs/spec/functions.md as single instructions. Planning finds them in the bodies of nodes; every
// instruction-set build has a compiled loop for each (function_lanes.cpp). tests/lab/kernels/generate.py writes the
// list.
#pragma once
#include <iterator>
#include <vector>

#include "arithmetic/scalar_program.h"

namespace pol {

constexpr int kMaxFunctionInputs = 5;
// The first code past those of the primitives: kFunction + a number stands for a function.
constexpr uint8_t kFunction = 0x80;
constexpr uint8_t kExp = kFunction + 2;

// A list of programs as types, with `inputs`, `constants` and `instructions`: Catalogue in functions_programs.inc.
template <typename... F>
struct Functions {};
// The first register that an instruction writes, and how many instructions there are.
template <typename F>
constexpr int kFirst = F::inputs + static_cast<int>(std::size(F::constants));
template <typename F>
constexpr int kCount = static_cast<int>(std::size(F::instructions));

// Scalar programs by number.
const std::vector<ScalarProgram>& functions();

// An instruction of a body; a register number is that of the scalar program. `op` may be a function.
struct BodyInstruction {
    uint8_t op;
    int result;
    int operands[kMaxFunctionInputs];
};

// The live instructions of a body, in order, with each function that it computes as one instruction.
std::vector<BodyInstruction> recognize_functions(const ScalarProgram& body);

}  // namespace pol
