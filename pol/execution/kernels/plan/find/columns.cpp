// Recognizes folds whose terms maps/column_joins.h can join several at a time, for neighboring elements side by side.
#include <algorithm>

#include "plan/plan.h"

namespace pol {

void PlannedNode::find_columns() {
    ColumnPlan& columns = plan_.columns;
    columns = {false, -1, -1, -1, -1, -1};
    const FoldJoin& join = plan_.join;
    if (join.instructions == 0 || plan_.turns || plan_.keyed || plan_.coordinates != 0 || !once_.empty()) return;
    if (std::any_of(operands_.begin(), operands_.end(), [](const PlannedOperand& operand) { return operand.gather >= 0; })) return;
    const int inner = plan_.space.rank - 1;
    // Whether an operand's words lie side by side for neighboring elements, or are one for all of them.
    const auto lies = [&](int reg, int64_t stride) { return reg < plan_.operands && forms_[operands_[reg].address].out[inner] == stride; };
    if (join.op != FFMA) {
        columns.x = join.x;
        columns.found = static_cast<int>(each_.size()) == join.instructions && lies(columns.x, 1);
        return;
    }
    // FFMA(x, (value - mean) * scale), without a scale, or FFMA(x, y).
    if (each_.size() == 1) {
        columns.x = lies(join.x, 1) ? join.x : join.y;
        columns.y = columns.x == join.x ? join.y : join.x;
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
    if (centered.op != FSUB || each_.size() > 3 || (join.x == factor) == (join.y == factor)) return;
    columns.x = join.x == factor ? join.y : join.x;
    columns.value = centered.a;
    columns.mean = centered.b;
    columns.found = lies(columns.x, 1) && lies(columns.value, 1) && lies(columns.mean, 0) && (columns.scale < 0 || lies(columns.scale, 0));
}

}  // namespace pol
