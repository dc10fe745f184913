// The tree of docs/spec/commitments.md: depth fixed by the number of leaves, missing leaves are PAD.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pol {

constexpr size_t kHashSize = 32;
constexpr size_t kLeafSize = 256;

// Leaf hashes of `size` bytes of data, the last leaf filled with zeros. size >= 1.
std::vector<uint8_t> hash_data_leaves(const uint8_t* data, size_t size, size_t threads);
// Root over the leaf hashes of the data, without keeping them. size >= 1.
void data_tree(const uint8_t* data, size_t size, size_t threads, uint8_t* root);
// Root over `count` given leaves (hashes). No leaves give PAD.
void tree(const uint8_t* leaves, size_t count, uint8_t* root);
// All levels from the leaves up, padded: level h has 2^(d-h) hashes.
std::vector<std::vector<uint8_t>> tree_levels(const uint8_t* leaves, size_t count);

}  // namespace pol
