// Recognizes folds that nodes/rows.cpp can run.
#include <algorithm>

#include "plan/plan.h"

namespace pol {
namespace {

constexpr int64_t kShortest = 4;          // words of a row whose terms are just read
constexpr int64_t kShortestProgram = 16;  // words of a row whose terms are computed
constexpr int64_t kMostLanes = 32;

}  // namespace

bool PlannedNode::find_rows() {
    const FoldJoin& join = plan_.join;
    if (join.instructions == 0 || plan_.coordinates != 0) return false;
    RowPlan& row = plan_.row;
    const int acc = plan_.accumulator;
    row.x = join.x, row.y = join.y;
    const auto terms_end = each_.end() - join.instructions;
    const auto reads_accumulator = [&](const PlannedInstruction& in) {
        return in.a == acc || in.b == acc || in.c == acc || in.d == acc || in.e == acc;
    };
    if (std::any_of(once_.begin(), once_.end(), reads_accumulator) || std::any_of(each_.begin(), terms_end, reads_accumulator)) return false;
    if (std::any_of(operands_.begin(), operands_.end(), [](const PlannedOperand& operand) { return operand.gather >= 0; })) return false;
    find_exponential();
    // A factor that is a constant isn't read, either: it fills a register.
    row.programmed = !once_.empty() || terms_end != each_.begin() || row.x >= plan_.operands || row.y >= plan_.operands;

    const int inner = plan_.fold_rank - 1;
    // Whether an operand that the fold moves through lies along a dimension.
    const auto some_contiguous = [&](const auto& stride) {
        return std::any_of(operands_.begin(), operands_.end(), [&](const PlannedOperand& operand) {
            const Form& form = forms_[operand.address];
            return stride(form) == 1 && std::any_of(form.fold, form.fold + plan_.fold_rank, [](int64_t s) { return s != 0; });
        });
    };
    // Lanes: a step of the last fold dimension continues the first output dimension, in every form.
    const int64_t width = plan_.space.dims[0];
    row.lanes = (width == kMostLanes || width == kMostLanes / 2 || width == kMostLanes / 4) && std::all_of(forms_.begin(), forms_.end(), [&](const Form& form) {
        int64_t stride;
        return !__builtin_mul_overflow(form.out[0], width, &stride) && form.fold[inner] == stride;
    });
    const int column = plan_.space.rank - 1;
    // Where the last output dimension is contiguous, maps/elements.cpp does well.
    if (!(row.lanes && column == 0) && some_contiguous([&](const Form& form) { return form.out[column]; })) return false;
    if (row.lanes) find_centered();
    if (row.lanes && some_contiguous([](const Form& form) { return form.out[0]; })) {
        row.width = static_cast<int>(width);
        row.length = width * plan_.fold[inner];
        return true;
    }
    row.lanes = false;
    row.width = 1;
    row.length = plan_.fold[inner];
    return row.length >= (row.programmed ? kShortestProgram : kShortest) && plan_.space.size >= 8 &&
           some_contiguous([&](const Form& form) { return form.fold[inner]; });
}

// FADD(accumulator, exp(exponent - shift)).
void PlannedNode::find_exponential() {
    RowPlan& row = plan_.row;
    row.exponent = row.shift = -1;
    if (plan_.join.op != FADD || !once_.empty() || each_.size() != 3) return;
    const PlannedInstruction &difference = each_[0], &power = each_[1];
    if (difference.op != FSUB || power.op != kExp || power.a != difference.result || row.x != power.result) return;
    if (difference.a < plan_.operands && difference.b < plan_.operands) row.exponent = difference.a, row.shift = difference.b;
}

// FFMA(factor * scale, value - mean) or FFMA(value - mean, value - mean), where all is read along the row but the mean.
void PlannedNode::find_centered() {
    RowPlan& row = plan_.row;
    if (plan_.join.op != FFMA || !once_.empty()) return;
    const auto moves = [&](int reg, int64_t stride) {
        return reg < plan_.operands && operands_[reg].bounds == 0 && forms_[operands_[reg].address].out[0] == stride;
    };
    row.factor = row.scale = row.value = row.mean = -1;
    for (auto in = each_.begin(); in != each_.end() - 1; ++in) {
        if (in->op == FSUB && row.value < 0 && in->result == row.y && moves(in->a, 1) && moves(in->b, 0))
            row.value = in->a, row.mean = in->b;
        else if (in->op == FMUL && row.factor < 0 && in->result == row.x && moves(in->a, 1) && moves(in->b, 1))
            row.factor = in->a, row.scale = in->b;
        else
            return;
    }
    if (row.factor < 0 && row.x != row.y && moves(row.x, 1)) row.factor = row.x;
    row.centered = row.value >= 0 && (row.factor >= 0 || row.x == row.y);
}

}  // namespace pol
