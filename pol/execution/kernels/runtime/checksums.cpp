#include "runtime/checksums.h"

#include <algorithm>

#include "native/threads.h"
#include "nodes/kernels.h"
#include "runtime/thread_memory.h"

namespace pol {
namespace {

constexpr int64_t kBlock = 1 << 15;  // words

}  // namespace

std::vector<uint64_t> checksums(const std::vector<Words>& arrays, size_t threads) {
    struct Block {
        const uint32_t* words;
        int64_t count;
        uint64_t sum;
    };
    std::vector<Block> blocks;
    int64_t words = 0;
    for (const Words& array : arrays) {
        for (int64_t at = 0; at < array.size; at += kBlock) blocks.push_back({array.data + at, std::min(kBlock, array.size - at), 0});
        words += array.size;
    }
    parallel_workers(blocks.size(), threads_for(static_cast<double>(words), threads), [&](TaskQueue& queue) {
        for (size_t b; queue.take(&b);) blocks[b].sum = kernels().checksum(blocks[b].words, blocks[b].count);
    });
    std::vector<uint64_t> sums;
    const Block* block = blocks.data();
    for (const Words& array : arrays) {
        uint64_t sum = static_cast<uint64_t>(array.size);
        for (int64_t at = 0; at < array.size; at += kBlock) sum = ((sum << 31 | sum >> 33) ^ (block++)->sum) * 0x9e3779b97f4a7c15u;
        sums.push_back(sum);
    }
    return sums;
}

}  // namespace pol
