// Whether this machine computes the bits that the specification asks for.
#pragma once
#include <cstdint>

namespace pol {

// keccak-256 of what every primitive, and one matrix product, make of fixed words, in the instruction set in use.
void self_test(uint8_t* digest);

}  // namespace pol
