// Recognises folds that contraction.cpp can run.
#include <utility>

#include "plan.h"

namespace pol {
namespace {

constexpr int64_t kSmallest = 4;  // columns: with fewer, vectors are mostly idle
constexpr int64_t kNarrow = 16;

}  // namespace

bool PlannedNode::find_contraction() {
    if (!plan_.folds || plan_.once_count != 0 || plan_.each_count != 1) return false;
    const PlannedInstruction& body = plan_.each[0];
    if (body.op != FFMA || body.c != plan_.accumulator || body.a >= plan_.operands || body.b >= plan_.operands) return false;
    ContractionPlan& contraction = plan_.contraction;
    const unsigned inner = 1u << (plan_.space.rank - 1);
    const bool a_inner = operands_[body.a].axes & inner, b_inner = operands_[body.b].axes & inner;
    if (a_inner == b_inner) return false;
    contraction.x = a_inner ? body.b : body.a;
    contraction.y = a_inner ? body.a : body.b;
    const unsigned x_axes = operands_[contraction.x].axes, y_axes = operands_[contraction.y].axes;
    if (operands_[contraction.x].gather >= 0 || operands_[contraction.y].gather >= 0) return false;
    contraction.batch = contraction.rows = contraction.columns = empty_space();
    for (int d = 0; d < plan_.space.rank; ++d) {
        const bool in_x = x_axes >> d & 1, in_y = y_axes >> d & 1;
        add_axis(in_x == in_y ? contraction.batch : in_x ? contraction.rows : contraction.columns, plan_.space, d);
    }
    if (contraction.columns.size < kNarrow && contraction.columns.size < contraction.rows.size) {
        std::swap(contraction.x, contraction.y);
        std::swap(contraction.rows, contraction.columns);
    }
    return contraction.columns.size >= kSmallest;
}

}  // namespace pol
