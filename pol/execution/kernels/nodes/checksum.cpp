// A checksum of words, at the speed of memory: it tells changes, not forgeries.
#include "nodes/nodes.h"

namespace pol::POL_ISA {
namespace {

constexpr int kSums = 128;  // side by side: several vectors, so that one multiplication doesn't wait for the last

// One word more: no two words lead from one sum to the same, nor two sums by one word.
inline uint32_t mixed(uint32_t sum, uint32_t word) { return ((sum << 13 | sum >> 19) ^ word) * 0x9e3779b1u; }

}  // namespace

uint64_t checksum(const uint32_t* words, int64_t count) {
    uint32_t sums[kSums] = {};
    int64_t i = 0;
    for (; i + kSums <= count; i += kSums)
        for (int s = 0; s < kSums; ++s) sums[s] = mixed(sums[s], words[i + s]);
    for (; i < count; ++i) sums[i % kSums] = mixed(sums[i % kSums], words[i]);
    uint64_t all = static_cast<uint64_t>(count);
    for (const uint32_t sum : sums) all = ((all << 29 | all >> 35) ^ sum) * 0x9e3779b97f4a7c15u;
    return all;
}

}  // namespace pol::POL_ISA
