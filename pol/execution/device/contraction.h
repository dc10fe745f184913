// Contractions: every element is a fold of products of a word of x and a word of y, terms in order, each rounded once.
//
// A block computes a tile of rows and columns, a thread a part of it in registers. Tiles of x and y lie in shared
// memory, twice: while one is multiplied, the next one is read. Terms are neither split nor reordered, so the shape of
// a tile changes no bit. `Node` says what the words of a row and of a column are (contraction_source.py).
#pragma once
#include "words.h"

namespace pol {

// acc = FFMA(x, y, acc); a NaN is made canonical when it is stored.
struct FloatProducts {
    POL_INLINE Word join(Word x, Word y, Word sum) { return ffma<true>(x, y, sum); }
    POL_INLINE Word result(Word sum) { return is_nan(sum) ? kNan : sum; }
};

// acc = ADD(acc, MUL(x, y)).
struct IntegerProducts {
    POL_INLINE Word join(Word x, Word y, Word sum) { return add(sum, mul(x, y)); }
    POL_INLINE Word result(Word sum) { return sum; }
};

// The part of a tile that one thread multiplies: `kPart` words, in runs of four that lie `kSize / (kPart / 4)` apart.
template <int kPart, int kSize>
POL_INLINE int part_place(int thread, int number) {
    return (number / 4) * (kSize / (kPart / 4)) + thread * 4 + number % 4;
}

template <class Node, class Products, int kRows, int kColumns, int kDepth, int kPart>
POL_INLINE void contract(Word* POL_RESTRICT out, const Word* POL_RESTRICT sx, const Word* POL_RESTRICT sy, Long step, Long block) {
    typedef typename Node::Index Index;
    constexpr int kAcross = kColumns / kPart, kThreads = kRows / kPart * kAcross;
    constexpr int kRowPitch = kRows + 4, kColumnPitch = kColumns + 4;  // multiples of 16 bytes, on other banks
    constexpr int kRowLoads = kRows * kDepth / kThreads, kColumnLoads = kColumns * kDepth / kThreads;
    constexpr Index kRowTiles = (Node::kRowCount + kRows - 1) / kRows;
    constexpr Index kColumnTiles = (Node::kColumnCount + kColumns - 1) / kColumns;
    // Nothing is checked that tiles of this shape can't miss.
    constexpr bool kEvenRows = Node::kRowCount % kRows == 0, kEvenColumns = Node::kColumnCount % kColumns == 0;
    constexpr bool kEven = Node::kTerms % kDepth == 0;
    POL_SHARED(Word, xs, 2 * kDepth * kRowPitch);
    POL_SHARED(Word, ys, 2 * kDepth * kColumnPitch);
    POL_REGISTERS(Word, sums, kPart * kPart);
    const Index first_row = Index(block / kColumnTiles % kRowTiles) * kRows;
    const Index first_column = Index(block % kColumnTiles) * kColumns;
    const Index batch = Index(block / (Long(kColumnTiles) * kRowTiles));

    const auto x_place = [](int e, int& row, int& depth) {
        row = Node::kRowsAlongFold ? e / kDepth : e % kRows;
        depth = Node::kRowsAlongFold ? e % kDepth : e / kRows;
    };
    const auto y_place = [](int e, int& column, int& depth) {
        column = Node::kColumnsAlongFold ? e / kDepth : e % kColumns;
        depth = Node::kColumnsAlongFold ? e % kDepth : e / kColumns;
    };
    const auto read = [&](int t, Index k, Word* x, Word* y) {
        int place, depth;
        POL_UNROLL for (int i = 0; i < kRowLoads; ++i) {
            x_place(i * kThreads + t, place, depth);
            const bool there = (kEvenRows || first_row + place < Node::kRowCount) && (kEven || k + depth < Node::kTerms);
            x[i] = there ? Node::x(sx, step, batch, first_row + place, k + depth) : 0u;
        }
        POL_UNROLL for (int i = 0; i < kColumnLoads; ++i) {
            y_place(i * kThreads + t, place, depth);
            const bool there =
                (kEvenColumns || first_column + place < Node::kColumnCount) && (kEven || k + depth < Node::kTerms);
            y[i] = there ? Node::y(sy, step, batch, first_column + place, k + depth) : 0u;
        }
    };
    const auto store = [&](int t, int half, const Word* x, const Word* y) {
        int place, depth;
        POL_UNROLL for (int i = 0; i < kRowLoads; ++i) {
            x_place(i * kThreads + t, place, depth);
            xs[(half * kDepth + depth) * kRowPitch + place] = x[i];
        }
        POL_UNROLL for (int i = 0; i < kColumnLoads; ++i) {
            y_place(i * kThreads + t, place, depth);
            ys[(half * kDepth + depth) * kColumnPitch + place] = y[i];
        }
    };
    const auto multiply = [&](int t, int line) {
        Word x[kPart], y[kPart];
        POL_UNROLL for (int i = 0; i < kPart; i += 4) {
            const Quad a = *reinterpret_cast<const Quad*>(xs + line * kRowPitch + part_place<kPart, kRows>(t / kAcross, i));
            const Quad b = *reinterpret_cast<const Quad*>(ys + line * kColumnPitch + part_place<kPart, kColumns>(t % kAcross, i));
            POL_UNROLL for (int j = 0; j < 4; ++j) {
                x[i + j] = a.word[j];
                y[i + j] = b.word[j];
            }
        }
        POL_UNROLL for (int i = 0; i < kPart; ++i) {
            POL_UNROLL for (int j = 0; j < kPart; ++j) {
                Word& sum = sums[POL_SLOT(t)][i * kPart + j];
                sum = Products::join(x[i], y[j], sum);
            }
        }
    };

    POL_PHASE(t) {
        POL_UNROLL for (int i = 0; i < kPart * kPart; ++i) { sums[POL_SLOT(t)][i] = Node::kInit; }
        Word x[kRowLoads], y[kColumnLoads];
        read(t, 0, x, y);
        store(t, 0, x, y);
    }
    // Terms that don't exist are left out: adding a zero would change the sign of -0.
    constexpr int kRest = int(Node::kTerms % kDepth);
    constexpr Index kWhole = Node::kTerms - kRest;
    // In a loop of one turn the compiler would load all lines first, into more registers than there are.
    constexpr int kLines = kWhole > kDepth ? kDepth : kDepth / 2;
    int half = 0;
    for (Index k = 0; k < kWhole; k += kDepth) {
        POL_PHASE(t) {
            const bool more = kRest != 0 || k + kDepth < kWhole;
            Word x[kRowLoads], y[kColumnLoads];
            if (more) read(t, k + kDepth, x, y);
            POL_UNROLL_BY(kLines) for (int depth = 0; depth < kDepth; ++depth) { multiply(t, half * kDepth + depth); }
            if (more) store(t, 1 - half, x, y);
        }
        half = 1 - half;
    }
    if (kRest != 0) {
        POL_PHASE(t) {
            for (int depth = 0; depth < kRest; ++depth) { multiply(t, half * kDepth + depth); }
        }
    }
    POL_ALONE(t) {
        POL_UNROLL for (int i = 0; i < kPart; ++i) {
            const Index row = first_row + part_place<kPart, kRows>(t / kAcross, i);
            POL_UNROLL for (int j = 0; j < kPart; ++j) {
                const Index column = first_column + part_place<kPart, kColumns>(t % kAcross, j);
                if ((kEvenRows || row < Node::kRowCount) && (kEvenColumns || column < Node::kColumnCount)) {
                    out[Node::place(batch, row, column)] = Products::result(sums[POL_SLOT(t)][i * kPart + j]);
                }
            }
        }
    }
}

}  // namespace pol
