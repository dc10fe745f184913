// The inner loop of matrix products and convolutions: one tile of the output, rows times columns, over a list of terms.
// Vectors run over columns, never over the fold index: every element is the plain sequence of fused multiply-adds.
#pragma once
#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "arithmetic/primitives.h"

namespace pol::POL_ISA {
namespace {

#if defined(__AVX512F__)
struct Vector {
    static constexpr int width = 16;
    __m512 v;
    static Vector load(const float* p) { return {_mm512_loadu_ps(p)}; }
    static Vector splat(float x) { return {_mm512_set1_ps(x)}; }
    void store(float* p) const { _mm512_storeu_ps(p, v); }
    void add_product(Vector a, Vector b) { v = _mm512_fmadd_ps(a.v, b.v, v); }
    void make_nan_canonical() { v = _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), _mm512_set1_ps(number(kNan))); }
};
constexpr int kTileRows = 14, kTileVectors = 2;
#elif defined(__AVX2__)
struct Vector {
    static constexpr int width = 8;
    __m256 v;
    static Vector load(const float* p) { return {_mm256_loadu_ps(p)}; }
    static Vector splat(float x) { return {_mm256_set1_ps(x)}; }
    void store(float* p) const { _mm256_storeu_ps(p, v); }
    void add_product(Vector a, Vector b) { v = _mm256_fmadd_ps(a.v, b.v, v); }
    void make_nan_canonical() { v = _mm256_blendv_ps(v, _mm256_set1_ps(number(kNan)), _mm256_cmp_ps(v, v, _CMP_UNORD_Q)); }
};
constexpr int kTileRows = 6, kTileVectors = 2;
#elif defined(__aarch64__)
struct Vector {
    static constexpr int width = 4;
    float32x4_t v;
    static Vector load(const float* p) { return {vld1q_f32(p)}; }
    static Vector splat(float x) { return {vdupq_n_f32(x)}; }
    void store(float* p) const { vst1q_f32(p, v); }
    void add_product(Vector a, Vector b) { v = vfmaq_f32(v, a.v, b.v); }
    void make_nan_canonical() { v = vbslq_f32(vceqq_f32(v, v), v, vdupq_n_f32(number(kNan))); }
};
constexpr int kTileRows = 8, kTileVectors = 3;
#else
struct Vector {
    static constexpr int width = 1;
    float v;
    static Vector load(const float* p) { return {*p}; }
    static Vector splat(float x) { return {x}; }
    void store(float* p) const { *p = v; }
    void add_product(Vector a, Vector b) { v = __builtin_fmaf(a.v, b.v, v); }
    void make_nan_canonical() { v = number(word<false>(v)); }
};
constexpr int kTileRows = 4, kTileVectors = 4;
#endif

constexpr int kTileColumns = kTileVectors * Vector::width;

// The places of terms, counted from the place of a row in x and of the columns in y: by equal steps ...
struct Stepped {
    int terms;
    int64_t x, y;

    template <class Body>
    __attribute__((always_inline)) void each(const float* from, const Body& body) const {
        int64_t at = 0;
        for (int t = 0; t < terms; ++t, at += x, from += y) body(at, from);
    }
};

// ... or by a list.
struct Listed {
    struct Term {
        int32_t x, y;
    };
    int terms;
    const Term* term;

    template <class Body>
    __attribute__((always_inline)) void each(const float* from, const Body& body) const {
#pragma GCC unroll 4
        for (int t = 0; t < terms; ++t) body(term[t].x, from + term[t].y);
    }
};

// What happens before the first and after the last terms of a fold: sums begin with `init`, and NaNs become canonical.
// In between, a NaN stays some NaN.
struct Ends {
    bool first, last;
    float init;
};

// tile[r][..] += the products of the terms in order.
template <int rows, int vectors, class Terms>
void multiply(const Terms& terms, const Ends& ends, const float* const* x, const float* y, float* const* tile) {
    Vector sum[rows][vectors];
    const Vector init = Vector::splat(ends.init);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) sum[r][v] = ends.first ? init : Vector::load(tile[r] + v * Vector::width);
    terms.each(y, [&](int64_t at, const float* from) __attribute__((always_inline)) {
        Vector column[vectors];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) column[v] = Vector::load(from + v * Vector::width);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) {
            const Vector row = Vector::splat(x[r][at]);
#pragma GCC unroll 8
            for (int v = 0; v < vectors; ++v) sum[r][v].add_product(row, column[v]);
        }
    });
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) {
            if (ends.last) sum[r][v].make_nan_canonical();
            sum[r][v].store(tile[r] + v * Vector::width);
        }
}

// `multiply` by rows and vectors of the tile.
template <class Terms>
struct Multiplies {
    using Function = void (*)(const Terms&, const Ends&, const float* const*, const float*, float* const*);
    Function of[kTileRows + 1][kTileVectors + 1];

    constexpr Multiplies() : of{} { list<kTileRows, kTileVectors>(); }

    template <int rows, int vectors>
    constexpr void list() {
        of[rows][vectors] = multiply<rows, vectors, Terms>;
        if constexpr (vectors > 1)
            list<rows, vectors - 1>();
        else if constexpr (rows > 1)
            list<rows - 1, kTileVectors>();
    }
};

inline int vectors_for(int columns) { return (columns + Vector::width - 1) / Vector::width; }

constexpr int kTransposed = 8;

// to[j * pitch + i] = from[i][j] for i, j < 8.
inline void transpose(const float* const* from, float* to, int64_t pitch) {
#if defined(__AVX2__)
    __m256 a[8], b[8];
    for (int i = 0; i < 8; ++i) a[i] = _mm256_loadu_ps(from[i]);
    for (int i = 0; i < 4; ++i) {
        b[2 * i] = _mm256_unpacklo_ps(a[2 * i], a[2 * i + 1]);
        b[2 * i + 1] = _mm256_unpackhi_ps(a[2 * i], a[2 * i + 1]);
    }
    for (int h = 0; h < 2; ++h)
        for (int i = 0; i < 2; ++i) {
            a[4 * h + 2 * i] = _mm256_shuffle_ps(b[4 * h + i], b[4 * h + i + 2], 0x44);
            a[4 * h + 2 * i + 1] = _mm256_shuffle_ps(b[4 * h + i], b[4 * h + i + 2], 0xee);
        }
    for (int i = 0; i < 4; ++i) {
        _mm256_storeu_ps(to + i * pitch, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * pitch, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
    }
#else
    for (int j = 0; j < kTransposed; ++j)
        for (int i = 0; i < kTransposed; ++i) to[j * pitch + i] = from[i][j];
#endif
}

// to[j * pitch + i] = from[i][j] for i < rows, j < columns.
inline void transpose(const float* const* from, int64_t rows, int64_t columns, float* to, int64_t pitch) {
    int64_t i = 0;
    for (; i + kTransposed <= rows; i += kTransposed) {
        int64_t j = 0;
        for (; j + kTransposed <= columns; j += kTransposed) {
            const float* block[kTransposed];
            for (int b = 0; b < kTransposed; ++b) block[b] = from[i + b] + j;
            transpose(block, to + j * pitch + i, pitch);
        }
        for (; j < columns; ++j)
            for (int b = 0; b < kTransposed; ++b) to[j * pitch + i + b] = from[i + b][j];
    }
    for (; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) to[j * pitch + i] = from[i][j];
}

}  // namespace
}  // namespace pol::POL_ISA
