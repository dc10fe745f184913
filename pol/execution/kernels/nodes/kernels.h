// The kernels that run planned nodes: a table of functions for every instruction-set build (native/isa.h).
#pragma once
#include <cstddef>
#include <cstdint>

#include "plan/fused_rows.h"
#include "plan/plan.h"

namespace pol {

// How nodes of one kind are run: cut into tasks that may run in any order; scratch is in bytes, aligned to 64.
struct Kernel {
    size_t (*tasks)(const Plan& plan, size_t threads);
    size_t (*scratch)(const Plan& plan);
    void (*compute)(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch);
};

// A part of one element's fold: its terms from `begin` on, given the accumulator before them.
struct Chain {
    int64_t begin;
    uint32_t accumulator;
    const int64_t* ends;  // ascending, none below `begin`
    size_t count;
    uint32_t* out;        // the accumulator before each of the terms `ends`
};

// One execution of a stage of a row group on `count` rows.
struct FusedRun {
    const uint32_t* const* sources;  // per operand, at the first of the rows
    uint32_t* out;
    int64_t count;
};

struct Kernels {
    Kernel of[kKinds];  // by Plan::kind
    size_t (*fused_scratch)(const FusedStage& stage);
    void (*compute_fused)(const FusedStage& stage, const FusedRun& run, void* scratch);
    // These take the plan of the terms of one element (Descriptor::terms_of); scratch as above.
    size_t (*chain_scratch)(const Plan& plan);
    void (*follow_chain)(const Plan& plan, const Run& run, const Chain& chain, void* scratch);
    // The words of all operands at one term.
    void (*read_term)(const Plan& plan, const Run& run, int64_t term, uint32_t* words, void* scratch);
    // The result of every instruction; a register is an array of `lanes` words.
    void (*program_values)(const PlannedInstruction* instructions, int count, uint32_t* const* registers, size_t lanes);
    // Changes of words change it, but nobody is kept from finding others with the same one.
    uint64_t (*checksum)(const uint32_t* words, int64_t count);
};

// The kernels of the instruction set in use.
const Kernels& kernels();

}  // namespace pol
