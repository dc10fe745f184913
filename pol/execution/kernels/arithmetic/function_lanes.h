// The functions of functions.h over blocks of words, in this instruction-set build.
#pragma once
#include <cstdint>

namespace pol::POL_ISA {

// One of functions() on n lanes; d may be one of its inputs.
void apply_function(int function, uint32_t* d, const uint32_t* const* in, int n);

}  // namespace pol::POL_ISA
