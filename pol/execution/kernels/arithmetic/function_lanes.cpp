// The functions over blocks of words, all intermediate values in registers.
#include "arithmetic/function_lanes.h"

#include "arithmetic/functions.h"
#include "arithmetic/primitives.h"
#include "arithmetic/wide_words.h"

namespace pol::POL_ISA {
namespace {

#include "arithmetic/functions_lanes.inc"

static_assert(lanes_of[kExp - kFunction] == exp_lanes);

// One word for all lanes, or one for each.
template <bool one>
[[gnu::always_inline]] inline uint32_t lane(const uint32_t* words, uint32_t word, int j) {
    return one ? word : words[j];
}

template <bool one>
void exponentials(uint32_t* d, const uint32_t* x, const uint32_t* shift, int n) {
    const uint32_t word = *shift;
    _Pragma("GCC ivdep") for (int j = 0; j < n; ++j) d[j] = exp_word(fsub<true>(x[j], lane<one>(shift, word, j)));
}

template <bool one>
void less_exponentials(uint32_t* d, const uint32_t* x, const uint32_t* exponent, const uint32_t* factor, int n) {
    const uint32_t word = *factor;
    _Pragma("GCC ivdep") for (int j = 0; j < n; ++j) d[j] = fsub<false>(x[j], fmul<true>(exp_word(exponent[j]), lane<one>(factor, word, j)));
}

}  // namespace

void exponentials(uint32_t* d, const uint32_t* const* in, int n) { exponentials<false>(d, in[0], in[1], n); }
void exponentials_of_row(uint32_t* d, const uint32_t* const* in, int n) { exponentials<true>(d, in[0], in[1], n); }
void less_exponentials(uint32_t* d, const uint32_t* const* in, int n) { less_exponentials<false>(d, in[0], in[1], in[2], n); }
void less_exponentials_of_row(uint32_t* d, const uint32_t* const* in, int n) { less_exponentials<true>(d, in[0], in[1], in[2], n); }

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
