// The inner loop of matrix products and convolutions: one tile of the output, rows times columns, over a list of terms.
// Vectors run over columns, never over the fold index: every element is the plain sequence of fused multiply-adds.
#pragma once
#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "primitives.h"

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
};
constexpr int kTileRows = 4, kTileVectors = 4;
#endif

constexpr int kTileColumns = kTileVectors * Vector::width;

// Where the words of a term stand, from the place of each row and of the columns.
struct Term {
    int32_t x, y;
};

// tile[r][..] += the products of the terms in order.
template <int rows, int vectors>
void multiply(int terms, const Term* term, const float* const* x, const float* y, float* const* tile) {
    Vector sum[rows][vectors];
    for (int r = 0; r < rows; ++r)
        for (int v = 0; v < vectors; ++v) sum[r][v] = Vector::load(tile[r] + v * Vector::width);
    for (const Term* end = term + terms; term != end; ++term) {
        const int64_t at = term->x;
        const float* from = y + term->y;
        Vector column[vectors];
        for (int v = 0; v < vectors; ++v) column[v] = Vector::load(from + v * Vector::width);
        for (int r = 0; r < rows; ++r) {
            const Vector row = Vector::splat(x[r][at]);
            for (int v = 0; v < vectors; ++v) sum[r][v].add_product(row, column[v]);
        }
    }
    for (int r = 0; r < rows; ++r)
        for (int v = 0; v < vectors; ++v) sum[r][v].store(tile[r] + v * Vector::width);
}

// By rows and vectors of the tile.
struct Multiplies {
    using Function = void (*)(int, const Term*, const float* const*, const float*, float* const*);
    Function of[kTileRows + 1][kTileVectors + 1];

    Multiplies() { list<kTileRows, kTileVectors>(); }

    template <int rows, int vectors>
    void list() {
        of[rows][vectors] = multiply<rows, vectors>;
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

// Makes every NaN the one NaN: a NaN stays one to the end of a fold, so that this is soon enough there.
inline void finish(float* tile, int count) {
    uint32_t* words = reinterpret_cast<uint32_t*>(tile);
    for (int c = 0; c < count; ++c) words[c] = is_nan(words[c]) ? kNan : words[c];
}

}  // namespace
}  // namespace pol::POL_ISA
