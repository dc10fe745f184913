// Contractions of integers that fit into signed bytes, on the integer units that multiply small matrices.
//
// Products of bytes and their sums modulo 2^32 are exact in any order. Words of x and of y are packed first, four terms
// into one word, by blocks that also say whether all of them fit. If one does not, contraction.h does the work.
#pragma once
#include "contraction.h"

namespace pol {

// sums[16][8] += a[16][32] b[32][8], spread over a warp as `mma.m16n8k32` has it: of lane 4 g + i,
//     sums 0, 1: row g, columns 2 i, 2 i + 1;  2, 3: row g + 8
//     a 0: row g, terms 4 i to 4 i + 3;  1: row g + 8;  2, 3: the same, 16 terms on
//     b 0: column g, terms 4 i to 4 i + 3;  1: 16 terms on
// For each thread of a block; on the host a lane takes what others hold from their registers.
template <int kSums, int kA, int kB>
POL_INLINE void multiply_bytes(Word (*sums)[kSums], int sum, const Word (*a)[kA], int x, const Word (*b)[kB], int y, int threads) {
#ifdef __CUDACC__
    (void)threads;
    Word* s = &sums[0][sum];
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
        : "r"(a[0][x]), "r"(a[0][x + 1]), "r"(a[0][x + 2]), "r"(a[0][x + 3]), "r"(b[0][y]), "r"(b[0][y + 1]));
#else
    POL_UNROLL for (int i = 0; i < 4; ++i) {
        asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+r"(s[i % 2 * 2]), "+r"(s[i % 2 * 2 + 1])
                     : "r"(a[0][x + i]), "r"(b[0][y + i / 2]));
    }
#endif
#else
    for (int t = 0; t < threads; ++t) {
        const int warp = t / 32 * 32, g = t % 32 / 4, i = t % 4;
        for (int s = 0; s < 4; ++s) {
            const int column = 2 * i + s % 2;  // its words are those of lanes 4 column to 4 column + 3
            for (int half = 0; half < 2; ++half) {
                for (int lane = 0; lane < 4; ++lane) {
                    const Word own = a[warp + 4 * g + lane][x + s / 2 + 2 * half], other = b[warp + 4 * column + lane][y + half];
                    const int so_far = static_cast<int>(sums[t][sum + s]);
                    sums[t][sum + s] = static_cast<Word>(__dp4a(static_cast<int>(own), static_cast<int>(other), so_far));
                }
            }
        }
    }
#endif
}

constexpr int kByteTile = 128, kByteDepth = 16, kBytePitch = kByteDepth + 4;  // rows or columns, words, words apart
constexpr int kByteThreads = 256, kWarpRows = 64, kWarpColumns = 32;
constexpr int kPiecesDown = kWarpRows / 16, kPiecesAcross = kWarpColumns / 8;
constexpr int kByteSums = kPiecesDown * kPiecesAcross * 4;

// Packs terms 4 k to 4 k + 3 of a row into word k of it; flags[block] says whether all words of the block fit.
template <class Node, bool columns>
POL_INLINE void pack(Word* POL_RESTRICT packed, Word* POL_RESTRICT flags, const Word* POL_RESTRICT source, Long step, Long block) {
    typedef typename Node::Index Index;
    constexpr int kThreads = kByteThreads;
    constexpr Index kRows = columns ? Node::kColumnCount : Node::kRowCount;
    constexpr Index kWords = (Node::kTerms + 3) / 4;
    constexpr Long kCount = Long(Node::kBatches) * kRows * kWords;
    POL_SHARED(Word, misfits, kThreads);
    POL_PHASE(t) {
        const Long place = block * kThreads + t;
        Word misfit = 0;
        if (place < kCount) {
            const Index k = Index(place % kWords) * 4, row = Index(place / kWords % kRows);
            const Index batch = Index(place / kWords / kRows);
            Word word = 0;
            POL_UNROLL for (int i = 0; i < 4; ++i) {
                if (k + i < Node::kTerms) {
                    const Word x = columns ? Node::y(source, step, batch, row, k + i) : Node::x(source, step, batch, row, k + i);
                    misfit |= x + 128 > 255u ? 1u : 0u;
                    word |= (x & 255u) << (8 * i);
                }
            }
            packed[place] = word;
        }
        misfits[t] = misfit;
    }
    for (int half = kThreads / 2; half > 0; half /= 2) {
        POL_PHASE(t) {
            if (t < half) misfits[t] |= misfits[t + half];
        }
    }
    POL_ALONE(t) {
        if (t == 0) flags[block] = misfits[0];
    }
}

// Whether a flag of any block is set; every thread of the block learns it from `shared[0]`.
POL_INLINE void gather_flags(Word* shared, const Word* POL_RESTRICT flags, Long count) {
    constexpr int kThreads = kByteThreads;
    POL_PHASE(t) {
        Word any = 0;
        for (Long i = t; i < count; i += kThreads) any |= flags[i];
        shared[t] |= any;
    }
    for (int half = kThreads / 2; half > 0; half /= 2) {
        POL_PHASE(t) {
            if (t < half) shared[t] |= shared[t + half];
        }
    }
}

template <class Node>
POL_INLINE void contract_bytes(Word* POL_RESTRICT out, const Word* POL_RESTRICT px, const Word* POL_RESTRICT py, Long block) {
    typedef typename Node::Index Index;
    constexpr int kThreads = kByteThreads;
    constexpr Index kWords = (Node::kTerms + 3) / 4;
    constexpr Index kRowTiles = (Node::kRowCount + kByteTile - 1) / kByteTile;
    constexpr Index kColumnTiles = (Node::kColumnCount + kByteTile - 1) / kByteTile;
    constexpr int kLoads = kByteTile * kByteDepth / kThreads;
    POL_SHARED(Word, xs, kByteTile * kBytePitch);
    POL_SHARED(Word, ys, kByteTile * kBytePitch);
    POL_REGISTERS(Word, sums, kByteSums);
    POL_REGISTERS(Word, a, 4 * kPiecesDown);
    POL_REGISTERS(Word, b, 2 * kPiecesAcross);
    const Index first_row = Index(block / kColumnTiles % kRowTiles) * kByteTile;
    const Index first_column = Index(block % kColumnTiles) * kByteTile;
    const Index batch = Index(block / (Long(kColumnTiles) * kRowTiles));
    const Word* x_rows = px + Long(batch) * Node::kRowCount * kWords;
    const Word* y_rows = py + Long(batch) * Node::kColumnCount * kWords;
    POL_ALONE(t) {
        POL_UNROLL for (int i = 0; i < kByteSums; ++i) { sums[POL_SLOT(t)][i] = Node::kInit; }
    }
    for (Index first = 0; first < kWords; first += kByteDepth) {
        POL_PHASE(t) {
            POL_UNROLL for (int i = 0; i < kLoads; ++i) {
                const int e = i * kThreads + t, row = e / kByteDepth, k = e % kByteDepth;
                const bool there = first + k < kWords;
                xs[row * kBytePitch + k] =
                    there && first_row + row < Node::kRowCount ? x_rows[Long(first_row + row) * kWords + first + k] : 0u;
                ys[row * kBytePitch + k] =
                    there && first_column + row < Node::kColumnCount ? y_rows[Long(first_column + row) * kWords + first + k] : 0u;
            }
        }
        // Each warp multiplies 64 rows by 32 columns, in pieces of 16 by 8 by 32 terms.
        POL_UNROLL for (int k = 0; k < kByteDepth; k += 8) {
            POL_ALONE(t) {
                const int warp = t / 32, g = t % 32 / 4, i = t % 4;
                const Word* row = xs + (warp / 4 * kWarpRows + g) * kBytePitch + k + i;
                const Word* column = ys + (warp % 4 * kWarpColumns + g) * kBytePitch + k + i;
                POL_UNROLL for (int p = 0; p < 4 * kPiecesDown; ++p) {
                    a[POL_SLOT(t)][p] = row[(p / 4 * 16 + p % 2 * 8) * kBytePitch + p % 4 / 2 * 4];
                }
                POL_UNROLL for (int p = 0; p < 2 * kPiecesAcross; ++p) {
                    b[POL_SLOT(t)][p] = column[p / 2 * 8 * kBytePitch + p % 2 * 4];
                }
            }
            POL_UNROLL for (int m = 0; m < kPiecesDown; ++m) {
                POL_UNROLL for (int n = 0; n < kPiecesAcross; ++n) {
                    multiply_bytes(sums, (m * kPiecesAcross + n) * 4, a, 4 * m, b, 2 * n, kThreads);
                }
            }
        }
        POL_PHASE(t) { (void)t; }
    }
    POL_ALONE(t) {
        const int warp = t / 32, lane = t % 32, g = lane / 4, i = lane % 4;
        POL_UNROLL for (int s = 0; s < kByteSums; ++s) {
            const int m = s / 4 / kPiecesAcross, n = s / 4 % kPiecesAcross;
            const Index row = first_row + warp / 4 * kWarpRows + 16 * m + g + s % 4 / 2 * 8;
            const Index column = first_column + warp % 4 * kWarpColumns + 8 * n + 2 * i + s % 2;
            if (row < Node::kRowCount && column < Node::kColumnCount) out[Node::place(batch, row, column)] = sums[POL_SLOT(t)][s];
        }
    }
}

}  // namespace pol
