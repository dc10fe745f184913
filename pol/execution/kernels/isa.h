// What each instruction-set build provides. Every build computes the same bits; only speed differs.
//
// The files compiled once per set must not use inline library code (templates, containers): the linker keeps one copy of such
// functions, and if that were the copy with AVX-512 instructions, older processors would crash.
#pragma once
#include <cstddef>
#include <cstdint>

namespace pol {

struct Isa {
    const char* name;
    // out[i] = H(00 || leaf i), a leaf being 256 bytes.
    void (*hash_leaves)(const uint8_t* leaves, size_t count, uint8_t* out);
    // out[i] = H(01 || hash 2i || hash 2i+1). out may be the input itself.
    void (*hash_pairs)(const uint8_t* hashes, size_t count, uint8_t* out);
    // keccak-256 of one message.
    void (*keccak256)(const uint8_t* message, size_t size, uint8_t* out);
};

// The set in use: the best one of this processor, or the one named by the environment variable POL_ISA or by set_isa.
const Isa& isa();
// Returns false if this build or this processor lacks the set.
bool set_isa(const char* name);
// The i-th set that can run here, or null past the last one; the first is the best.
const Isa* available_isa(size_t i);

}  // namespace pol
