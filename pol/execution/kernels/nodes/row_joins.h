// Joins the terms of rows to their accumulators, eight at a time. A NaN may have any bits here. Included by rows.cpp.
#pragma once
#include "nodes/registers.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

// Vectors wider than the processor's are passed between inlined functions only.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace pol::POL_ISA {
namespace {

constexpr int kTileRows = 16, kTileLanes = 32, kVector = 8;

typedef float Floats __attribute__((vector_size(32)));
typedef uint32_t Words __attribute__((vector_size(32)));
typedef int32_t Integers __attribute__((vector_size(32)));
typedef Floats FloatsAnywhere __attribute__((aligned(4), may_alias));

[[gnu::always_inline]] inline Floats load(const uint32_t* p) { return *reinterpret_cast<const FloatsAnywhere*>(p); }
[[gnu::always_inline]] inline void store(uint32_t* p, Floats v) { *reinterpret_cast<FloatsAnywhere*>(p) = v; }
#define POL_UNROLL _Pragma("GCC unroll 8")

// How a term joins an accumulator; a NaN stays a NaN.
struct Add {
    static constexpr bool pair = false, numbers = true;
    [[gnu::always_inline]] static Floats join(Floats acc, Floats x, Floats) { return acc + x; }
};
struct Multiply {
    static constexpr bool pair = false, numbers = true;
    [[gnu::always_inline]] static Floats join(Floats acc, Floats x, Floats) { return acc * x; }
};
struct Fuse {
    static constexpr bool pair = true, numbers = true;
    [[gnu::always_inline]] static Floats join(Floats acc, Floats x, Floats y) {
#if defined(__AVX2__)
        return (Floats)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)acc);
#else
        for (int i = 0; i < kVector; ++i) acc[i] = __builtin_fmaf(x[i], y[i], acc[i]);
        return acc;
#endif
    }
};
struct Least {
    static constexpr bool pair = false, numbers = true;
    [[gnu::always_inline]] static Floats join(Floats a, Floats b, Floats) {
        const Words u = (Words)a, v = (Words)b;
        return (Floats)(a < b ? u : b < a ? v : u | v);  // equal: -0 if either is; one is NaN: so is u | v
    }
};
// Both orders of the operands give the same word but for zeros and NaNs (arithmetic/primitives.h).
struct Greatest {
    static constexpr bool pair = false, numbers = true;
    [[gnu::always_inline]] static Floats join(Floats a, Floats b, Floats) {
        const Words greatest = (Words)(a > b ? a : b) & (Words)(b > a ? b : a);
        return (Floats)(greatest | (Words)(a != a) | (Words)(b != b));
    }
};
// Joins of integers; vectors of floats hold their words.
#define POL_INTEGERS(name, type, expression)                                    \
    struct name {                                                               \
        static constexpr bool pair = false, numbers = false;                    \
        [[gnu::always_inline]] static Floats join(Floats acc, Floats x, Floats) { \
            const type a = (type)acc, b = (type)x;                              \
            return (Floats)(expression);                                        \
        }                                                                       \
    };
POL_INTEGERS(AddIntegers, Words, a + b)
POL_INTEGERS(MultiplyIntegers, Words, a* b)
POL_INTEGERS(Both, Words, a& b)
POL_INTEGERS(Either, Words, a | b)
POL_INTEGERS(LeastInteger, Integers, a < b ? a : b)
POL_INTEGERS(GreatestInteger, Integers, a > b ? a : b)
#undef POL_INTEGERS

// Calls `run` with how terms are joined and how accumulators are joined to each other.
template <class Run>
void with_join(uint8_t join, const Run& run) {
    switch (join) {
        case FADD: return run(Add{}, Add{});
        case FMUL: return run(Multiply{}, Multiply{});
        case FMAX: return run(Greatest{}, Greatest{});
        case FMIN: return run(Least{}, Least{});
        case ADD: return run(AddIntegers{}, AddIntegers{});
        case MUL: return run(MultiplyIntegers{}, MultiplyIntegers{});
        case AND: return run(Both{}, Both{});
        case OR: return run(Either{}, Either{});
        case kLeast: return run(LeastInteger{}, LeastInteger{});
        case kGreatest: return run(GreatestInteger{}, GreatestInteger{});
        default: return run(Fuse{}, Add{});
    }
}

// What an accumulator is in the output.
template <class Join>
[[gnu::always_inline]] inline uint32_t settled(uint32_t word) {
    return Join::numbers && is_nan(word) ? kNan : word;
}

// Joins `rounds` times `width` words of a row to as many accumulators.
template <class Join, int vectors>
void join_lanes(uint32_t* acc, const uint32_t* x, const uint32_t* y, int64_t rounds) {
    Floats a[vectors];
    POL_UNROLL for (int v = 0; v < vectors; ++v) a[v] = load(acc + v * kVector);
    for (int64_t k = 0; k < rounds; ++k, x += vectors * kVector, y += vectors * kVector)
        POL_UNROLL for (int v = 0; v < vectors; ++v) a[v] = Join::join(a[v], load(x + v * kVector), Join::pair ? load(y + v * kVector) : a[v]);
    POL_UNROLL for (int v = 0; v < vectors; ++v) store(acc + v * kVector, a[v]);
}

// The same for terms factor * scale * (value - mean), or (value - mean)^2; absent operands are null.
template <int vectors, bool squared, bool scaled>
void join_centered(uint32_t* acc, const uint32_t* factor, const uint32_t* scale, const uint32_t* value, uint32_t mean, int64_t rounds) {
    const Words splat = Words{} + mean;
    Floats a[vectors];
    POL_UNROLL for (int v = 0; v < vectors; ++v) a[v] = load(acc + v * kVector);
    for (int64_t k = 0; k < rounds; ++k) {
        POL_UNROLL for (int v = 0; v < vectors; ++v) {
            const int64_t at = (k * vectors + v) * kVector;
            const Floats centered = load(value + at) - (Floats)splat;
            const Floats other = squared ? centered : scaled ? load(factor + at) * load(scale + at) : load(factor + at);
            a[v] = Fuse::join(a[v], other, centered);
        }
    }
    POL_UNROLL for (int v = 0; v < vectors; ++v) store(acc + v * kVector, a[v]);
}

#if defined(__clang__)
#define POL_PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define POL_PICK(a, b, ...) __builtin_shuffle(a, b, (Words){__VA_ARGS__})
#endif

// Four words of each of two rows.
[[gnu::always_inline]] inline Floats load_halves(const uint32_t* low, const uint32_t* high) {
#if defined(__AVX2__)
    return (Floats)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps((const float*)low)), _mm_loadu_ps((const float*)high), 1);
#else
    return (Floats)Words{low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]};
#endif
}

// Words k .. k + 7 of eight rows as columns. Halves of rows are put together as they are read, which costs no shuffle.
[[gnu::always_inline]] inline void load_columns(Floats* columns, const uint32_t* const* rows, int k) {
    POL_UNROLL for (int h = 0; h < 2; ++h) {
        Floats r[4], s[4];
        POL_UNROLL for (int i = 0; i < 4; ++i) r[i] = load_halves(rows[i] + k + 4 * h, rows[i + 4] + k + 4 * h);
        POL_UNROLL for (int i = 0; i < 2; ++i) {
            s[i] = POL_PICK(r[2 * i], r[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
            s[i + 2] = POL_PICK(r[2 * i], r[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
        }
        POL_UNROLL for (int i = 0; i < 2; ++i) {
            columns[4 * h + 2 * i] = POL_PICK(s[2 * i], s[2 * i + 1], 0, 1, 8, 9, 4, 5, 12, 13);
            columns[4 * h + 2 * i + 1] = POL_PICK(s[2 * i], s[2 * i + 1], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    }
}

// Joins the halves of 32 lanes: lane l with lane l + 16, then l + 8, then l + 4. The first four words are the result.
template <class Join>
[[gnu::always_inline]] inline void join_halves(uint32_t* four, const uint32_t* lanes) {
    Floats a[2];
    POL_UNROLL for (int v = 0; v < 2; ++v) {
        const Floats high = load(lanes + 16 + v * kVector);
        a[v] = Join::join(load(lanes + v * kVector), high, high);
    }
    const Floats eight = Join::join(a[0], a[1], a[1]), high = POL_PICK(eight, eight, 4, 5, 6, 7, 4, 5, 6, 7);
    store(four, Join::join(eight, high, high));
}

#undef POL_PICK

// Joins `count` words of each of sixteen rows, in order, to one accumulator per row.
template <class Join>
void join_rows(uint32_t* acc, const uint32_t* const* x, const uint32_t* const* y, int count) {
    Floats a[kTileRows / kVector];
    POL_UNROLL for (int h = 0; h < kTileRows / kVector; ++h) a[h] = load(acc + h * kVector);
    int k = 0;
    for (; k + kVector <= count; k += kVector)
        POL_UNROLL for (int h = 0; h < kTileRows / kVector; ++h) {
            Floats s[kVector], t[kVector];
            load_columns(s, x + h * kVector, k);
            if (Join::pair) load_columns(t, y + h * kVector, k);
            POL_UNROLL for (int i = 0; i < kVector; ++i) a[h] = Join::join(a[h], s[i], Join::pair ? t[i] : a[h]);
        }
    for (; k < count; ++k)
        POL_UNROLL for (int h = 0; h < kTileRows / kVector; ++h) {
            Words s, t{};
            POL_UNROLL for (int r = 0; r < kVector; ++r) s[r] = x[h * kVector + r][k];
            if (Join::pair)
                POL_UNROLL for (int r = 0; r < kVector; ++r) t[r] = y[h * kVector + r][k];
            a[h] = Join::join(a[h], (Floats)s, Join::pair ? (Floats)t : a[h]);
        }
    POL_UNROLL for (int h = 0; h < kTileRows / kVector; ++h) store(acc + h * kVector, a[h]);
}

#undef POL_UNROLL

}  // namespace
}  // namespace pol::POL_ISA
