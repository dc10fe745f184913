// The kernels that run planned nodes: a table of functions for every instruction-set build (native/isa.h).
#pragma once
#include <cstddef>
#include <cstdint>

#include "plan/plan.h"

namespace pol {

// How nodes of one kind are run: cut into tasks that may run in any order; scratch is in bytes, aligned to 64.
struct Kernel {
    size_t (*tasks)(const Plan& plan, size_t threads);
    size_t (*scratch)(const Plan& plan);
    void (*compute)(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch);
};

struct Kernels {
    Kernel of[kKinds];  // by Plan::kind
    // The result of every instruction; a register is an array of `lanes` words.
    void (*program_values)(const PlannedInstruction* instructions, int count, uint32_t* const* registers, size_t lanes);
};

// The kernels of the instruction set in use.
const Kernels& kernels();

}  // namespace pol
