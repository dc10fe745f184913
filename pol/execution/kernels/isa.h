// What each instruction-set build provides. Every build computes the same bits; only speed differs.
//
// The files compiled once per set must not use inline library code (templates, containers): the linker keeps one copy of such
// functions, and if that were the copy with AVX-512 instructions, older processors would crash.
#pragma once
#include <cstddef>
#include <cstdint>

#include "plan.h"

namespace pol {

// How nodes of one kind are run: cut into tasks that may run in any order; scratch is in bytes, aligned to 64.
struct Kernel {
    size_t (*tasks)(const Plan& plan, size_t threads);
    size_t (*scratch)(const Plan& plan);
    void (*compute)(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch);
};

struct Isa {
    const char* name;
    // out[i] = H(00 || leaf i), a leaf being 256 bytes.
    void (*hash_leaves)(const uint8_t* leaves, size_t count, uint8_t* out);
    // out[i] = H(01 || hash 2i || hash 2i+1). out may be the input itself.
    void (*hash_pairs)(const uint8_t* hashes, size_t count, uint8_t* out);
    // keccak-256 of one message.
    void (*keccak256)(const uint8_t* message, size_t size, uint8_t* out);

    Kernel kernels[kKinds];  // by Plan::kind
    // The result of every instruction; a register is an array of `lanes` words.
    void (*program_values)(const PlannedInstruction* instructions, int count, uint32_t* const* registers, size_t lanes);
};

// The set in use: the best one of this processor, or the one named by the environment variable POL_ISA or by set_isa.
const Isa& isa();
// Returns false if this build or this processor lacks the set.
bool set_isa(const char* name);
// The i-th set that can run here, or null past the last one; the first is the best.
const Isa* available_isa(size_t i);

}  // namespace pol
