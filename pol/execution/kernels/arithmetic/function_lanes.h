// The functions of functions.h over blocks of words, in this instruction-set build.
#pragma once
#include <cstdint>

namespace pol::POL_ISA {

// One of functions() on n lanes; d may be one of its inputs.
void apply_function(int function, uint32_t* d, const uint32_t* const* in, int n);

// exp(in[0] - in[1]), and in[0] - exp(in[1]) * in[2]. Of a row: the last one is one word for all lanes.
void exponentials(uint32_t* d, const uint32_t* const* in, int n);
void exponentials_of_row(uint32_t* d, const uint32_t* const* in, int n);
void less_exponentials(uint32_t* d, const uint32_t* const* in, int n);
void less_exponentials_of_row(uint32_t* d, const uint32_t* const* in, int n);

}  // namespace pol::POL_ISA
