// The expressions that normalizations and softmaxes end in (plan/find/endings.cpp), computed in registers. Included by
// plain_maps.h.
#pragma once
#include "arithmetic/function_lanes.h"
#include "arithmetic/primitives.h"
#include "plan/plan.h"

namespace pol::POL_ISA {
namespace {

struct Normalized {
    static constexpr int leaves = 5;
    [[gnu::always_inline]] static uint32_t of(const uint32_t* w) { return ffma<false>(fmul<true>(fsub<true>(w[0], w[1]), w[2]), w[3], w[4]); }
};
struct WeightedGradient {
    static constexpr int leaves = 7;
    [[gnu::always_inline]] static uint32_t of(const uint32_t* w) {
        return fmul<false>(w[0], fsub<true>(fmul<true>(w[1], w[2]), ffma<true>(fsub<true>(w[3], w[4]), w[5], w[6])));
    }
};
struct NormGradient {
    static constexpr int leaves = 6;
    [[gnu::always_inline]] static uint32_t of(const uint32_t* w) {
        return fmul<false>(w[0], fsub<true>(w[1], ffma<true>(fsub<true>(w[2], w[3]), w[4], w[5])));
    }
};
struct ScaledDifference {
    static constexpr int leaves = 3;
    [[gnu::always_inline]] static uint32_t of(const uint32_t* w) { return fmul<false>(w[0], fsub<true>(w[1], w[2])); }
};
struct TwoDifferences {
    static constexpr int leaves = 3;
    [[gnu::always_inline]] static uint32_t of(const uint32_t* w) { return fsub<false>(fsub<true>(w[0], w[1]), w[2]); }
};
struct DifferenceOfProduct {
    static constexpr int leaves = 3;
    [[gnu::always_inline]] static uint32_t of(const uint32_t* w) { return fsub<false>(w[0], fmul<true>(w[1], w[2])); }
};

struct Quotient {
    static constexpr int leaves = 2;
    [[gnu::always_inline]] static uint32_t of(const uint32_t* w) { return fdiv<false>(w[0], w[1]); }
};
struct WhereEqual {
    static constexpr int leaves = 4;
    [[gnu::always_inline]] static uint32_t of(const uint32_t* w) { return w[0] == w[1] ? w[2] : w[3]; }
};

// Bit i of `mask`: leaf i is one word for all lanes.
template <class Expression, unsigned mask>
void apply_ending(uint32_t* d, const uint32_t* const* leaf, int n) {
    const uint32_t* from[Expression::leaves];
    uint32_t word[Expression::leaves];
    for (int i = 0; i < Expression::leaves; ++i) {
        from[i] = leaf[i];
        word[i] = *leaf[i];
    }
    _Pragma("GCC ivdep") for (int j = 0; j < n; ++j) {
        uint32_t words[Expression::leaves];
        _Pragma("GCC unroll 8") for (int i = 0; i < Expression::leaves; ++i) words[i] = mask >> i & 1 ? word[i] : from[i][j];
        d[j] = Expression::of(words);
    }
}

using ApplyEnding = void (*)(uint32_t* d, const uint32_t* const* leaf, int n);

// Null if there is none for this mask.
inline ApplyEnding ending_with(Ending ending, unsigned mask) {
    switch (ending) {
        case Ending::normalized: return mask == 6 ? apply_ending<Normalized, 6> : mask == 30 ? apply_ending<Normalized, 30> : mask == 0 ? apply_ending<Normalized, 0> : nullptr;
        case Ending::weighted_gradient:
            return mask == 0x71 ? apply_ending<WeightedGradient, 0x71> : mask == 0x75 ? apply_ending<WeightedGradient, 0x75> : mask == 0x39 ? apply_ending<WeightedGradient, 0x39> : mask == 0 ? apply_ending<WeightedGradient, 0> : nullptr;
        case Ending::norm_gradient: return mask == 0x39 ? apply_ending<NormGradient, 0x39> : mask == 0 ? apply_ending<NormGradient, 0> : nullptr;
        case Ending::scaled_difference: return mask == 4 ? apply_ending<ScaledDifference, 4> : mask == 0 ? apply_ending<ScaledDifference, 0> : nullptr;
        case Ending::two_differences: return mask == 6 ? apply_ending<TwoDifferences, 6> : mask == 0 ? apply_ending<TwoDifferences, 0> : nullptr;
        case Ending::difference_of_product: return mask == 4 ? apply_ending<DifferenceOfProduct, 4> : mask == 0 ? apply_ending<DifferenceOfProduct, 0> : nullptr;
        case Ending::quotient: return mask == 2 ? apply_ending<Quotient, 2> : mask == 0 ? apply_ending<Quotient, 0> : nullptr;
        case Ending::where_equal: return mask == 13 ? apply_ending<WhereEqual, 13> : mask == 0 ? apply_ending<WhereEqual, 0> : nullptr;
        case Ending::exponential: return mask == 2 ? exponentials_of_row : mask == 0 ? exponentials : nullptr;
        case Ending::less_exponential: return mask == 4 ? less_exponentials_of_row : mask == 0 ? less_exponentials : nullptr;
        default: return nullptr;
    }
}

}  // namespace
}  // namespace pol::POL_ISA
