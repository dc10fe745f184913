// Joins the terms of neighboring elements (plan/find/columns.cpp), some terms at a time, so that the accumulators go
// through registers less often. A NaN may have any bits here. Included by elements.cpp.
#pragma once
#include "arithmetic/primitives.h"
#include "plan/plan.h"

namespace pol::POL_ISA {
namespace {

constexpr int kTermsAtOnce = 4;

// What is read for one term.
struct ColumnTerm {
    const uint32_t *x, *y, *mean, *scale;  // y is the value that a mean is subtracted from, if there is one
};

template <uint8_t op>
[[gnu::always_inline]] inline uint32_t join_word(uint32_t acc, uint32_t x, uint32_t y) {
    switch (op) {
        case FADD: return fadd<true>(acc, x);
        case FMUL: return fmul<true>(acc, x);
        case FMAX: return fmax(acc, x);
        case FMIN: return fmin<true>(acc, x);
        case ADD: return add(acc, x);
        case MUL: return mul(acc, x);
        case AND: return and_(acc, x);
        case OR: return or_(acc, x);
        case kGreatest: return select(lts(acc, x), x, acc);
        case kLeast: return select(lts(acc, x), acc, x);
        default: return ffma<true>(x, y, acc);
    }
}

enum class Factor { none, words, word, centered, scaled };

template <Factor factor>
[[gnu::always_inline]] inline uint32_t factor_of(const uint32_t* y, uint32_t mean, uint32_t scale, int j) {
    switch (factor) {
        case Factor::words: return y[j];
        case Factor::word: return mean;
        case Factor::centered: return fsub<true>(y[j], mean);
        case Factor::scaled: return fmul<true>(fsub<true>(y[j], mean), scale);
        default: return 0;
    }
}

template <uint8_t op, Factor factor, int terms>
void join_terms(uint32_t* __restrict acc, const ColumnTerm* term, int count) {
    const uint32_t *x[terms], *y[terms];
    uint32_t mean[terms], scale[terms];
    for (int t = 0; t < terms; ++t) {
        x[t] = term[t].x;
        y[t] = term[t].y;
        mean[t] = factor == Factor::word ? *term[t].y : factor == Factor::centered || factor == Factor::scaled ? *term[t].mean : 0;
        scale[t] = factor == Factor::scaled ? *term[t].scale : 0;
    }
    _Pragma("GCC ivdep") for (int j = 0; j < count; ++j) {
        uint32_t word = acc[j];
        _Pragma("GCC unroll 4") for (int t = 0; t < terms; ++t) word = join_word<op>(word, x[t][j], factor_of<factor>(y[t], mean[t], scale[t], j));
        acc[j] = word;
    }
}

template <uint8_t op, Factor factor>
void join_terms(uint32_t* acc, const ColumnTerm* term, int terms, int count) {
    if (terms == kTermsAtOnce) return join_terms<op, factor, kTermsAtOnce>(acc, term, count);
    for (int t = 0; t < terms; ++t) join_terms<op, factor, 1>(acc, term + t, count);
}

inline void join_terms(const Plan& plan, bool is_word, uint32_t* acc, const ColumnTerm* term, int terms, int count) {
    switch (plan.join.op) {
        case FADD: return join_terms<FADD, Factor::none>(acc, term, terms, count);
        case FMUL: return join_terms<FMUL, Factor::none>(acc, term, terms, count);
        case FMAX: return join_terms<FMAX, Factor::none>(acc, term, terms, count);
        case FMIN: return join_terms<FMIN, Factor::none>(acc, term, terms, count);
        case ADD: return join_terms<ADD, Factor::none>(acc, term, terms, count);
        case MUL: return join_terms<MUL, Factor::none>(acc, term, terms, count);
        case AND: return join_terms<AND, Factor::none>(acc, term, terms, count);
        case OR: return join_terms<OR, Factor::none>(acc, term, terms, count);
        case kGreatest: return join_terms<kGreatest, Factor::none>(acc, term, terms, count);
        case kLeast: return join_terms<kLeast, Factor::none>(acc, term, terms, count);
    }
    const ColumnPlan& columns = plan.columns;
    if (columns.scale >= 0) return join_terms<FFMA, Factor::scaled>(acc, term, terms, count);
    if (columns.mean >= 0) return join_terms<FFMA, Factor::centered>(acc, term, terms, count);
    if (is_word) return join_terms<FFMA, Factor::word>(acc, term, terms, count);
    join_terms<FFMA, Factor::words>(acc, term, terms, count);
}

inline void make_nans_canonical(uint32_t* words, int count) {
    for (int j = 0; j < count; ++j) words[j] = is_nan(words[j]) ? kNan : words[j];
}

}  // namespace
}  // namespace pol::POL_ISA
