// Keccak-256 with the original padding byte 0x01. Several messages of one length are hashed side by side, one per
// vector lane.
#include "hashing.h"

#include <cstring>

namespace pol::POL_ISA {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are hashed as they lie in memory");

constexpr size_t kRateWords = kRate / 8;
constexpr size_t kHash = 32;

constexpr uint64_t kRoundConstants[24] = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b, 0x0000000080000001,
    0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088, 0x0000000080008009, 0x000000008000000a,
    0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080,
    0x000000000000800a, 0x800000008000000a, 0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008};

#if defined(__AVX512F__)
constexpr size_t kLanes = 8;
#elif defined(__AVX2__)
constexpr size_t kLanes = 4;
#else
constexpr size_t kLanes = 2;
#endif
typedef uint64_t Vector __attribute__((vector_size(8 * kLanes)));

template <int n, class T>
inline T rotate(T x) {
    return (x << n) | (x >> (64 - n));
}

// The permutation on 25 words; T is a word or a vector of words.
template <class T>
inline __attribute__((always_inline)) void permute(T a[25]) {
    for (int round = 0; round < 24; ++round) {
        T c0 = a[0] ^ a[5] ^ a[10] ^ a[15] ^ a[20];
        T c1 = a[1] ^ a[6] ^ a[11] ^ a[16] ^ a[21];
        T c2 = a[2] ^ a[7] ^ a[12] ^ a[17] ^ a[22];
        T c3 = a[3] ^ a[8] ^ a[13] ^ a[18] ^ a[23];
        T c4 = a[4] ^ a[9] ^ a[14] ^ a[19] ^ a[24];
        T d0 = c4 ^ rotate<1>(c1), d1 = c0 ^ rotate<1>(c2), d2 = c1 ^ rotate<1>(c3);
        T d3 = c2 ^ rotate<1>(c4), d4 = c3 ^ rotate<1>(c0);

        T b0 = a[0] ^ d0, b1 = rotate<44>(a[6] ^ d1), b2 = rotate<43>(a[12] ^ d2);
        T b3 = rotate<21>(a[18] ^ d3), b4 = rotate<14>(a[24] ^ d4);
        T b5 = rotate<28>(a[3] ^ d3), b6 = rotate<20>(a[9] ^ d4), b7 = rotate<3>(a[10] ^ d0);
        T b8 = rotate<45>(a[16] ^ d1), b9 = rotate<61>(a[22] ^ d2);
        T b10 = rotate<1>(a[1] ^ d1), b11 = rotate<6>(a[7] ^ d2), b12 = rotate<25>(a[13] ^ d3);
        T b13 = rotate<8>(a[19] ^ d4), b14 = rotate<18>(a[20] ^ d0);
        T b15 = rotate<27>(a[4] ^ d4), b16 = rotate<36>(a[5] ^ d0), b17 = rotate<10>(a[11] ^ d1);
        T b18 = rotate<15>(a[17] ^ d2), b19 = rotate<56>(a[23] ^ d3);
        T b20 = rotate<62>(a[2] ^ d2), b21 = rotate<55>(a[8] ^ d3), b22 = rotate<39>(a[14] ^ d4);
        T b23 = rotate<41>(a[15] ^ d0), b24 = rotate<2>(a[21] ^ d1);

        a[0] = b0 ^ (~b1 & b2) ^ kRoundConstants[round];
        a[1] = b1 ^ (~b2 & b3), a[2] = b2 ^ (~b3 & b4), a[3] = b3 ^ (~b4 & b0), a[4] = b4 ^ (~b0 & b1);
        a[5] = b5 ^ (~b6 & b7), a[6] = b6 ^ (~b7 & b8), a[7] = b7 ^ (~b8 & b9), a[8] = b8 ^ (~b9 & b5);
        a[9] = b9 ^ (~b5 & b6);
        a[10] = b10 ^ (~b11 & b12), a[11] = b11 ^ (~b12 & b13), a[12] = b12 ^ (~b13 & b14);
        a[13] = b13 ^ (~b14 & b10), a[14] = b14 ^ (~b10 & b11);
        a[15] = b15 ^ (~b16 & b17), a[16] = b16 ^ (~b17 & b18), a[17] = b17 ^ (~b18 & b19);
        a[18] = b18 ^ (~b19 & b15), a[19] = b19 ^ (~b15 & b16);
        a[20] = b20 ^ (~b21 & b22), a[21] = b21 ^ (~b22 & b23), a[22] = b22 ^ (~b23 & b24);
        a[23] = b23 ^ (~b24 & b20), a[24] = b24 ^ (~b20 & b21);
    }
}

// Hashes `tag || body_i` for kLanes bodies of `size` bytes, `stride` bytes apart. `size` is a constant at every call.
inline __attribute__((always_inline)) void hash_tagged_lanes(uint8_t tag, const uint8_t* bodies, size_t size, uint8_t* out) {
    constexpr size_t max_blocks = 2;
    const size_t blocks = (size + 1) / kRate + 1;
    const size_t words = blocks * kRateWords;
    alignas(64) uint64_t message[max_blocks * kRateWords][kLanes];
    for (size_t lane = 0; lane < kLanes; ++lane) {
        const uint8_t* body = bodies + lane * size;
        uint64_t word;
        std::memcpy(&word, body, 8);
        message[0][lane] = word << 8 | tag;
        const size_t whole = (size + 1) / 8;  // words filled by tag and body; the body is a multiple of 8 long, so one byte is left
        for (size_t w = 1; w < whole; ++w) {
            std::memcpy(&word, body + 8 * w - 1, 8);
            message[w][lane] = word;
        }
        message[whole][lane] = body[size - 1] | 0x0100;
        for (size_t w = whole + 1; w < words; ++w) message[w][lane] = 0;
        message[words - 1][lane] |= 0x8000000000000000;
    }
    Vector state[25] = {};
    for (size_t block = 0; block < blocks; ++block) {
        for (size_t w = 0; w < kRateWords; ++w) {
            Vector word;
            std::memcpy(&word, message[block * kRateWords + w], sizeof word);
            state[w] ^= word;
        }
        permute(state);
    }
    for (size_t w = 0; w < kHash / 8; ++w)
        for (size_t lane = 0; lane < kLanes; ++lane) {
            const uint64_t word = state[w][lane];
            std::memcpy(out + lane * kHash + 8 * w, &word, 8);
        }
}

void absorb(uint64_t state[25], const uint8_t* data, size_t blocks) {
    uint64_t word;
    for (; blocks > 0; data += kRate, --blocks) {
        for (size_t w = 0; w < kRateWords; ++w) {
            std::memcpy(&word, data + 8 * w, 8);
            state[w] ^= word;
        }
        permute(state);
    }
}

void keccak256(const uint8_t* message, size_t size, uint8_t* out) {
    uint64_t state[25] = {};
    const size_t whole = size / kRate * kRate;
    absorb(state, message, size / kRate);
    uint8_t last[kRate] = {};
    if (size != whole) std::memcpy(last, message + whole, size - whole);
    last[size - whole] = 0x01;
    last[kRate - 1] |= 0x80;
    absorb(state, last, 1);
    std::memcpy(out, state, kHash);
}

// Hashes `count` bodies of `size` bytes lying one after the other. Outputs may overwrite bodies that were already read.
template <size_t size>
void hash_tagged(uint8_t tag, const uint8_t* bodies, size_t count, uint8_t* out) {
    size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) hash_tagged_lanes(tag, bodies + i * size, size, out + i * kHash);
    const size_t left = count - i;
    if (left == 0) return;
    if (left == 1) {
        uint8_t message[1 + size];
        message[0] = tag;
        std::memcpy(message + 1, bodies + i * size, size);
        keccak256(message, sizeof message, out + i * kHash);
        return;
    }
    uint8_t padded[kLanes * size] = {};
    uint8_t hashes[kLanes * kHash];
    std::memcpy(padded, bodies + i * size, left * size);
    hash_tagged_lanes(tag, padded, size, hashes);
    std::memcpy(out + i * kHash, hashes, left * kHash);
}

void hash_leaves(const uint8_t* leaves, size_t count, uint8_t* out) { hash_tagged<256>(0x00, leaves, count, out); }

void hash_pairs(const uint8_t* hashes, size_t count, uint8_t* out) { hash_tagged<64>(0x01, hashes, count, out); }

}  // namespace

extern const Hashing hashing;
const Hashing hashing = {hash_leaves, hash_pairs, absorb, keccak256};

}  // namespace pol::POL_ISA
