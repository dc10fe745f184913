// Keccak-256 (original padding) in every instruction-set build.
#pragma once
#include <cstddef>
#include <cstdint>

namespace pol {

constexpr size_t kRate = 136;

struct Hashing {
    // out[i] = H(00 || leaf i), a leaf being 256 bytes.
    void (*hash_leaves)(const uint8_t* leaves, size_t count, uint8_t* out);
    // out[i] = H(01 || hash 2i || hash 2i+1). out may be the input itself.
    void (*hash_pairs)(const uint8_t* hashes, size_t count, uint8_t* out);
    // Takes `blocks` blocks of kRate bytes into a state, which begins with zeros.
    void (*absorb)(uint64_t state[25], const uint8_t* data, size_t blocks);
    // keccak-256 of one message.
    void (*keccak256)(const uint8_t* message, size_t size, uint8_t* out);
};

// The functions of the instruction set in use.
const Hashing& hashing();

}  // namespace pol
