#include "plan/plan.h"

#include <algorithm>

namespace pol {
namespace {

// Whether coordinates i and i + 1 act as the one coordinate i * size + (i + 1) in every form.
bool mergeable(const std::vector<Affine>& affines, int outer, int inner, int64_t size) {
    return std::all_of(affines.begin(), affines.end(), [&](const Affine& affine) {
        int64_t scaled;
        return !__builtin_mul_overflow(affine.strides[inner], size, &scaled) && affine.strides[outer] == scaled;
    });
}

// A run of merged dimensions: its size and the coordinate whose strides it has.
struct Merged {
    int64_t size;
    int coordinate;
};

std::vector<Merged> merge(const std::vector<Affine>& affines, const std::vector<int64_t>& dims, int first) {
    std::vector<Merged> merged;
    for (size_t i = 0; i < dims.size(); ++i) {
        const int coordinate = first + static_cast<int>(i);
        if (dims[i] == 1) continue;
        if (!merged.empty() && mergeable(affines, merged.back().coordinate, coordinate, dims[i]))
            merged.back() = {merged.back().size * dims[i], coordinate};
        else
            merged.push_back({dims[i], coordinate});
    }
    if (merged.empty()) merged.push_back({1, -1});
    return merged;
}

}  // namespace

PlannedNode::PlannedNode(const Descriptor& descriptor) {
    for (const Operand& operand : descriptor.operands) {
        affines_.push_back(operand.address);
        for (const Bound& bound : operand.bounds) affines_.push_back(bound.affine);
    }
    // A coordinate is a form too: its own.
    for (int i = 0; i < 1 + static_cast<int>(descriptor.dims.size() + descriptor.fold.size()); ++i)
        if (std::any_of(descriptor.inputs.begin(), descriptor.inputs.end(),
                        [&](const Input& input) { return input.kind == kCoordinate && input.index == i; })) {
            Affine affine;
            affine.strides[i] = 1;
            if (!descriptor.origin.empty()) affine.base = descriptor.origin[i];
            affines_.push_back(affine);
        }
    plan_.terms = descriptor.terms;
    plan_.folds = !descriptor.fold.empty();
    plan_.init = descriptor.init;
    merge_dimensions(descriptor);
    plan_operands(descriptor);
    schedule(descriptor);
    plan_.join = find_fold_join();
    // Products of broadcast tensors folded in lanes look like contractions, but rows read them better.
    const bool rows = find_rows();
    plan_.kind = find_scan(descriptor) ? kScan : rows && plan_.row.lanes ? kRowFold : find_contraction() ? kContraction : rows ? kRowFold : kElements;
    if (plan_.kind == kElements) plan_.kind = find_scatter() ? kScatter : find_ranks(descriptor) ? kRanks : kElements;
    if (plan_.kind == kElements) find_key();
    find_tiles();
    find_turn();
    find_columns();
    find_ending();
    find_join();
    mark_lazy();
    for (const Affine& affine : affines_) {
        bases_.push_back(affine.base);
        fixed_ = fixed_ && affine.strides[0] == 0;
    }
    for (int o = 0; o < plan_.operands; ++o) safe_[o] = is_safe(operands_[o], bases_.data());
}

void PlannedNode::merge_dimensions(const Descriptor& descriptor) {
    const int first_fold = 1 + static_cast<int>(descriptor.dims.size());
    const std::vector<Merged> out = merge(affines_, descriptor.dims, 1);
    const std::vector<Merged> fold = merge(affines_, descriptor.fold, first_fold);
    plan_.space = empty_space();
    plan_.space.rank = static_cast<int>(out.size());
    for (int d = 0; d < plan_.space.rank; ++d) {
        plan_.space.dims[d] = out[d].size;
        plan_.space.axis[d] = d;
        plan_.space.size *= out[d].size;
    }
    plan_.fold_rank = static_cast<int>(fold.size());
    for (int d = 0; d < plan_.fold_rank; ++d) plan_.fold[d] = fold[d].size;
    for (const Affine& affine : affines_) {
        Form form{};
        for (size_t d = 0; d < out.size(); ++d) form.out[d] = out[d].coordinate < 0 ? 0 : affine.strides[out[d].coordinate];
        for (size_t d = 0; d < fold.size(); ++d) form.fold[d] = fold[d].coordinate < 0 ? 0 : affine.strides[fold[d].coordinate];
        forms_.push_back(form);
    }
    plan_.forms = static_cast<int>(forms_.size());
    plan_.form = forms_.data();
}

void PlannedNode::plan_operands(const Descriptor& descriptor) {
    int form = 0;
    const auto folds = [&](int f) { return std::any_of(forms_[f].fold, forms_[f].fold + plan_.fold_rank, [](int64_t s) { return s != 0; }); };
    for (const Operand& operand : descriptor.operands) {
        PlannedOperand planned{};
        planned.address = form;
        planned.bounds = static_cast<int>(operand.bounds.size());
        for (int i = 0; i < planned.bounds; ++i) planned.limits[i] = operand.bounds[i].limit;
        planned.numel = operand.numel;
        planned.fill = operand.fill;
        planned.gather = operand.gather;
        planned.gather_stride = operand.gather_stride;
        planned.gather_limit = operand.gather_limit;
        if (operand.gather >= 0) {
            planned.varies = operands_[operand.gather].varies;
            planned.axes = operands_[operand.gather].axes;
        }
        for (int f = form; f <= form + planned.bounds; ++f) {
            planned.varies = planned.varies || folds(f);
            for (int d = 0; d < plan_.space.rank; ++d)
                if (forms_[f].out[d] != 0) planned.axes |= 1u << d;
        }
        form += 1 + planned.bounds;
        operands_.push_back(planned);
    }
    for (; form < plan_.forms; ++form) coordinates_.push_back({form, folds(form)});
    plan_.operands = static_cast<int>(operands_.size());
    plan_.operand = operands_.data();
    plan_.coordinates = static_cast<int>(coordinates_.size());
    plan_.coordinate = coordinates_.data();
}

bool PlannedNode::is_safe(const PlannedOperand& operand, const int64_t* bases) const {
    const auto within = [&](int f, int64_t limit) {
        int64_t low = bases[f], high = bases[f];
        const auto widen = [&](int64_t stride, int64_t size) { (stride < 0 ? low : high) += stride * (size - 1); };
        for (int d = 0; d < plan_.space.rank; ++d) widen(forms_[f].out[d], plan_.space.dims[d]);
        for (int d = 0; d < plan_.fold_rank; ++d) widen(forms_[f].fold[d], plan_.fold[d]);
        return low >= 0 && high < limit;
    };
    if (operand.gather < 0 && !within(operand.address, operand.numel)) return false;
    for (int i = 0; i < operand.bounds; ++i)
        if (!within(operand.address + 1 + i, operand.limits[i])) return false;
    return true;
}

bool PlannedNode::may_write_over(size_t o) const {
    const PlannedOperand& operand = operands_[o];
    if (plan_.kind != kElements || plan_.folds || operand.gather >= 0 || operand.numel != plan_.space.size) return false;
    const Affine& affine = affines_[operand.address];
    if (affine.base != 0 || affine.strides[0] != 0 || !safe_[o]) return false;
    int64_t stride = 1;
    for (int d = plan_.space.rank - 1; d >= 0; stride *= plan_.space.dims[d--])
        if (plan_.space.dims[d] > 1 && forms_[operand.address].out[d] != stride) return false;
    return true;
}

}  // namespace pol
