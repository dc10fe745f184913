// The primitives of docs/spec/arithmetic.md over blocks of words. Included by the files compiled once per instruction set.
#pragma once
#include "plan.h"

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
// The word of a computed number; every NaN becomes the one NaN.
inline uint32_t word(float value) { return value != value ? kNan : bits(value); }

inline uint32_t min_word(uint32_t a, uint32_t b) {
    const float x = number(a), y = number(b);
    const uint32_t least = x < y ? a : y < x ? b : a | b;  // equal: a | b is -0 if either is
    return x != x || y != y ? kNan : least;
}
inline uint32_t max_word(uint32_t a, uint32_t b) {
    const float x = number(a), y = number(b);
    const uint32_t greatest = x > y ? a : y > x ? b : a & b;
    return x != x || y != y ? kNan : greatest;
}
inline uint32_t rint_word(uint32_t a) {
    // Above 2^23 every number is integral; below, adding and subtracting 2^23 rounds to nearest, ties to even.
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

// Applies one primitive to n lanes. d may be one of a, b, c. Unused operands are ignored.
#define POL_LANES(expression)                            \
    _Pragma("GCC ivdep") for (int j = 0; j < n; ++j) {   \
        d[j] = (expression);                             \
    }                                                    \
    return
inline void apply(uint8_t op, uint32_t* d, const uint32_t* a, const uint32_t* b, const uint32_t* c, int n) {
    switch (op) {
        case FADD: POL_LANES(word(number(a[j]) + number(b[j])));
        case FSUB: POL_LANES(word(number(a[j]) - number(b[j])));
        case FMUL: POL_LANES(word(number(a[j]) * number(b[j])));
        case FDIV: POL_LANES(word(number(a[j]) / number(b[j])));
        case FFMA: POL_LANES(word(__builtin_fmaf(number(a[j]), number(b[j]), number(c[j]))));
        case FSQRT: POL_LANES(word(__builtin_sqrtf(number(a[j]))));
        case FMIN: POL_LANES(min_word(a[j], b[j]));
        case FMAX: POL_LANES(max_word(a[j], b[j]));
        case FEQ: POL_LANES(number(a[j]) == number(b[j]) ? 1u : 0u);
        case FLT: POL_LANES(number(a[j]) < number(b[j]) ? 1u : 0u);
        case FLE: POL_LANES(number(a[j]) <= number(b[j]) ? 1u : 0u);
        case FNEG: POL_LANES(is_nan(a[j]) ? kNan : a[j] ^ kSign);
        case FABS: POL_LANES(is_nan(a[j]) ? kNan : a[j] & kMagnitude);
        case FRINT: POL_LANES(rint_word(a[j]));
        case F2I: POL_LANES(truncate_word(a[j]));
        case I2F: POL_LANES(bits(static_cast<float>(static_cast<int32_t>(a[j]))));
        case ADD: POL_LANES(a[j] + b[j]);
        case SUB: POL_LANES(a[j] - b[j]);
        case MUL: POL_LANES(a[j] * b[j]);
        case MULHI: POL_LANES(static_cast<uint32_t>((uint64_t{a[j]} * b[j]) >> 32));
        case AND: POL_LANES(a[j] & b[j]);
        case OR: POL_LANES(a[j] | b[j]);
        case XOR: POL_LANES(a[j] ^ b[j]);
        case SHL: POL_LANES(b[j] < 32 ? a[j] << (b[j] & 31) : 0u);
        case SHR: POL_LANES(b[j] < 32 ? a[j] >> (b[j] & 31) : 0u);
        case SAR: POL_LANES(static_cast<uint32_t>(static_cast<int32_t>(a[j]) >> (b[j] < 31 ? b[j] : 31)));
        case EQ: POL_LANES(a[j] == b[j] ? 1u : 0u);
        case LTU: POL_LANES(a[j] < b[j] ? 1u : 0u);
        case LTS: POL_LANES(static_cast<int32_t>(a[j]) < static_cast<int32_t>(b[j]) ? 1u : 0u);
        case SELECT: POL_LANES(a[j] != 0 ? b[j] : c[j]);
        case MOV: POL_LANES(a[j]);
    }
}
#undef POL_LANES

}  // namespace
}  // namespace pol::POL_ISA
