// Primitives with operands that are one word for all lanes, such as the mean of a row. Included by plain_maps.h.
#pragma once
#include "arithmetic/primitives.h"

namespace pol::POL_ISA {
namespace {

// Whether apply_uniform knows the primitive.
inline bool takes_uniform(uint8_t op) {
    if (op >= kFunction) return false;
    op &= static_cast<uint8_t>(~kLazy);
    return op == FADD || op == FSUB || op == FMUL || op == FDIV || op == FFMA;
}

template <uint8_t op, bool lazy>
[[gnu::always_inline]] inline uint32_t primitive(uint32_t a, uint32_t b, uint32_t c) {
    switch (op) {
        case FADD: return fadd<lazy>(a, b);
        case FSUB: return fsub<lazy>(a, b);
        case FMUL: return fmul<lazy>(a, b);
        case FDIV: return fdiv<lazy>(a, b);
        default: return ffma<lazy>(a, b, c);
    }
}

// Bit i of `mask`: operand i is one word.
template <uint8_t op, bool lazy, unsigned mask>
void apply_masked(uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c, int n) {
    const uint32_t x = *a, y = *b, z = *c;
    _Pragma("GCC ivdep") for (int j = 0; j < n; ++j) d[j] = primitive<op, lazy>(mask & 1 ? x : a[j], mask & 2 ? y : b[j], mask & 4 ? z : op == FFMA ? c[j] : 0);
}

template <uint8_t op, bool lazy>
void apply_uniform(unsigned mask, uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c, int n) {
    switch (mask) {
        case 1: return apply_masked<op, lazy, 1>(d, a, b, c, n);
        case 2: return apply_masked<op, lazy, 2>(d, a, b, c, n);
    }
    if constexpr (op == FFMA) switch (mask) {
            case 3: return apply_masked<op, lazy, 3>(d, a, b, c, n);
            case 4: return apply_masked<op, lazy, 4>(d, a, b, c, n);
            case 5: return apply_masked<op, lazy, 5>(d, a, b, c, n);
            default: return apply_masked<op, lazy, 6>(d, a, b, c, n);
        }
}

inline void apply_uniform(uint8_t op, unsigned mask, uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c, int n) {
#define POL_CASE(name)                                                          \
    case name: return apply_uniform<name, false>(mask, d, a, b, c, n);          \
    case name | kLazy: return apply_uniform<name, true>(mask, d, a, b, c, n)
    switch (op) {
        POL_CASE(FADD);
        POL_CASE(FSUB);
        POL_CASE(FMUL);
        POL_CASE(FDIV);
        POL_CASE(FFMA);
    }
#undef POL_CASE
}

}  // namespace
}  // namespace pol::POL_ISA
