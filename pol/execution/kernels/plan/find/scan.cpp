// Recognizes running sums and the like, which nodes/scans.cpp can run.
#include <algorithm>

#include "plan/plan.h"

namespace pol {
namespace {

constexpr int64_t kMostScanned = 1 << 30;

// Whether joining a word changes no accumulator that a fold from `init` has, but for which NaN it is.
bool is_neutral(uint8_t join, uint32_t word, uint32_t init) {
    switch (join) {
        case FADD: return word == 0x80000000 || (word == 0 && init != 0x80000000);  // no sum of others is -0
        case FMUL: return word == 0x3f800000;
        case FMAX: return word == 0xff800000;
        case FMIN: return word == 0x7f800000;
        case ADD: case OR: return word == 0;
        case MUL: return word == 1;
        case AND: return word == 0xffffffff;
        case kGreatest: return word == 0x80000000;
        case kLeast: return word == 0x7fffffff;
        default: return false;
    }
}

}  // namespace

bool PlannedNode::find_scan(const Descriptor& node) {
    const FoldJoin& join = plan_.join;
    if (plan_.fold_rank != 1 || plan_.operands != 1 || plan_.coordinates > 0 || !once_.empty()) return false;
    if (plan_.terms > kMostScanned) return false;
    if (static_cast<int>(each_.size()) != join.instructions || join.x != 0) return false;
    const PlannedOperand& operand = operands_[0];
    if (operand.gather >= 0 || !is_neutral(join.op, operand.fill, plan_.init)) return false;
    const int rank = plan_.space.rank;
    for (int bound = 1; bound <= operand.bounds; ++bound) {
        const int f = operand.address + bound;
        const Form& form = forms_[f];
        const int axis = static_cast<int>(std::find_if(form.out, form.out + rank, [](int64_t s) { return s != 0; }) - form.out);
        if (axis == rank || form.out[axis] != 1 || form.fold[0] != -1 || affines_[f].base != 0 || affines_[f].strides[0] != 0) continue;
        if (std::any_of(form.out + axis + 1, form.out + rank, [](int64_t s) { return s != 0; })) continue;
        if (plan_.space.dims[axis] != plan_.terms || operand.limits[bound - 1] < plan_.terms) continue;
        // Of a chunk of rows, a dimension may be left of which there is one position, but not always the first.
        bool moves = false;
        for (size_t d = 0; d < node.dims.size(); ++d) moves = moves || (node.dims[d] == 1 && affines_[f].strides[1 + d] != 0);
        if (moves) continue;
        bool others = true;
        for (int other = operand.address; other <= operand.address + operand.bounds; ++other)
            others = others && (other == f || forms_[other].out[axis] == 0);
        if (!others) continue;
        plan_.scan = {axis, f};
        return true;
    }
    return false;
}

}  // namespace pol
