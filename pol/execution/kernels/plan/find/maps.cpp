// Recognizes maps that maps/elements.cpp has shortcuts for: transposed reads, and tensors put side by side.
#include <algorithm>
#include <utility>
#include <vector>

#include "plan/plan.h"

namespace pol {
namespace {

constexpr int64_t kSmallestTile = 8;
constexpr int64_t kShortRow = 8;

}  // namespace

void PlannedNode::find_tiles() {
    plan_.tile_axis = -1;
    const int inner = plan_.space.rank - 1;
    if (plan_.folds || plan_.space.dims[inner] < kSmallestTile) return;
    for (const PlannedOperand& operand : operands_) {
        const int64_t* strides = forms_[operand.address].out;
        if (strides[inner] == 0 || strides[inner] == 1) continue;
        for (int d = 0; d < inner; ++d)
            if (strides[d] == 1 && plan_.space.dims[d] >= kSmallestTile) plan_.tile_axis = d;
    }
}

void PlannedNode::find_turn() {
    plan_.turned = plan_.space;
    const int inner = plan_.space.rank - 1;
    if (inner == 0 || plan_.space.dims[inner] >= kShortRow || plan_.space.dims[inner - 1] <= plan_.space.dims[inner] || plan_.keyed || plan_.tile_axis >= 0) return;
    // Whether the kernel has something to do for every row: not if addresses are linear, or those of a map are the same
    // in all rows.
    const auto is_easy = [&](const PlannedOperand& operand) {
        const int64_t* strides = forms_[operand.address].out;
        bool linear = operand.bounds == 0 && operand.gather < 0, same = linear && !plan_.folds;
        int64_t stride = strides[inner];
        for (int d = inner - 1; d >= 0; --d) {
            linear = linear && !__builtin_mul_overflow(stride, plan_.space.dims[d + 1], &stride) && strides[d] == stride;
            same = same && strides[d] == 0;
        }
        return linear || same;
    };
    plan_.turns = plan_.coordinates > 0 || !std::all_of(operands_.begin(), operands_.end(), is_easy);
    if (!plan_.turns) return;
    std::swap(plan_.turned.dims[inner], plan_.turned.dims[inner - 1]);
    std::swap(plan_.turned.axis[inner], plan_.turned.axis[inner - 1]);
}

void PlannedNode::find_join() {
    if (plan_.folds || plan_.operands < 2 || plan_.coordinates > 0) return;
    std::vector<int> used(plan_.registers, 0);
    for (const std::vector<PlannedInstruction>* instructions : {&once_, &each_})
        for (const PlannedInstruction& in : *instructions) {
            if (in.op != OR) return;
            ++used[in.a];
            ++used[in.b];
        }
    for (int o = 0; o < plan_.operands; ++o)
        if (operands_[o].fill != 0 || operands_[o].gather >= 0 || used[o] != 1) return;
    for (int i = 0; i < plan_.constants; ++i)
        if (used[plan_.accumulator + 1 + i] > 0) return;
    // All instructions are live: n - 1 of them that read n operands once each read every result but the last once.
    plan_.joins = plan_.once_count + plan_.each_count == plan_.operands - 1 && !plan_.turns;
}

}  // namespace pol
