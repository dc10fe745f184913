#include "plan/row_groups.h"

#include <algorithm>
#include <set>
#include <utility>

namespace pol {
namespace {

constexpr int64_t kTileRows = 16;           // rows that nodes/rows.cpp folds side by side
constexpr int64_t kLine = 16;               // words; rows closer than that share cache lines
constexpr size_t kMostNodes = 64;

int64_t product(const std::vector<int64_t>& sizes, size_t begin, size_t end) {
    int64_t result = 1;
    for (size_t i = begin; i < end; ++i) result *= sizes[i];
    return result;
}

std::vector<int> long_dimensions(const Descriptor& node) {
    std::vector<int> found;
    for (size_t d = 0; d < node.dims.size(); ++d)
        if (node.dims[d] > 1) found.push_back(static_cast<int>(d));
    return found;
}

// `count` of the node's long dimensions from the one at `place` on.
RowAxes axes_at(const Descriptor& node, const std::vector<int>& dimensions, size_t place, size_t count) {
    RowAxes result{{dimensions.begin() + place, dimensions.begin() + place + count}, 1, 1};
    for (size_t i = 0; i < dimensions.size(); ++i)
        if (i < place)
            result.before *= node.dims[dimensions[i]];
        else if (i >= place + count)
            result.after *= node.dims[dimensions[i]];
    return result;
}

std::vector<int64_t> sizes_of(const Descriptor& node, const RowAxes& axes) {
    std::vector<int64_t> sizes;
    for (const int axis : axes.axes) sizes.push_back(node.dims[axis]);
    return sizes;
}

using Tensor = std::pair<uint8_t, uint32_t>;

Tensor source_of(const Operand& operand) { return {operand.source, operand.index}; }

// A group that grows node by node.
struct Growing {
    const std::vector<StepNode>& nodes;
    RowGroup group;
    std::set<Tensor> tensors;  // read or computed

    // The row axes with which the node can join; it has to have a tensor in common with those that are there.
    std::optional<RowAxes> axes_to_join(size_t number) const {
        const Descriptor& node = *nodes[number].descriptor;
        if (!nodes[number].by_rows) return std::nullopt;
        const bool related = std::any_of(node.operands.begin(), node.operands.end(), [&](const Operand& operand) { return tensors.count(source_of(operand)) > 0; });
        if (!related && !group.nodes.empty()) return std::nullopt;
        const std::vector<int> dimensions = long_dimensions(node);
        for (size_t place = 0; place + group.rows.size() <= dimensions.size(); ++place) {
            const RowAxes axes = axes_at(node, dimensions, place, group.rows.size());
            if (sizes_of(node, axes) == group.rows && reads_rows(node, axes)) return axes;
        }
        return std::nullopt;
    }

    bool reads_rows(const Descriptor& node, const RowAxes& axes) const {
        return std::all_of(node.operands.begin(), node.operands.end(), [&](const Operand& operand) {
            if (operand.source == kNode && !group.nodes.empty() && group.has(operand.index))
                return address_in_row(node, axes, operand, group.axes[group.place_of(operand.index)], group.rows).has_value();
            // Words of neighboring rows side by side: a few rows would be little of each cache line.
            const int64_t stride = operand.address.strides[1 + axes.axes.back()];
            return stride == 0 || stride >= kLine || operand.numel <= kLine * product(group.rows, 0, group.rows.size());
        });
    }

    void add(size_t number, const RowAxes& axes) {
        group.nodes.push_back(number);
        group.axes.push_back(axes);
        for (const Operand& operand : nodes[number].descriptor->operands) tensors.insert(source_of(operand));
        tensors.insert({kNode, static_cast<uint32_t>(number)});
    }

    // What is needed later has its rows side by side; nodes from the first one on that has not do not belong to the
    // group.
    void trim() {
        for (size_t i = 0; i < group.nodes.size(); ++i) {
            const StepNode& node = nodes[group.nodes[i]];
            if (group.axes[i].before == 1 || !(node.kept || node.last_reader > group.nodes.back())) continue;
            group.nodes.resize(i);
            group.axes.resize(i);
            i = static_cast<size_t>(-1);
        }
    }

    // Chooses how many rows a chunk has; false if that is all of them, or if the tensors have less than so many bytes.
    bool cut(int64_t least_bytes, int64_t chunk_bytes) {
        const int64_t all = product(group.rows, 0, group.rows.size());
        int64_t words = 0;
        std::set<Tensor> counted;
        for (const size_t number : group.nodes) {
            const Descriptor& node = *nodes[number].descriptor;
            if (node.numel >= all) words += node.numel;
            for (const Operand& operand : node.operands)
                if (operand.numel >= all && !(operand.source == kNode && group.has(operand.index)) && counted.insert(source_of(operand)).second)
                    words += operand.numel;
        }
        int64_t wanted = std::max<int64_t>(1, chunk_bytes / 4 * all / std::max<int64_t>(words, 1));
        if (wanted > kTileRows) wanted = wanted / kTileRows * kTileRows;
        if (2 * wanted > all || words * 4 < least_bytes) return false;
        group.cut = group.rows.size() - 1;
        int64_t inner = 1;
        while (group.cut > 0 && inner * group.rows[group.cut] <= wanted) inner *= group.rows[group.cut--];
        const int64_t size = group.rows[group.cut], longest = std::clamp<int64_t>(wanted / inner, 1, size);
        const int64_t pieces = (size + longest - 1) / longest;
        group.length = (size + pieces - 1) / pieces;
        return true;
    }
};

RowGroup group_from(const std::vector<StepNode>& nodes, size_t first, const RowAxes& axes, int64_t least_bytes, int64_t chunk_bytes) {
    Growing growing{nodes, {{}, {}, sizes_of(*nodes[first].descriptor, axes), 0, 0}, {}};
    if (!growing.reads_rows(*nodes[first].descriptor, axes)) return growing.group;
    growing.add(first, axes);
    for (size_t next = first + 1; next < nodes.size() && growing.group.nodes.size() < kMostNodes; ++next) {
        if (!nodes[next].needed) continue;
        const std::optional<RowAxes> joined = growing.axes_to_join(next);
        if (!joined) break;
        growing.add(next, *joined);
    }
    growing.trim();
    if (growing.group.nodes.size() < 2 || !growing.cut(least_bytes, chunk_bytes)) growing.group.nodes.clear();
    return growing.group;
}

}  // namespace

std::optional<RowAddress> address_in_row(const Descriptor& reader, const RowAxes& axes, const Operand& operand, const RowAxes& source, const std::vector<int64_t>& rows) {
    const Affine& address = operand.address;
    const int64_t period = source.after * product(rows, 0, rows.size());
    if (address.strides[0] != 0 || address.base < 0) return std::nullopt;
    Affine before{}, after{};
    before.base = address.base / period;
    after.base = address.base % period;
    int64_t most_after = after.base;  // if no bound cuts it
    const auto split = [&](size_t coordinate, int64_t size) {
        const int64_t stride = address.strides[coordinate];
        if (stride < 0 || size == 1) return size == 1;
        before.strides[coordinate] = stride / period;
        after.strides[coordinate] = stride % period;
        most_after += after.strides[coordinate] * (size - 1);
        return true;
    };
    std::vector<int64_t> sizes{reader.dims};
    sizes.insert(sizes.end(), reader.fold.begin(), reader.fold.end());
    int64_t row_stride = source.after;
    for (size_t r = rows.size(); r-- > 0; row_stride *= rows[r]) {
        if (address.strides[1 + axes.axes[r]] != row_stride) return std::nullopt;
        sizes[axes.axes[r]] = 1;
    }
    for (size_t i = 0; i < sizes.size(); ++i)
        if (!split(1 + i, sizes[i])) return std::nullopt;
    if (operand.gather >= 0) {
        if (operand.gather_stride < 0 || operand.gather_stride >= period) return std::nullopt;
        most_after += operand.gather_stride * std::max<int64_t>(operand.gather_limit - 1, 0);
    }
    // A bound of the very same form keeps the address in the row too.
    const auto is_after = [&](const Bound& bound) {
        return bound.limit <= source.after && bound.affine.base == after.base && std::equal(after.strides, after.strides + kMaxCoordinates, bound.affine.strides);
    };
    const bool bounded = operand.gather < 0 && std::any_of(operand.bounds.begin(), operand.bounds.end(), is_after);
    if (most_after >= source.after && !bounded) return std::nullopt;
    return RowAddress{before, after};
}

Descriptor rows_of(const Descriptor& node, const RowAxes& axes, const RowGroup& group, int64_t count, const std::vector<std::optional<RowAddress>>& addresses, const std::vector<RowAxes>& sources) {
    Descriptor part = node;
    for (size_t r = 0; r <= group.cut; ++r) part.dims[axes.axes[r]] = r < group.cut ? 1 : count;
    part.numel = 1;
    for (const int64_t size : part.dims) part.numel *= size;
    const int64_t rows = count * product(group.rows, group.cut + 1, group.rows.size());
    for (size_t o = 0; o < part.operands.size(); ++o) {
        if (!addresses[o]) continue;
        Operand& operand = part.operands[o];
        const int64_t period = rows * sources[o].after;
        operand.numel = sources[o].before * period;
        operand.address.base = addresses[o]->before.base * period + addresses[o]->after.base;
        for (size_t i = 1; i < kMaxCoordinates; ++i) operand.address.strides[i] = addresses[o]->before.strides[i] * period + addresses[o]->after.strides[i];
        int64_t stride = sources[o].after;
        for (size_t r = group.rows.size(); r-- > group.cut; stride *= group.rows[r]) operand.address.strides[1 + axes.axes[r]] = stride;
    }
    return part;
}

std::optional<RowGroup> next_row_group(const std::vector<StepNode>& nodes, size_t first, int64_t least_bytes, int64_t chunk_bytes) {
    for (; first < nodes.size(); ++first) {
        if (!nodes[first].needed || !nodes[first].by_rows) continue;
        const std::vector<int> dimensions = long_dimensions(*nodes[first].descriptor);
        RowGroup best{};
        for (size_t place = 0; place < dimensions.size(); ++place)
            for (size_t count = dimensions.size() - place; count > 0; --count) {
                const RowGroup found = group_from(nodes, first, axes_at(*nodes[first].descriptor, dimensions, place, count), least_bytes, chunk_bytes);
                if (found.nodes.size() > best.nodes.size()) best = found;
            }
        if (!best.nodes.empty()) return best;
    }
    return std::nullopt;
}

}  // namespace pol
