// The intrinsics of CUDA that words.h uses, on the host. Compiled without contraction of products and sums.
#pragma once
#include <cmath>
#include <cstring>

POL_INLINE float __uint_as_float(Word word) {
    float value;
    std::memcpy(&value, &word, sizeof value);
    return value;
}
POL_INLINE Word __float_as_uint(float value) {
    Word word;
    std::memcpy(&word, &value, sizeof word);
    return word;
}
POL_INLINE float __fadd_rn(float a, float b) { return a + b; }
POL_INLINE float __fsub_rn(float a, float b) { return a - b; }
POL_INLINE float __fmul_rn(float a, float b) { return a * b; }
POL_INLINE float __fdiv_rn(float a, float b) { return a / b; }
POL_INLINE float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
POL_INLINE float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
// Conversions saturate, as on a GPU; a NaN gives 0, and 0x8000000000000000 for 64 bits.
POL_INLINE int __float2int_rz(float a) {
    if (a != a) return 0;
    if (a < -2147483648.0f) return -2147483647 - 1;
    return a >= 2147483648.0f ? 2147483647 : static_cast<int>(a);
}
POL_INLINE Word __float2uint_rz(float a) {
    if (!(a > 0.0f)) return 0;
    return a >= 4294967296.0f ? 0xffffffffu : static_cast<Word>(a);
}
POL_INLINE Long __float2ll_rz(float a) {
    constexpr Long kLeast = -9223372036854775807LL - 1;
    if (a != a || a < -9223372036854775808.0f) return kLeast;
    return a >= 9223372036854775808.0f ? 9223372036854775807LL : static_cast<Long>(a);
}
POL_INLINE float __int2float_rn(int a) { return static_cast<float>(a); }
POL_INLINE float __uint2float_rn(Word a) { return static_cast<float>(a); }
POL_INLINE float __ll2float_rn(Long a) { return static_cast<float>(a); }
POL_INLINE Word __umulhi(Word a, Word b) { return static_cast<Word>((Wide{a} * b) >> 32); }
// The sum of the products of four signed bytes, modulo 2^32.
POL_INLINE int __dp4a(int a, int b, int c) {
    Word sum = static_cast<Word>(c);
    for (int i = 0; i < 4; ++i) {
        const int x = static_cast<signed char>(static_cast<Word>(a) >> 8 * i);
        const int y = static_cast<signed char>(static_cast<Word>(b) >> 8 * i);
        sum += static_cast<Word>(x * y);
    }
    return static_cast<int>(sum);
}
