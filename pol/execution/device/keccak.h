// keccak-256 of leaves and inner nodes, and trees of them (docs/spec/commitments.md, "Tree" and "Tensor").
#pragma once
#include "threads.h"

namespace pol {

constexpr int kHashWords = 8, kLeafWords = 64, kSubtree = 256, kSubtreeDepth = 8;

POL_INLINE Wide rotated(Wide x, int count) { return count == 0 ? x : x << count | x >> (64 - count); }

// Constants of the rounds: memory, since rounds are a loop.
POL_CONSTANT(Wide, kRound, 24) = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b,
    0x0000000080000001, 0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088,
    0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b, 0x8000000000008089,
    0x8000000000008003, 0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008};

// The permutation keccak-f[1600], FIPS 202, section 3; lane (x, y) is a[x + 5 y].
POL_INLINE void permute(Wide* a) {
    constexpr int kTurn[25] = {0,  1,  62, 28, 27, 36, 44, 6,  55, 20, 3,  10, 43,
                               25, 39, 41, 45, 15, 21, 8,  18, 2,  61, 56, 14};
    POL_UNROLL_FEW for (int round = 0; round < 24; ++round) {
        Wide parity[5], moved[25];
        POL_UNROLL for (int x = 0; x < 5; ++x) { parity[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20]; }
        POL_UNROLL for (int x = 0; x < 5; ++x) {
            const Wide mix = parity[(x + 4) % 5] ^ rotated(parity[(x + 1) % 5], 1);
            POL_UNROLL for (int y = 0; y < 5; ++y) {
                moved[y + 5 * ((2 * x + 3 * y) % 5)] = rotated(a[x + 5 * y] ^ mix, kTurn[x + 5 * y]);
            }
        }
        POL_UNROLL for (int y = 0; y < 5; ++y) {
            POL_UNROLL for (int x = 0; x < 5; ++x) {
                a[x + 5 * y] = moved[x + 5 * y] ^ (~moved[(x + 1) % 5 + 5 * y] & moved[(x + 2) % 5 + 5 * y]);
            }
        }
        a[0] ^= kRound[round];
    }
}

POL_INLINE void squeeze(const Wide* a, Word* hash) {
    POL_UNROLL for (int i = 0; i < 4; ++i) {
        hash[2 * i] = Word(a[i]);
        hash[2 * i + 1] = Word(a[i] >> 32);
    }
}

// Words 2 i and 2 i + 1 of a leaf. Of a whole leaf, which lies at a multiple of 16 bytes, four words are one load; of
// any other, words from `there` on are zeros.
template <bool whole>
POL_INLINE Wide pair_of(const Word* data, int there, int i) {
    if (whole) {
        const Quad four = reinterpret_cast<const Quad*>(data)[i / 2];
        return Wide{four.word[i % 2 * 2 + 1]} << 32 | four.word[i % 2 * 2];
    }
    const Wide low = 2 * i < there ? data[2 * i] : 0, high = 2 * i + 1 < there ? data[2 * i + 1] : 0;
    return high << 32 | low;
}

// Lanes of a block that begin with lane `first` of the leaf; `carried` is the byte before.
template <bool whole, int first, int count>
POL_INLINE void absorb(Wide* a, const Word* data, int there, Wide& carried) {
    POL_UNROLL for (int i = 0; i < count; ++i) {
        const Wide pair = pair_of<whole>(data, there, first + i);
        a[i] ^= pair << 8 | carried;
        carried = pair >> 56;
    }
}

// H(00 || leaf), the leaf being words from `data` on; words from `there` on are zeros.
POL_INLINE void hash_leaf(const Word* data, Long there, Word* hash) {
    Wide a[25] = {};
    Wide carried = 0;
    const int words = int(there < kLeafWords ? there : kLeafWords);
    const bool whole = words == kLeafWords && reinterpret_cast<Wide>(data) % 16 == 0;
    if (whole) absorb<true, 0, 17>(a, data, words, carried);
    else absorb<false, 0, 17>(a, data, words, carried);
    permute(a);
    if (whole) absorb<true, 17, 15>(a, data, words, carried);
    else absorb<false, 17, 15>(a, data, words, carried);
    a[15] ^= carried | 0x100;
    a[16] ^= 0x8000000000000000;
    permute(a);
    squeeze(a, hash);
}

// H(01 || left || right).
POL_INLINE void hash_pair(const Word* left, const Word* right, Word* hash) {
    Wide a[25] = {};
    Wide carried = 1;
    POL_UNROLL for (int i = 0; i < 8; ++i) {
        const Word* half = i < 4 ? left : right;
        const Wide pair = Wide{half[2 * (i % 4) + 1]} << 32 | half[2 * (i % 4)];
        a[i] = pair << 8 | carried;
        carried = pair >> 56;
    }
    a[8] = carried | 0x100;
    a[16] = 0x8000000000000000;
    permute(a);
    squeeze(a, hash);
}

// Reduces each run of `kSubtree` nodes to one, or all to the root if there are fewer. Nodes are leaves of `number`
// words of data, or `number` hashes. pads[h] is what stands for a missing node h levels up.
template <bool leaves>
POL_INLINE void hash_subtrees(Word* out, const Word* data, const Word* pads, Long number, Long block) {
    constexpr int kThreads = kSubtree;
    POL_SHARED(Word, nodes, kSubtree* kHashWords);
    Long count = leaves ? (number + kLeafWords - 1) / kLeafWords : number;
    int levels = 0;
    while (levels < kSubtreeDepth && (Long{1} << levels) < count) ++levels;
    POL_PHASE(t) {
        const Long place = block * kSubtree + t;
        if (place < count) {
            Word hash[kHashWords];
            if (leaves) {
                hash_leaf(data + place * kLeafWords, number - place * kLeafWords, hash);
            } else {
                POL_UNROLL for (int i = 0; i < kHashWords; ++i) { hash[i] = data[place * kHashWords + i]; }
            }
            POL_UNROLL for (int i = 0; i < kHashWords; ++i) { nodes[t * kHashWords + i] = hash[i]; }
        }
    }
    for (int level = 0; level < levels; ++level) {
        const int spread = 1 << level;  // nodes of this level lie this far apart
        const Long at = block * (kSubtree >> level);
        POL_PHASE(t) {
            const Long left = at + 2 * t;
            if (2 * t < kSubtree >> level && left < count) {
                Word* own = nodes + 2 * t * spread * kHashWords;
                const Word* right = left + 1 < count ? own + spread * kHashWords : pads + level * kHashWords;
                Word hash[kHashWords];
                hash_pair(own, right, hash);
                POL_UNROLL for (int i = 0; i < kHashWords; ++i) { own[i] = hash[i]; }
            }
        }
        count = (count + 1) / 2;
    }
    POL_ALONE(t) {
        if (t < kHashWords) out[block * kHashWords + t] = nodes[t];
    }
}

}  // namespace pol
