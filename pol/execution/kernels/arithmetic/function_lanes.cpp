// The functions over blocks of words, all intermediate values in registers.
#include "arithmetic/function_lanes.h"

#include "arithmetic/functions.h"
#include "arithmetic/primitives.h"
#include "arithmetic/wide_words.h"

namespace pol::POL_ISA {
namespace {

#include "arithmetic/functions_lanes.inc"

}  // namespace

void apply_function(int function, uint32_t* d, const uint32_t* const* in, int n) {
    // Whole vectors; the lanes that are left over fill one with some others, since each by itself would take as long.
    constexpr int kVector = 16;
    const int whole = n / kVector * kVector, left = n - whole;
    if (whole > 0) lanes_of[function](d, in, whole);
    if (left == 0) return;
    uint32_t words[kMaxFunctionInputs][kVector] = {}, result[kVector];
    const uint32_t* inputs[kMaxFunctionInputs];
    for (int i = 0; i < kMaxFunctionInputs; ++i) {
        inputs[i] = i > 0 && in[i] == in[0] ? words[0] : words[i];
        if (inputs[i] == words[i]) __builtin_memcpy(words[i], in[i] + whole, size_t(left) * sizeof(uint32_t));
    }
    lanes_of[function](result, inputs, kVector);
    __builtin_memcpy(d + whole, result, size_t(left) * sizeof(uint32_t));
}

}  // namespace pol::POL_ISA
