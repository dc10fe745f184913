// Neighboring nodes that can be computed a few rows at a time, one node after the other: a normalization or a softmax
// reads a tensor several times, and few rows of a large one are still in the cache the second time. Every element is
// computed as before.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/descriptor.h"

namespace pol {

// Neighboring dimensions of a node that count rows; dimensions of size 1 are left out.
struct RowAxes {
    std::vector<int> axes;
    int64_t before, after;  // elements of the dimensions before them and after them
};

// An address in a tensor with rows, but for the row: a place before the rows, and one after them.
struct RowAddress {
    Affine before, after;
};

struct RowGroup {
    std::vector<size_t> nodes;
    std::vector<RowAxes> axes;  // of each of them
    std::vector<int64_t> rows;  // sizes of the dimensions, the same in all nodes
    // The rows of a chunk: a range of the dimension `cut`, of this length but for the last, and all of those after it.
    size_t cut;
    int64_t length;
    size_t place_of(size_t node) const { return static_cast<size_t>(std::lower_bound(nodes.begin(), nodes.end(), node) - nodes.begin()); }
    bool has(size_t node) const { return nodes.front() <= node && node <= nodes.back(); }
};

// What is known of a node of a step.
struct StepNode {
    const Descriptor* descriptor;
    bool needed;         // its output; the other nodes are never computed
    bool by_rows;        // its kernel is as fast on a few rows as on all
    bool kept;           // its output is a result of the step
    size_t last_reader;  // itself, if there is none
};

// Tensors of a group that is not fused have so many bytes together: less stays in the last-level cache anyway, and is
// sooner done node by node.
constexpr int64_t kLeastGroupBytes = int64_t{32} << 20;
constexpr int64_t kChunkBytes = 512 << 10;       // of all tensors of a group: a part of the second-level cache
constexpr int64_t kFusedChunkBytes = 256 << 10;  // of groups that are fused (plan/fused_rows.h)

// The first group whose first node is `first` or later, and whose tensors have at least so many bytes. Between its first
// and its last node, no needed node is left out.
std::optional<RowGroup> next_row_group(const std::vector<StepNode>& nodes, size_t first, int64_t least_bytes, int64_t chunk_bytes);

// The rows of a tensor that has the dimensions of `source`, as `operand` of `reader` reads them: of each element's own row
// only. Nothing if it reads otherwise.
std::optional<RowAddress> address_in_row(const Descriptor& reader, const RowAxes& axes, const Operand& operand, const RowAxes& source, const std::vector<int64_t>& rows);

// The node over `count` values of the dimension `cut`, the dimensions before it having one. Operands with a row address
// read a tensor that has these rows only.
Descriptor rows_of(const Descriptor& node, const RowAxes& axes, const RowGroup& group, int64_t count, const std::vector<std::optional<RowAddress>>& addresses, const std::vector<RowAxes>& sources);

}  // namespace pol
