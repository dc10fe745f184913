// The functions over blocks of words, all intermediate values in registers.
#include "arithmetic/function_lanes.h"

#include "arithmetic/primitives.h"
#include "arithmetic/wide_words.h"

namespace pol::POL_ISA {
namespace {

#include "arithmetic/functions_lanes.inc"

}  // namespace

void apply_function(int function, uint32_t* d, const uint32_t* const* in, int n) {
    lanes_of[function](d, in, n);
}

}  // namespace pol::POL_ISA
