// The primitives of docs/spec/arithmetic.md on words, for a GPU and, through host_intrinsics.h, for the host.
#pragma once
#include "threads.h"
#ifndef __CUDACC__
#include "host_intrinsics.h"
#endif

namespace pol {

constexpr Word kNan = 0x7fc00000, kSign = 0x80000000, kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;

POL_INLINE float number(Word word) { return __uint_as_float(word); }
POL_INLINE bool is_nan(Word word) { return (word & kMagnitude) > kInfinity; }
// The word of a computed number, with every NaN made canonical. A lazy primitive leaves a NaN as it is, which is
// allowed where only other float primitives read the result (scalar_source.py).
template <bool lazy>
POL_INLINE Word word(float value) {
    return lazy || value == value ? __float_as_uint(value) : kNan;
}

// b if a is not 0, else c; bit for bit. In CUDA's own words the assembler makes one FMNMX.NAN of a comparison with a
// constant and a selection, and that instruction returns a NaN of its own.
POL_INLINE Word select(Word a, Word b, Word c) {
#ifdef __CUDACC__
    Word chosen;
    asm("{.reg .pred p; setp.ne.u32 p, %1, 0; selp.b32 %0, %2, %3, p;}" : "=r"(chosen) : "r"(a), "r"(b), "r"(c));
    return chosen;
#else
    return a != 0 ? b : c;
#endif
}
POL_INLINE Word feq(Word a, Word b) { return number(a) == number(b) ? 1u : 0u; }
POL_INLINE Word flt(Word a, Word b) { return number(a) < number(b) ? 1u : 0u; }
POL_INLINE Word fle(Word a, Word b) { return number(a) <= number(b) ? 1u : 0u; }

template <bool lazy>
POL_INLINE Word fadd(Word a, Word b) { return word<lazy>(__fadd_rn(number(a), number(b))); }
template <bool lazy>
POL_INLINE Word fsub(Word a, Word b) { return word<lazy>(__fsub_rn(number(a), number(b))); }
template <bool lazy>
POL_INLINE Word fmul(Word a, Word b) { return word<lazy>(__fmul_rn(number(a), number(b))); }
template <bool lazy>
POL_INLINE Word fdiv(Word a, Word b) { return word<lazy>(__fdiv_rn(number(a), number(b))); }
template <bool lazy>
POL_INLINE Word ffma(Word a, Word b, Word c) { return word<lazy>(__fmaf_rn(number(a), number(b), number(c))); }
template <bool lazy>
POL_INLINE Word fsqrt(Word a) { return word<lazy>(__fsqrt_rn(number(a))); }
// Both orders of the operands agree on ordered numbers that differ. Equal numbers are one word, but for zeros: the OR
// of two zeros is -0 if one is, their AND is -0 if both are.
template <bool lazy>
POL_INLINE Word fmin(Word a, Word b) {
    const Word least = select(flt(a, b), a, b) | select(flt(b, a), b, a);
    return is_nan(a) || is_nan(b) ? kNan : least;
}
template <bool lazy>
POL_INLINE Word fmax(Word a, Word b) {
    const Word greatest = select(flt(b, a), a, b) & select(flt(a, b), b, a);
    return is_nan(a) || is_nan(b) ? kNan : greatest;
}
template <bool lazy>
POL_INLINE Word fneg(Word a) { return !lazy && is_nan(a) ? kNan : a ^ kSign; }
template <bool lazy>
POL_INLINE Word fabs(Word a) { return !lazy && is_nan(a) ? kNan : a & kMagnitude; }
POL_INLINE Word frint(Word a) {
    // From 2^23 on every number is integral; below, adding and subtracting 2^23 rounds to nearest, ties to even.
    constexpr float kIntegral = 8388608.0f;
    const Word magnitude = a & kMagnitude;
    const Word rounded = __float_as_uint(__fsub_rn(__fadd_rn(number(magnitude), kIntegral), kIntegral));
    return is_nan(a) ? kNan : (number(magnitude) < kIntegral ? rounded : magnitude) | (a & kSign);
}
POL_INLINE Word f2i(Word a) { return static_cast<Word>(__float2int_rz(number(a))); }
POL_INLINE Word i2f(Word a) { return __float_as_uint(__int2float_rn(static_cast<int>(a))); }
POL_INLINE Word f2u(Word a) { return __float2uint_rz(number(a)); }
POL_INLINE Word u2f(Word a) { return __float_as_uint(__uint2float_rn(a)); }
POL_INLINE Wide truncate(Word a) { return is_nan(a) ? 0 : static_cast<Wide>(__float2ll_rz(number(a))); }
POL_INLINE Word f2lhi(Word a) { return static_cast<Word>(truncate(a) >> 32); }
POL_INLINE Word f2llo(Word a) { return static_cast<Word>(truncate(a)); }
POL_INLINE Word l2f(Word a, Word b) { return __float_as_uint(__ll2float_rn(static_cast<Long>(Wide{a} << 32 | b))); }
// Rounds the fraction of binary32 to the bits of a shorter format, to nearest even; a carry moves into the exponent.
template <int bits_dropped>
POL_INLINE Word shorten(Word a) {
    return (a + (1u << (bits_dropped - 1)) - 1 + (a >> bits_dropped & 1)) & ~((1u << bits_dropped) - 1);
}
POL_INLINE Word rbf16(Word a) { return is_nan(a) ? kNan : shorten<16>(a); }
POL_INLINE Word rf16(Word a) {
    constexpr Word kLeastNormal = 0x38800000, kGreatest = 0x477fe000;  // 2^-14 and 65504
    const Word magnitude = a & kMagnitude;
    // Below the least normal number the grid is 2^-24, which is that of binary32 from 1/2 to 1.
    const Word subnormal = __float_as_uint(__fsub_rn(__fadd_rn(number(magnitude), 0.5f), 0.5f));
    const Word rounded = magnitude < kLeastNormal ? subnormal : shorten<13>(magnitude);
    return is_nan(a) ? kNan : (rounded > kGreatest ? kInfinity : rounded) | (a & kSign);
}
POL_INLINE Word add(Word a, Word b) { return a + b; }
POL_INLINE Word sub(Word a, Word b) { return a - b; }
POL_INLINE Word mul(Word a, Word b) { return a * b; }
POL_INLINE Word mulhi(Word a, Word b) { return __umulhi(a, b); }
POL_INLINE Word and_(Word a, Word b) { return a & b; }
POL_INLINE Word or_(Word a, Word b) { return a | b; }
POL_INLINE Word xor_(Word a, Word b) { return a ^ b; }
POL_INLINE Word shl(Word a, Word b) { return b < 32 ? a << (b & 31) : 0u; }
POL_INLINE Word shr(Word a, Word b) { return b < 32 ? a >> (b & 31) : 0u; }
POL_INLINE Word sar(Word a, Word b) { return static_cast<Word>(static_cast<int>(a) >> (b < 31 ? b : 31)); }
POL_INLINE Word eq(Word a, Word b) { return a == b ? 1u : 0u; }
POL_INLINE Word ltu(Word a, Word b) { return a < b ? 1u : 0u; }
POL_INLINE Word lts(Word a, Word b) { return static_cast<int>(a) < static_cast<int>(b) ? 1u : 0u; }
POL_INLINE Word mov(Word a) { return a; }

}  // namespace pol
