// Recognizes maps that nodes/elements.cpp has shortcuts for: transposed reads, and tensors put side by side.
#include <vector>

#include "plan/plan.h"

namespace pol {
namespace {

constexpr int64_t kSmallestTile = 8;

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
    plan_.joins = plan_.once_count + plan_.each_count == plan_.operands - 1;
}

}  // namespace pol
