#include "merkle.h"

#include <algorithm>
#include <cstring>

#include "hashing.h"
#include "native/threads.h"

namespace pol {
namespace {

constexpr unsigned kMaxDepth = 64;
constexpr unsigned kSubtreeDepth = 10;
constexpr size_t kSubtreeLeaves = size_t{1} << kSubtreeDepth;
constexpr size_t kBytesPerThread = size_t{1} << 20;  // below this a thread costs more than it saves

struct PadRoots {
    uint8_t at[kMaxDepth + 1][kHashSize];
    PadRoots() {
        const char* text = "pol/pad/1";
        hashing().keccak256(reinterpret_cast<const uint8_t*>(text), std::strlen(text), at[0]);
        for (unsigned h = 0; h < kMaxDepth; ++h) {
            uint8_t pair[2 * kHashSize];
            std::memcpy(pair, at[h], kHashSize);
            std::memcpy(pair + kHashSize, at[h], kHashSize);
            hashing().hash_pairs(pair, 1, at[h + 1]);
        }
    }
};

// Root of the subtree of PADs of a height.
const uint8_t* pad_root(unsigned height) {
    static const PadRoots roots;
    return roots.at[height];
}

// The smallest d with 2^d >= count.
unsigned tree_depth(size_t count) {
    unsigned depth = 0;
    while (depth < kMaxDepth - 1 && (size_t{1} << depth) < count) ++depth;
    return depth;
}

// Reduces `count` >= 1 nodes at height `from` to the one at height `to`, in place. `nodes` has room for one more node.
void reduce(uint8_t* nodes, size_t count, unsigned from, unsigned to) {
    for (unsigned height = from; height < to; ++height) {
        if (count % 2 == 1) std::memcpy(nodes + count++ * kHashSize, pad_root(height), kHashSize);
        count /= 2;
        hashing().hash_pairs(nodes, count, nodes);
    }
}

size_t leaf_count(size_t size) { return (size + kLeafSize - 1) / kLeafSize; }

size_t useful_threads(size_t size, size_t threads) { return std::clamp<size_t>(size / kBytesPerThread, 1, std::max<size_t>(threads, 1)); }

// Hashes leaves [first, first + count) of the data.
void hash_range(const uint8_t* data, size_t size, size_t first, size_t count, uint8_t* out) {
    const size_t whole = std::min(count, size / kLeafSize - std::min(first, size / kLeafSize));
    hashing().hash_leaves(data + first * kLeafSize, whole, out);
    if (whole == count) return;
    uint8_t last[kLeafSize] = {};
    const size_t begin = (first + whole) * kLeafSize;
    std::memcpy(last, data + begin, size - begin);
    hashing().hash_leaves(last, 1, out + whole * kHashSize);
}

// Calls body(first leaf, number of leaves) for every subtree of the data.
template <class Body>
void for_subtrees(size_t leaves, size_t threads, const Body& body) {
    const size_t subtrees = (leaves + kSubtreeLeaves - 1) / kSubtreeLeaves;
    parallel_workers(subtrees, threads, [&](TaskQueue& queue) {
        for (size_t i; queue.take(&i);) body(i * kSubtreeLeaves, std::min(kSubtreeLeaves, leaves - i * kSubtreeLeaves));
    });
}

}  // namespace

std::vector<uint8_t> hash_data_leaves(const uint8_t* data, size_t size, size_t threads) {
    const size_t leaves = leaf_count(size);
    std::vector<uint8_t> out(leaves * kHashSize);
    for_subtrees(leaves, useful_threads(size, threads),
                 [&](size_t first, size_t count) { hash_range(data, size, first, count, out.data() + first * kHashSize); });
    return out;
}

void data_tree(const uint8_t* data, size_t size, size_t threads, uint8_t* root) {
    const size_t leaves = leaf_count(size);
    const unsigned depth = tree_depth(leaves);
    const unsigned low = std::min(depth, kSubtreeDepth);
    const size_t subtrees = (leaves + kSubtreeLeaves - 1) / kSubtreeLeaves;
    pad_root(0);
    std::vector<uint8_t> roots((subtrees + 1) * kHashSize);
    for_subtrees(leaves, useful_threads(size, threads), [&](size_t first, size_t count) {
        uint8_t hashes[(kSubtreeLeaves + 1) * kHashSize];
        hash_range(data, size, first, count, hashes);
        reduce(hashes, count, 0, low);
        std::memcpy(roots.data() + first / kSubtreeLeaves * kHashSize, hashes, kHashSize);
    });
    reduce(roots.data(), subtrees, low, depth);
    std::memcpy(root, roots.data(), kHashSize);
}

void tree(const uint8_t* leaves, size_t count, uint8_t* root) {
    if (count == 0) {
        std::memcpy(root, pad_root(0), kHashSize);
        return;
    }
    std::vector<uint8_t> nodes((count + 1) * kHashSize);
    std::memcpy(nodes.data(), leaves, count * kHashSize);
    reduce(nodes.data(), count, 0, tree_depth(count));
    std::memcpy(root, nodes.data(), kHashSize);
}

std::vector<std::vector<uint8_t>> tree_levels(const uint8_t* leaves, size_t count) {
    const unsigned depth = tree_depth(count);
    std::vector<std::vector<uint8_t>> levels(depth + 1);
    levels[0].resize(kHashSize << depth);
    if (count != 0) std::memcpy(levels[0].data(), leaves, count * kHashSize);
    for (size_t i = count; i < size_t{1} << depth; ++i) std::memcpy(levels[0].data() + i * kHashSize, pad_root(0), kHashSize);
    for (unsigned h = 1; h <= depth; ++h) {
        const size_t nodes = size_t{1} << (depth - h);
        const size_t real = (count + (size_t{1} << h) - 1) >> h;
        levels[h].resize(nodes * kHashSize);
        hashing().hash_pairs(levels[h - 1].data(), real, levels[h].data());
        for (size_t i = real; i < nodes; ++i) std::memcpy(levels[h].data() + i * kHashSize, pad_root(h), kHashSize);
    }
    return levels;
}

}  // namespace pol
