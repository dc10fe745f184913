// The primitives of docs/spec/arithmetic.md on words and on blocks of them. Included by the files compiled once per
// instruction set (native/isa.h).
#pragma once
#include "arithmetic/scalar_program.h"

namespace pol::POL_ISA {
namespace {

constexpr uint32_t kNan = 0x7fc00000, kSign = 0x80000000, kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;

inline float number(uint32_t word) {
    float value;
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
}
inline uint32_t bits(float value) {
    uint32_t word;
    __builtin_memcpy(&word, &value, sizeof word);
    return word;
}
inline bool is_nan(uint32_t word) { return (word & kMagnitude) > kInfinity; }
// The word of a computed number, with every NaN made canonical. A lazy primitive leaves a NaN as it is, which is
// allowed where only other float primitives read the result (plan/lazy_nans.cpp).
template <bool lazy>
inline uint32_t word(float value) {
    return lazy || value == value ? bits(value) : kNan;
}

// The minimum and maximum that processors have as an instruction. Both orders of the operands give the same word for
// ordered numbers that differ. For equal numbers (only zeros have two words) and for NaNs each order gives another
// operand.
[[gnu::always_inline]] inline uint32_t below(float x, float y) { return bits(x < y ? x : y); }
[[gnu::always_inline]] inline uint32_t above(float x, float y) { return bits(x > y ? x : y); }
// The OR of a NaN and any word is a NaN.
template <bool lazy>
[[gnu::always_inline]] inline uint32_t min_word(float x, float y) {
    const uint32_t least = below(x, y) | below(y, x);
    return lazy || !__builtin_isunordered(x, y) ? least : kNan;
}
[[gnu::always_inline]] inline uint32_t max_word(float x, float y) {
    const uint32_t greatest = above(x, y) & above(y, x);
    return __builtin_isunordered(x, y) ? kNan : greatest;
}
// With a constant that is neither a zero nor a NaN.
template <bool lazy>
[[gnu::always_inline]] inline uint32_t fmin_constant(uint32_t a, uint32_t constant) {
    return word<lazy>(number(constant) < number(a) ? number(constant) : number(a));
}
template <bool lazy>
[[gnu::always_inline]] inline uint32_t fmax_constant(uint32_t a, uint32_t constant) {
    return word<lazy>(number(constant) > number(a) ? number(constant) : number(a));
}
inline uint32_t rint_word(uint32_t a) {
    // From 2^23 on every number is integral; below, adding and subtracting 2^23 rounds to nearest, ties to even.
    constexpr float kIntegral = 8388608.0f;
    const uint32_t magnitude = a & kMagnitude;
    const float rounded = (number(magnitude) + kIntegral) - kIntegral;
    const uint32_t result = (number(magnitude) < kIntegral ? bits(rounded) : magnitude) | (a & kSign);
    return is_nan(a) ? kNan : result;
}
inline uint32_t truncate_word(uint32_t a) {
    const float x = number(a);
    const bool fits = x >= -2147483648.0f && x < 2147483648.0f;
    const uint32_t truncated = static_cast<uint32_t>(static_cast<int32_t>(fits ? x : 0.0f));
    const uint32_t saturated = is_nan(a) ? 0u : a >> 31 ? 0x80000000u : 0x7fffffffu;
    return fits ? truncated : saturated;
}
// |a| rounded toward zero, for |a| < 2^(bits of Word). By shifts: few processors convert to these types in vectors.
template <typename Word>
[[gnu::always_inline]] inline Word whole(uint32_t a) {
    constexpr uint32_t kLast = 8 * sizeof(Word) - 1;
    const uint32_t field = a >> 23 & 0xff;
    const Word significand = (a & 0x7fffff) | 0x800000;  // below 1 nothing is left of it, hidden bit or not
    const uint32_t down = 150 - field, up = field - 150;
    return field < 150 ? significand >> (down < kLast ? down : kLast) : significand << (up < kLast ? up : kLast);
}
inline uint32_t truncate_unsigned(uint32_t a) {
    const uint32_t saturated = a > kInfinity ? 0u : 0xffffffffu;  // negative numbers and NaN
    return a < 0x4f800000 ? whole<uint32_t>(a) : saturated;
}
inline uint64_t truncate_wide(uint32_t a) {
    const uint64_t negative = a >> 31;
    const uint32_t magnitude = a & kMagnitude;
    const uint64_t size = whole<uint64_t>(a);
    const uint64_t saturated = is_nan(a) ? 0 : (~uint64_t{0} >> 1) + negative;
    return magnitude < 0x5f000000 ? (size ^ (0 - negative)) + negative : saturated;
}
// Rounds the fraction of binary32 to the bits of a shorter format, to nearest even; a carry moves into the exponent.
template <int bits_dropped>
[[gnu::always_inline]] inline uint32_t shorten(uint32_t a) {
    return (a + (1u << (bits_dropped - 1)) - 1 + (a >> bits_dropped & 1)) & ~((1u << bits_dropped) - 1);
}
inline uint32_t round_f16(uint32_t a) {
    constexpr uint32_t kLeastNormal = 0x38800000, kGreatest = 0x477fe000;  // 2^-14 and 65504
    const uint32_t magnitude = a & kMagnitude;
    // Below the least normal number the grid is 2^-24, which is that of binary32 from 1/2 to 1.
    const uint32_t subnormal = bits((number(magnitude) + 0.5f) - 0.5f);
    const uint32_t rounded = magnitude < kLeastNormal ? subnormal : shorten<13>(magnitude);
    return is_nan(a) ? kNan : (rounded > kGreatest ? kInfinity : rounded) | (a & kSign);
}

// One function per primitive, of words.
#define POL_FLOAT1(name, expression)   \
    template <bool lazy>               \
    [[gnu::always_inline]] inline uint32_t name(uint32_t a) { \
        return expression;             \
    }
#define POL_FLOAT2(name, expression)               \
    template <bool lazy>                           \
    [[gnu::always_inline]] inline uint32_t name(uint32_t a, uint32_t b) { \
        return expression;                         \
    }
#define POL_WORD1(name, expression) \
    [[gnu::always_inline]] inline uint32_t name(uint32_t a) { return expression; }
#define POL_WORD2(name, expression) \
    [[gnu::always_inline]] inline uint32_t name(uint32_t a, uint32_t b) { return expression; }
POL_FLOAT2(fadd, word<lazy>(number(a) + number(b)))
POL_FLOAT2(fsub, word<lazy>(number(a) - number(b)))
POL_FLOAT2(fmul, word<lazy>(number(a) * number(b)))
POL_FLOAT2(fdiv, word<lazy>(number(a) / number(b)))
template <bool lazy>
inline uint32_t ffma(uint32_t a, uint32_t b, uint32_t c) {
    return word<lazy>(__builtin_fmaf(number(a), number(b), number(c)));
}
POL_FLOAT1(fsqrt, word<lazy>(__builtin_sqrtf(number(a))))
POL_FLOAT2(fmin, min_word<lazy>(number(a), number(b)))
POL_WORD2(fmax, max_word(number(a), number(b)))
POL_WORD2(feq, number(a) == number(b) ? 1u : 0u)
POL_WORD2(flt, number(a) < number(b) ? 1u : 0u)
POL_WORD2(fle, number(a) <= number(b) ? 1u : 0u)
POL_FLOAT1(fneg, !lazy && is_nan(a) ? kNan : a ^ kSign)
POL_FLOAT1(fabs, !lazy && is_nan(a) ? kNan : a & kMagnitude)
POL_WORD1(frint, rint_word(a))
POL_WORD1(f2i, truncate_word(a))
POL_WORD1(i2f, bits(static_cast<float>(static_cast<int32_t>(a))))
POL_WORD1(f2u, truncate_unsigned(a))
POL_WORD1(u2f, bits(static_cast<float>(a)))
POL_WORD1(f2lhi, static_cast<uint32_t>(truncate_wide(a) >> 32))
POL_WORD1(f2llo, static_cast<uint32_t>(truncate_wide(a)))
POL_WORD2(l2f, bits(static_cast<float>(static_cast<int64_t>(uint64_t{a} << 32 | b))))
POL_WORD1(rbf16, is_nan(a) ? kNan : shorten<16>(a))
POL_WORD1(rf16, round_f16(a))
POL_WORD2(add, a + b)
POL_WORD2(sub, a - b)
POL_WORD2(mul, a* b)
POL_WORD2(mulhi, static_cast<uint32_t>((uint64_t{a} * b) >> 32))
POL_WORD2(and_, a & b)
POL_WORD2(or_, a | b)
POL_WORD2(xor_, a ^ b)
POL_WORD2(shl, b < 32 ? a << (b & 31) : 0u)
POL_WORD2(shr, b < 32 ? a >> (b & 31) : 0u)
POL_WORD2(sar, static_cast<uint32_t>(static_cast<int32_t>(a) >> (b < 31 ? b : 31)))
POL_WORD2(eq, a == b ? 1u : 0u)
POL_WORD2(ltu, a < b ? 1u : 0u)
POL_WORD2(lts, static_cast<int32_t>(a) < static_cast<int32_t>(b) ? 1u : 0u)
inline uint32_t select(uint32_t a, uint32_t b, uint32_t c) { return a != 0 ? b : c; }
#undef POL_FLOAT1
#undef POL_FLOAT2
#undef POL_WORD1
#undef POL_WORD2

// The primitives of one or two operands, with the functions of their words; those that may be lazy apart.
#define POL_PRIMITIVES(LAZY1, LAZY2, WORD1, WORD2)                                                                      \
    LAZY1(FSQRT, fsqrt) LAZY1(FNEG, fneg) LAZY1(FABS, fabs)                                                             \
    LAZY2(FADD, fadd) LAZY2(FSUB, fsub) LAZY2(FMUL, fmul) LAZY2(FDIV, fdiv) LAZY2(FMIN, fmin)                           \
    WORD1(FRINT, frint) WORD1(F2I, f2i) WORD1(I2F, i2f) WORD1(F2U, f2u) WORD1(U2F, u2f) WORD1(F2LHI, f2lhi)             \
    WORD1(F2LLO, f2llo) WORD1(RBF16, rbf16) WORD1(RF16, rf16)                                                           \
    WORD2(FMAX, fmax) WORD2(FEQ, feq) WORD2(FLT, flt) WORD2(FLE, fle) WORD2(L2F, l2f) WORD2(ADD, add) WORD2(SUB, sub)   \
    WORD2(MUL, mul) WORD2(MULHI, mulhi) WORD2(AND, and_) WORD2(OR, or_) WORD2(XOR, xor_) WORD2(SHL, shl)                \
    WORD2(SHR, shr) WORD2(SAR, sar) WORD2(EQ, eq) WORD2(LTU, ltu) WORD2(LTS, lts)

// Applies one primitive, perhaps | kLazy, to n lanes. d may be one of a, b, c. Unused operands are ignored. Each file
// that includes this has a copy: calls into another file save more registers and cost short rows 3 %.
#define POL_LANES(op, expression)                                 \
    case op:                                                      \
        _Pragma("GCC ivdep") for (int j = 0; j < n; ++j) {        \
            d[j] = (expression);                                  \
        }                                                         \
        return;
#define POL_WORD1(op, name) POL_LANES(op, name(a[j]))
#define POL_WORD2(op, name) POL_LANES(op, name(a[j], b[j]))
#define POL_LAZY1(op, name) POL_LANES(op, name<false>(a[j])) POL_LANES(op | kLazy, name<true>(a[j]))
#define POL_LAZY2(op, name) POL_LANES(op, name<false>(a[j], b[j])) POL_LANES(op | kLazy, name<true>(a[j], b[j]))
inline void apply(uint8_t op, uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c, int n) {
    switch (op) {
        POL_PRIMITIVES(POL_LAZY1, POL_LAZY2, POL_WORD1, POL_WORD2)
        POL_LANES(FFMA, ffma<false>(a[j], b[j], c[j]))
        POL_LANES(FFMA | kLazy, ffma<true>(a[j], b[j], c[j]))
        POL_LANES(SELECT, select(a[j], b[j], c[j]))
        POL_LANES(MOV, a[j])
    }
}
#undef POL_LANES
#undef POL_WORD1
#undef POL_WORD2
#undef POL_LAZY1
#undef POL_LAZY2

}  // namespace
}  // namespace pol::POL_ISA
