// Multiples of points: many of one, and the sum of one multiple of each.
#pragma once
#include <algorithm>
#include <memory>

#include "curve.h"
#include "native/threads.h"

namespace pol::bn254 {

constexpr int kScalarBits = 254;

// Bits of a number, not in Montgomery form.
inline size_t digit(const uint64_t* scalar, int begin, int bits) {
    if (begin >= 256) return 0;
    uint64_t found = scalar[begin / 64] >> (begin % 64);
    if (begin % 64 + bits > 64 && begin / 64 < 3) found |= scalar[begin / 64 + 1] << (64 - begin % 64);
    return found & ((uint64_t{1} << bits) - 1);
}

// out[i] = scalars[i] times the point, by tables of its multiples for every eight bits.
template <class F>
void multiples(const Affine<F>& point, const uint64_t* scalars, size_t count, Affine<F>* out, size_t threads) {
    constexpr int kBits = 8, kWindows = (kScalarBits + kBits - 1) / kBits;
    constexpr size_t kEntries = (1 << kBits) - 1, kChunk = 512;
    std::vector<Point<F>> steps(kWindows * kEntries);
    Point<F> base = Point<F>::of(point);
    for (int w = 0; w < kWindows; ++w) {
        Point<F>* row = &steps[w * kEntries];
        row[0] = base;
        for (size_t i = 1; i < kEntries; ++i) row[i] = row[i - 1] + base;
        base = row[kEntries - 1] + base;
    }
    std::vector<Affine<F>> table(steps.size());
    to_affine(steps.data(), steps.size(), table.data());
    parallel_workers((count + kChunk - 1) / kChunk, threads, [&](TaskQueue& queue) {
        std::vector<Point<F>> sums(kChunk);
        for (size_t task; queue.take(&task);) {
            const size_t begin = task * kChunk, size = std::min(kChunk, count - begin);
            for (size_t i = 0; i < size; ++i) {
                sums[i] = {};
                for (int w = 0; w < kWindows; ++w)
                    if (const size_t d = digit(scalars + 4 * (begin + i), w * kBits, kBits)) sums[i] = sums[i] + table[w * kEntries + d - 1];
            }
            to_affine(sums.data(), size, out + begin);
        }
    });
}

// The sum of scalars[i] times points[i]: Pippenger's method, a window of bits at a time.
template <class F>
Affine<F> multiexp(const Affine<F>* points, const uint64_t* scalars, size_t count, size_t threads) {
    int bits = 3;
    while (bits < 14 && (size_t{1} << (bits + 4)) < count) ++bits;
    const int windows = (kScalarBits + bits - 1) / bits;
    std::vector<Point<F>> sums(windows);
    parallel_workers(windows, threads, [&](TaskQueue& queue) {
        std::vector<Point<F>> buckets((size_t{1} << bits) - 1);
        for (size_t w; queue.take(&w);) {
            std::fill(buckets.begin(), buckets.end(), Point<F>{});
            bool any = false;
            for (size_t i = 0; i < count; ++i)
                if (const size_t d = digit(scalars + 4 * i, static_cast<int>(w) * bits, bits)) {
                    buckets[d - 1] = buckets[d - 1] + points[i];
                    any = true;
                }
            Point<F> running = {}, sum = {};
            for (size_t b = buckets.size(); any && b-- > 0;) {
                running = running + buckets[b];
                sum = sum + running;
            }
            sums[w] = sum;
        }
    });
    Point<F> total = {};
    for (int w = windows; w-- > 0;) {
        for (int b = 0; b < bits; ++b) total = total.twice();
        total = total + sums[w];
    }
    Affine<F> result;
    to_affine(&total, 1, &result);
    return result;
}

}  // namespace pol::bn254
