// Keccak-256 (original padding) in this instruction-set build; see isa.h for the meaning of the functions.
#pragma once
#include <cstddef>
#include <cstdint>

namespace pol::POL_ISA {

void hash_leaves(const uint8_t* leaves, size_t count, uint8_t* out);
void hash_pairs(const uint8_t* hashes, size_t count, uint8_t* out);
void keccak256(const uint8_t* message, size_t size, uint8_t* out);

}  // namespace pol::POL_ISA
