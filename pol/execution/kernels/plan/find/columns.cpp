// Recognizes folds whose terms maps/column_joins.h can join several at a time, for neighboring elements side by side.
#include <algorithm>

#include "plan/plan.h"

namespace pol {

void PlannedNode::find_columns() {
    ColumnPlan& columns = plan_.columns;
    columns = {false, 0, -1, -1, -1, -1, -1};
    if (!plan_.folds || plan_.turns || plan_.keyed || plan_.coordinates != 0 || !once_.empty() || each_.empty()) return;
    if (std::any_of(operands_.begin(), operands_.end(), [](const PlannedOperand& operand) { return operand.gather >= 0; })) return;
    const int inner = plan_.space.rank - 1, acc = plan_.accumulator;
    // Whether an operand's words lie side by side for neighboring elements, or are one for all of them.
    const auto lies = [&](int reg, int64_t stride) { return reg < plan_.operands && forms_[operands_[reg].address].out[inner] == stride; };
    const PlannedInstruction& last = each_.back();
    columns.join = last.op;
    if (each_.size() == 1 && (last.op == FADD || last.op == FMAX || last.op == FMIN) && (last.a == acc) != (last.b == acc)) {
        columns.x = last.a == acc ? last.b : last.a;
        columns.found = lies(columns.x, 1);
        return;
    }
    // FFMA(x, (value - mean) * scale), without a scale, or FFMA(x, y).
    if (last.op != FFMA || last.c != acc || last.a == acc || last.b == acc) return;
    if (each_.size() == 1) {
        columns.x = lies(last.a, 1) ? last.a : last.b;
        columns.y = columns.x == last.a ? last.b : last.a;
        columns.found = lies(columns.x, 1) && (lies(columns.y, 1) || lies(columns.y, 0));
        return;
    }
    const PlannedInstruction& centered = each_[0];
    int factor = centered.result;
    if (each_.size() == 3) {
        const PlannedInstruction& scaled = each_[1];
        if (scaled.op != FMUL || (scaled.a == factor) == (scaled.b == factor)) return;
        columns.scale = scaled.a == factor ? scaled.b : scaled.a;
        factor = scaled.result;
    }
    if (centered.op != FSUB || each_.size() > 3 || (last.a == factor) == (last.b == factor)) return;
    columns.x = last.a == factor ? last.b : last.a;
    columns.value = centered.a;
    columns.mean = centered.b;
    columns.found = lies(columns.x, 1) && lies(columns.value, 1) && lies(columns.mean, 0) && (columns.scale < 0 || lies(columns.scale, 0));
}

}  // namespace pol
