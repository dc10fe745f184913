// The registers of one worker: where each is written and read, and how instructions run over them. Included by the
// files compiled once per instruction set.
#pragma once
#include "arithmetic/function_lanes.h"
#include "arithmetic/primitives.h"
#include "nodes/lanes.h"

namespace pol::POL_ISA {
namespace {

struct Registers {
    const Plan& plan;
    const Run& run;
    uint32_t* rest;                            // scratch memory past the buffers
    uint32_t* buffer[kMaxPlanRegisters];       // where a register is written
    const uint32_t* value[kMaxPlanRegisters];  // where it is read

    // Constants fill the first `width` words of their buffers.
    Registers(const Plan& plan_, const Run& run_, void* scratch, int width) : plan(plan_), run(run_) {
        uint32_t* const buffers = static_cast<uint32_t*>(scratch);
        rest = buffers + size_t(plan.buffers) * plan.lanes;
        for (int r = 0; r < plan.registers; ++r) {
            buffer[r] = plan.buffer[r] == kOutputBuffer ? nullptr : buffers + size_t(plan.buffer[r]) * plan.lanes;
            value[r] = buffer[r];
        }
        for (int i = 0; i < plan.constants; ++i) fill(buffer[plan.accumulator + 1 + i], plan.constant[i], width);
    }

    void execute(const PlannedInstruction& in, uint32_t* result, int lanes) {
        if (in.op < kFunction) {
            apply(in.op, result, value[in.a], value[in.b], value[in.c], lanes);
        } else {
            const uint32_t* inputs[] = {value[in.a], value[in.b], value[in.c], value[in.d], value[in.e]};
            apply_function(in.op - kFunction, result, inputs, lanes);
        }
    }

    // A result without a buffer of its own goes to `out`.
    void execute(const PlannedInstruction* instructions, int count, uint32_t* out, int lanes) {
        for (int i = 0; i < count; ++i) {
            const PlannedInstruction& in = instructions[i];
            uint32_t* result = buffer[in.result] == nullptr ? out : buffer[in.result];
            if (in.op != MOV || value[in.a] != result) execute(in, result, lanes);
        }
    }

    // Whether a map only moves the words of one operand.
    bool moves() const { return !plan.folds && plan.each_count == 1 && plan.each->op == MOV && plan.each->a < plan.operands; }

    // The whole body of a map.
    void compute(uint32_t* out, int lanes) {
        execute(plan.once, plan.once_count, out, lanes);
        execute(plan.each, plan.each_count, out, lanes);
    }
};

inline size_t register_bytes(const Plan& plan) { return size_t(plan.buffers) * plan.lanes * sizeof(uint32_t); }

// Words of a block that the elements of a node fill.
inline int block_width(const Plan& plan) { return plan.space.size < plan.lanes ? static_cast<int>(plan.space.size) : plan.lanes; }

}  // namespace
}  // namespace pol::POL_ISA
