// The self-test: whether this machine computes the bits that the specification asks for.
#pragma once
#include <cstdint>
#include <vector>

namespace pol {

// What every primitive, and one matrix product, make of fixed words, in the instruction set in use.
std::vector<uint32_t> self_test_words();

}  // namespace pol
