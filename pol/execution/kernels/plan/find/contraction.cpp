// Recognizes folds that contraction/ can run: matrix products and convolutions.
#include <algorithm>
#include <utility>

#include "plan/plan.h"

namespace pol {
namespace {

constexpr int64_t kSmallest = 4;  // columns: with fewer, vectors are mostly idle
constexpr int64_t kNarrow = 16;
constexpr int64_t kFewestLanes = 8;
constexpr int64_t kBlockTerms = 256;

}  // namespace

bool PlannedNode::find_contraction() {
    if (!plan_.folds || plan_.once_count != 0) return false;
    ContractionPlan& contraction = plan_.contraction;
    contraction.integers = adds_integer_product();
    const PlannedInstruction& body = plan_.each[0];
    if (!contraction.integers && (plan_.each_count != 1 || body.op != FFMA || body.c != plan_.accumulator)) return false;
    if (body.a >= plan_.operands || body.b >= plan_.operands) return false;
    const unsigned inner = 1u << (plan_.space.rank - 1);
    const bool a_inner = operands_[body.a].axes & inner, b_inner = operands_[body.b].axes & inner;
    if (operands_[body.a].gather >= 0 || operands_[body.b].gather >= 0) return false;
    // x is the operand that fewer positions read differently: it is read a word at a time, y by vectors.
    if (contraction.integers) {
        contraction.has_taps = false;
    } else if (find_taps(body.a, body.b)) {
        const TapPlan found = contraction.taps;
        if (!find_taps(body.b, body.a) || own_positions(found) < own_positions(contraction.taps)) contraction.taps = found;
        contraction.has_taps = true;
    } else {
        contraction.has_taps = find_taps(body.b, body.a);
    }
    if (a_inner == b_inner) return false;
    contraction.x = a_inner ? body.b : body.a;
    contraction.y = a_inner ? body.a : body.b;
    const unsigned x_axes = operands_[contraction.x].axes, y_axes = operands_[contraction.y].axes;
    contraction.batch = contraction.rows = contraction.columns = empty_space();
    for (int d = 0; d < plan_.space.rank; ++d) {
        const bool in_x = x_axes >> d & 1, in_y = y_axes >> d & 1;
        add_axis(in_x == in_y ? contraction.batch : in_x ? contraction.rows : contraction.columns, plan_.space, d);
    }
    // Lanes are located along an innermost dimension: a single row has one too.
    if (contraction.rows.rank == 0) contraction.rows = unit_space();
    if (contraction.columns.size < kNarrow && contraction.columns.size < contraction.rows.size) {
        std::swap(contraction.x, contraction.y);
        std::swap(contraction.rows, contraction.columns);
    }
    return contraction.columns.size >= kSmallest;
}

// Whether the body is acc = ADD(acc, MUL(a, b)).
bool PlannedNode::adds_integer_product() const {
    if (plan_.each_count != 2) return false;
    const PlannedInstruction &product = plan_.each[0], &sum = plan_.each[1];
    if (product.op != MUL || sum.op != ADD) return false;
    return (sum.a == plan_.accumulator && sum.b == product.result) || (sum.b == plan_.accumulator && sum.a == product.result);
}

// Dimensions that a bound of the operand depends on.
unsigned PlannedNode::bound_axes(int o) const {
    unsigned axes = 0;
    for (int i = 0; i < operands_[o].bounds; ++i)
        for (int d = 0; d < plan_.space.rank; ++d)
            if (forms_[operands_[o].address + 1 + i].out[d] != 0) axes |= 1u << d;
    return axes;
}

// Different positions that x is read at, for each row.
int64_t PlannedNode::own_positions(const TapPlan& taps) const {
    int64_t size = 1;
    for (int i = 0; i < taps.positions.rank; ++i)
        if (operands_[taps.x].axes >> taps.positions.axis[i] & 1) size *= taps.positions.dims[i];
    return size;
}

bool PlannedNode::find_taps(int x, int y) {
    if (operands_[x].bounds + operands_[y].bounds == 0) return false;
    TapPlan& taps = plan_.contraction.taps;
    taps = TapPlan{};
    taps.x = x;
    taps.y = y;
    const unsigned x_axes = operands_[x].axes, y_axes = operands_[y].axes, bound = bound_axes(x) | bound_axes(y);
    int lanes = -1;
    for (int d = 0; d < plan_.space.rank; ++d)
        if (y_axes >> d & 1 && !((x_axes | bound) >> d & 1) && (lanes < 0 || plan_.space.dims[d] > plan_.space.dims[lanes])) lanes = d;
    if (lanes < 0 || plan_.space.dims[lanes] < kFewestLanes) return false;
    taps.batch = taps.rows = taps.positions = taps.lanes = empty_space();
    for (int d = 0; d < plan_.space.rank; ++d) {
        const bool in_x = x_axes >> d & 1, in_y = y_axes >> d & 1, bounded = bound >> d & 1;
        Space& space = d == lanes ? taps.lanes : in_x == in_y && !bounded ? taps.batch : in_x && !in_y && !bounded ? taps.rows : taps.positions;
        add_axis(space, plan_.space, d);
    }
    taps.inner = 1;
    taps.chunked = plan_.fold_rank - 1;
    while (taps.chunked > 0 && taps.inner * plan_.fold[taps.chunked] <= kBlockTerms) taps.inner *= plan_.fold[taps.chunked--];
    const int64_t size = plan_.fold[taps.chunked], most = std::max<int64_t>(1, kBlockTerms / taps.inner);
    const int64_t blocks = (size + most - 1) / most;
    taps.chunk = (size + blocks - 1) / blocks;
    return true;
}

}  // namespace pol
