#include "plan/fused_rows.h"

#include <algorithm>
#include <string>

namespace pol {
namespace {

using Dimensions = std::vector<int>;

// The stride of dimensions that are evenly spaced, counted by their last one; those of size 1 are left out.
std::optional<int64_t> even_stride(const Affine& affine, const std::vector<int64_t>& dims, const Dimensions& counted) {
    int64_t stride = 0, size = 1;
    bool found = false;
    for (auto d = counted.rbegin(); d != counted.rend(); ++d) {
        if (dims[*d] == 1) continue;
        if (found && affine.strides[1 + *d] != stride * size) return std::nullopt;
        if (!found) stride = affine.strides[1 + *d];
        found = true;
        size *= dims[*d];
    }
    return stride;
}

// Where the dimensions of a node lie around its rows.
struct Layout {
    Dimensions before, rows, after;

    Layout(const Descriptor& node, const RowAxes& axes) : rows(axes.axes) {
        for (int d = 0; d < static_cast<int>(node.dims.size()); ++d) {
            if (node.dims[d] == 1) continue;
            if (d < rows.front()) before.push_back(d);
            if (d > rows.back()) after.push_back(d);
        }
    }
};

// A fold in pieces has leading dimensions that are not evenly spaced; find_lanes looks at each of them.
std::optional<FusedOperand> place_of(const Descriptor& node, const Layout& layout, const Operand& operand) {
    const auto row = even_stride(operand.address, node.dims, layout.rows);
    const auto column = even_stride(operand.address, node.dims, layout.after);
    const auto before = even_stride(operand.address, node.dims, layout.before);
    if (!row || !column || operand.gather >= 0 || operand.address.strides[0] != 0 || (!before && node.fold.empty())) return std::nullopt;
    return FusedOperand{operand.address.base, *row, *column, before.value_or(0)};
}

bool find_scalars(FusedStage& stage, int operands) {
    stage.kind = FusedKind::scalars;
    return stage.plan->coordinates == 0 && std::all_of(stage.operand, stage.operand + operands, [](const FusedOperand& o) { return o.row == 0 || o.row == 1; });
}

bool find_wide(FusedStage& stage, const Descriptor& node, const Layout& layout, int operands) {
    stage.kind = FusedKind::wide;
    for (const Input& input : node.inputs)
        if (input.kind == kCoordinate && (layout.after.size() != 1 || input.index != 1 + layout.after[0])) return false;
    return std::all_of(stage.operand, stage.operand + operands, [](const FusedOperand& o) { return o.column == 0 || o.column == 1; });
}

bool find_sequence(FusedStage& stage, const Descriptor& node, int operands) {
    stage.kind = FusedKind::sequence;
    if (stage.before != 1 || node.fold.size() != 1) return false;
    stage.width = node.fold[0];
    for (int o = 0; o < operands; ++o) {
        stage.operand[o].column = node.operands[o].address.strides[1 + node.dims.size()];
        if (!node.operands[o].bounds.empty() || stage.operand[o].column < 0 || stage.operand[o].column > 1) return false;
    }
    return true;
}

bool find_lanes(FusedStage& stage, const Descriptor& node, const Layout& layout, int operands) {
    stage.kind = FusedKind::lanes;
    if (layout.before.empty() || layout.before.size() > 2 || node.dims[layout.before[0]] != kFoldLanes || node.fold.size() != 1) return false;
    const size_t lane = 1 + layout.before[0], fold = 1 + node.dims.size();
    stage.rounds = node.fold[0];
    stage.pieces = stage.before / kFoldLanes;
    stage.width = kFoldLanes * stage.rounds * stage.pieces;
    // A column is counted through lanes, terms and pieces.
    const auto column = [&](const Affine& affine) -> std::optional<int64_t> {
        const int64_t stride = affine.strides[lane];
        if (affine.strides[fold] != stride * kFoldLanes) return std::nullopt;
        if (stage.pieces > 1 && affine.strides[1 + layout.before[1]] != stride * kFoldLanes * stage.rounds) return std::nullopt;
        return stride;
    };
    for (int o = 0; o < operands; ++o) {
        const Operand& operand = node.operands[o];
        const auto stride = column(operand.address);
        if (!stride || *stride < 0 || *stride > 1) return false;
        stage.operand[o].column = *stride;
        if (operand.bounds.empty() != node.operands[0].bounds.empty() || operand.bounds.size() > 1) return false;
        if (operand.bounds.empty()) continue;
        const Bound& bound = operand.bounds[0];
        const bool of_rows = std::any_of(layout.rows.begin(), layout.rows.end(), [&](int d) { return bound.affine.strides[1 + d] != 0; });
        if (of_rows || bound.affine.base != 0 || bound.affine.strides[0] != 0 || column(bound.affine) != 1) return false;
        if (o > 0 && bound.limit != node.operands[0].bounds[0].limit) return false;
        stage.padded = true;
    }
    if (stage.padded) stage.width = std::min(stage.width, node.operands[0].bounds[0].limit);
    return true;
}

uint8_t join_of(const FusedStage& fold) { return fold.plan->join.op == FFMA ? uint8_t{FADD} : fold.plan->join.op; }

const PlannedInstruction* origin(const Plan& plan, int reg) {
    const auto gives = [&](const PlannedInstruction& in) { return in.result == reg; };
    const auto each = std::find_if(plan.each, plan.each + plan.each_count, gives), once = std::find_if(plan.once, plan.once + plan.once_count, gives);
    return each != plan.each + plan.each_count ? each : once != plan.once + plan.once_count ? once : nullptr;
}

// The expression that a register is, if all its instructions are `join`.
std::string joined_text(const Plan& plan, int reg, uint8_t join) {
    if (reg < plan.operands) return std::to_string(reg);
    const PlannedInstruction* in = origin(plan, reg);
    const bool compares = join == kGreatest || join == kLeast;
    if (in == nullptr || (in->op & ~kLazy) != (compares ? uint8_t{SELECT} : join)) return "";
    // SELECT(LTS(a, b), b, a) or SELECT(LTS(b, a), b, a).
    const int a = compares ? in->c : in->a, b = in->b;
    if (compares) {
        const PlannedInstruction* less = origin(plan, in->a);
        if (less == nullptr || less->op != LTS || less->a != (join == kLeast ? b : a) || less->b != (join == kLeast ? a : b)) return "";
    }
    return std::string("(") + joined_text(plan, a, join) + ',' + joined_text(plan, b, join) + ')';
}

}  // namespace

bool may_be_fused(const Descriptor& node, const Plan& plan) {
    const bool folds = !node.fold.empty();
    if (folds && plan.kind != kRowFold && !(plan.kind == kElements && node.operands.size() == 1 && !plan.keyed)) return false;
    return std::none_of(node.operands.begin(), node.operands.end(), [&](const Operand& operand) { return operand.gather >= 0 || (!folds && !operand.bounds.empty()); });
}

std::optional<FusedStage> fused_stage(const Descriptor& node, const Descriptor& part, const RowAxes& axes, const PlannedNode& planned, unsigned in_chunk, int64_t capacity) {
    FusedStage stage{};
    stage.plan = &planned.plan();
    stage.capacity = capacity;
    stage.width = axes.after;
    stage.before = axes.before;
    stage.pieces = 1;
    const Layout layout(node, axes);
    const int operands = static_cast<int>(node.operands.size());
    for (int o = 0; o < operands; ++o) {
        // Rows of the whole tensor have to be evenly spaced, also if a chunk has only few of them.
        const Descriptor& reader = in_chunk >> o & 1 ? part : node;
        const std::optional<FusedOperand> place = place_of(reader, layout, reader.operands[o]);
        if (!place) return std::nullopt;
        stage.operand[o] = *place;
    }
    bool found;
    if (node.fold.empty())
        found = axes.after == 1 ? find_scalars(stage, operands) : axes.before == 1 && find_wide(stage, node, layout, operands);
    else if (axes.after != 1 || stage.plan->kind != kRowFold || stage.plan->coordinates > 0)
        found = false;
    else
        found = stage.plan->row.lanes ? find_lanes(stage, node, layout, operands) : find_sequence(stage, node, operands);
    if (!found && !node.fold.empty() && axes.after == 1 && axes.before == kFoldLanes && operands == 1 && stage.plan->coordinates == 0) {
        stage.kind = FusedKind::pieces;
        found = true;
    }
    if (!found) return std::nullopt;
    return stage;
}

bool joins_pieces(const Descriptor& part, const FusedStage& stage, const FusedStage& fold) {
    const Plan& plan = *stage.plan;
    if (part.fold.size() != 1 || part.fold[0] != fold.pieces || part.operands.size() != 1 || plan.each_count != plan.join.instructions || plan.once_count != 0 || plan.init != fold.plan->init) return false;
    const bool plain = plan.join.op == join_of(fold) && plan.join.x == 0;
    const FusedOperand& o = stage.operand[0];
    return plain && stage.kind == FusedKind::pieces && o.base == 0 && (o.row == 1 || stage.capacity == 1) && o.before == fold.pieces * fold.capacity &&
           part.operands[0].bounds.empty() && part.operands[0].address.strides[1 + part.dims.size()] == fold.capacity;
}

bool joins_lanes(const FusedStage& stage, const FusedStage& fold) {
    const Plan& plan = *stage.plan;
    if (stage.kind != FusedKind::scalars || stage.before != kJoinedLanes || plan.operands != 2 * kJoinedLanes) return false;
    for (int o = 0; o < plan.operands; ++o) {
        const FusedOperand& place = stage.operand[o];
        if (place.base != o * kJoinedLanes * fold.capacity || place.before != fold.capacity || (place.row != 1 && stage.capacity > 1)) return false;
    }
    return joined_text(plan, plan.each[plan.each_count - 1].result, join_of(fold)) == "(((0,4),(2,6)),((1,5),(3,7)))";
}

}  // namespace pol
