// Vectors of words for programs of integer products: compilers vectorize the upper half of a product poorly. Included
// by the files compiled once per instruction set; POL_WIDE_WORDS says whether the set has such vectors.
#pragma once
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "arithmetic/primitives.h"

#if defined(__AVX512F__) || defined(__AVX2__)
#define POL_WIDE_WORDS

namespace pol::POL_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kWide = 16;
#else
constexpr int kWide = 8;
#endif
typedef uint32_t Wide __attribute__((vector_size(kWide * sizeof(uint32_t))));

[[gnu::always_inline]] inline Wide load_wide(const uint32_t* from) {
    Wide words;
    __builtin_memcpy(&words, from, sizeof words);
    return words;
}
[[gnu::always_inline]] inline void store_wide(uint32_t* to, Wide words) { __builtin_memcpy(to, &words, sizeof words); }

// Multiplies even and odd lanes apart, into 64 bits each, and takes the upper halves of both.
[[gnu::always_inline]] inline Wide mulhi(Wide a, Wide b) {
#if defined(__AVX512F__)
    const __m512i x = reinterpret_cast<__m512i>(a), y = reinterpret_cast<__m512i>(b);
    // Masked forms with all lanes set: the plain ones read an unset value, which compilers warn about.
    const auto upper = [](__m512i pairs) { return _mm512_maskz_srli_epi64(0xff, pairs, 32); };
    const __m512i even = _mm512_maskz_mul_epu32(0xff, x, y), odd = _mm512_maskz_mul_epu32(0xff, upper(x), upper(y));
    return reinterpret_cast<Wide>(_mm512_mask_mov_epi32(upper(even), 0xaaaa, odd));
#else
    const __m256i x = reinterpret_cast<__m256i>(a), y = reinterpret_cast<__m256i>(b);
    const __m256i even = _mm256_mul_epu32(x, y), odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(y, 32));
    return reinterpret_cast<Wide>(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa));
#endif
}
[[gnu::always_inline]] inline Wide mulhi(Wide a, uint32_t b) { return mulhi(a, Wide{} + b); }
[[gnu::always_inline]] inline Wide mulhi(uint32_t a, Wide b) { return mulhi(b, a); }

#define POL_WIDE2(name, operation)                                                              \
    [[gnu::always_inline]] inline Wide name(Wide a, Wide b) { return a operation b; }           \
    [[gnu::always_inline]] inline Wide name(Wide a, uint32_t b) { return a operation b; }       \
    [[gnu::always_inline]] inline Wide name(uint32_t a, Wide b) { return a operation b; }
POL_WIDE2(add, +)
POL_WIDE2(sub, -)
POL_WIDE2(mul, *)
POL_WIDE2(and_, &)
POL_WIDE2(or_, |)
POL_WIDE2(xor_, ^)
#undef POL_WIDE2

}  // namespace
}  // namespace pol::POL_ISA
#endif
