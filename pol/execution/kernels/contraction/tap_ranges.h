// The words that a contraction with bounds reads, and whether taps.cpp can run it.
#pragma once
#include "plan/plan.h"

namespace pol::POL_ISA {
namespace {

constexpr int64_t kModerate = int64_t{1} << 30;

// The least and greatest value of a form over some coordinates.
struct Range {
    int64_t low, high;
    void add(int64_t stride, int64_t size) { (stride < 0 ? low : high) += stride * (size - 1); }
    int64_t width() const { return high - low + 1; }
};

struct Sizes {
    bool apart;      // the values of the chunked fold dimension have arrays of their own
    int64_t first;   // where what the terms of a block span in y (of one value, if apart) begins, and how wide it is
    int64_t inner;
};

// Words of y that a block needs for positions that span `reach` words.
inline int64_t packed_words(const TapPlan& taps, const Sizes& sizes, int64_t reach, int width) {
    const int64_t line = (sizes.inner - 1 + reach) | 1;  // odd: neighbors along the chunked dimension in different cache sets
    return line * (sizes.apart ? taps.chunk : 1) * width;
}

inline Sizes sizes_of(const Plan& plan) {
    const TapPlan& taps = plan.contraction.taps;
    const Form& form = plan.form[plan.operand[taps.y].address];
    Range inner{0, 0}, all{0, 0};
    for (int d = taps.chunked + 1; d < plan.fold_rank; ++d) inner.add(form.fold[d], plan.fold[d]);
    all = inner;
    for (int i = 0; i < taps.positions.rank; ++i) all.add(form.out[taps.positions.axis[i]], taps.positions.dims[i]);
    const int64_t stride = form.fold[taps.chunked];
    const bool apart = 2 * (stride < 0 ? -stride : stride) > all.width();
    if (!apart) inner.add(stride, taps.chunk);
    return {apart, inner.low, inner.width()};
}

// Takes as many times the form of a bound out of an address as the first coordinate that moves the bound says.
inline int64_t take_out(const Plan& plan, const Form& bound, Form& address) {
    int64_t factor = 0;
    for (int d = 0; d < plan.fold_rank && factor == 0; ++d)
        if (bound.fold[d] != 0) factor = address.fold[d] / bound.fold[d];
    for (int d = 0; d < plan.space.rank && factor == 0; ++d)
        if (bound.out[d] != 0) factor = address.out[d] / bound.out[d];
    for (int d = 0; d < plan.fold_rank; ++d) address.fold[d] -= factor * bound.fold[d];
    for (int d = 0; d < plan.space.rank; ++d) address.out[d] -= factor * bound.out[d];
    return factor;
}

// Whether every word that an operand's bounds allow is one of its source: the address is a sum of multiples of the
// bounded forms, which the limits confine, and a rest. The operand is moderate; multiples that are not are refused,
// lest they overflow.
inline bool stays_inside(const Plan& plan, const PlannedOperand& operand, const int64_t* bases) {
    const auto is_large = [](int64_t x) { return x <= -kModerate || x >= kModerate; };
    Form rest = plan.form[operand.address];
    __int128 low = bases[operand.address], high = low;
    const auto add = [&](int64_t stride, int64_t size) { (stride < 0 ? low : high) += static_cast<__int128>(stride) * (size - 1); };
    for (int i = 0; i < operand.bounds; ++i) {
        const int64_t factor = take_out(plan, plan.form[operand.address + 1 + i], rest);
        bool large = false;
        for (int d = 0; d < plan.fold_rank; ++d) large = large || is_large(rest.fold[d]);
        for (int d = 0; d < plan.space.rank; ++d) large = large || is_large(rest.out[d]);
        if (large) return false;
        const int64_t base = bases[operand.address + 1 + i] * factor;
        low -= base;
        high -= base;
        add(factor, operand.limits[i]);
    }
    for (int d = 0; d < plan.fold_rank; ++d) add(rest.fold[d], plan.fold[d]);
    for (int d = 0; d < plan.space.rank; ++d) add(rest.out[d], plan.space.dims[d]);
    return low >= 0 && high < operand.numel;
}

// Whether forms, limits and whatever is computed from them stay within 32 bits.
inline bool is_moderate(const Plan& plan, const PlannedOperand& operand, const int64_t* bases) {
    for (int f = operand.address; f <= operand.address + operand.bounds; ++f) {
        int64_t reach = bases[f] < 0 ? -bases[f] : bases[f];
        const auto add = [&](int64_t stride, int64_t size) { reach += (stride < 0 ? -stride : stride) * (size - 1); };
        for (int d = 0; d < plan.fold_rank; ++d) add(plan.form[f].fold[d], plan.fold[d]);
        for (int d = 0; d < plan.space.rank; ++d) add(plan.form[f].out[d], plan.space.dims[d]);
        if (reach >= kModerate) return false;
    }
    for (int i = 0; i < operand.bounds; ++i)
        if (operand.limits[i] < 1 || operand.limits[i] >= kModerate) return false;
    return true;
}

}  // namespace
}  // namespace pol::POL_ISA
