// Recognizes folds of which each element needs only the terms with its key, as in the gradient of a table lookup.
#include <algorithm>
#include <utility>
#include <vector>

#include "plan/plan.h"

namespace pol {
namespace {

constexpr int64_t kMostKeys = int64_t{1} << 24;

}  // namespace

// Whether a register equals the accumulator in every term in which the guard is 0. Each register is looked at once, in
// order:
// a body may select from the same ones over and over.
bool PlannedNode::keeps_accumulator(int reg, const PlannedInstruction& guard) const {
    std::vector<bool> keeps(plan_.registers, false);
    keeps[plan_.accumulator] = true;
    for (const PlannedInstruction& in : each_)
        if (in.op == SELECT) keeps[in.result] = keeps[in.c] && (in.a == guard.result || keeps[in.b]);
    return keeps[reg];
}

void PlannedNode::find_key() {
    if (!plan_.folds || plan_.terms > kMostKeys || each_.empty()) return;
    for (const PlannedInstruction& guard : each_) {
        if (guard.op != EQ) continue;
        const bool swapped = guard.a >= plan_.operands;
        const int key = swapped ? guard.b : guard.a, coordinate = (swapped ? guard.a : guard.b) - plan_.operands;
        if (key >= plan_.operands || coordinate < 0 || coordinate >= plan_.coordinates) continue;
        if (operands_[key].axes != 0 || operands_[key].gather >= 0 || coordinates_[coordinate].varies) continue;
        const Form& form = forms_[coordinates_[coordinate].form];
        const auto axis = std::find_if(form.out, form.out + plan_.space.rank, [](int64_t stride) { return stride != 0; });
        if (axis == form.out + plan_.space.rank || !keeps_accumulator(each_.back().result, guard)) continue;
        plan_.keyed = true;
        plan_.key = key;
        plan_.key_form = coordinates_[coordinate].form;
        plan_.key_axis = static_cast<int>(axis - form.out);
        return;
    }
}

// (key, fold index) of every term, in order.
std::vector<std::pair<uint32_t, uint32_t>> PlannedNode::keyed_terms(const int64_t* bases, const uint32_t* source) const {
    const PlannedOperand& operand = operands_[plan_.key];
    std::vector<std::pair<uint32_t, uint32_t>> terms;
    for (int64_t k = 0; k < plan_.terms; ++k) {
        const auto value = [&](int f) {
            int64_t result = bases[f], rest = k;
            for (int d = plan_.fold_rank - 1; d >= 0; --d) {
                result += forms_[f].fold[d] * (rest % plan_.fold[d]);
                rest /= plan_.fold[d];
            }
            return result;
        };
        const int64_t address = value(operand.address);
        bool valid = address >= 0 && address < operand.numel;
        for (int i = 0; i < operand.bounds; ++i) {
            const int64_t x = value(operand.address + 1 + i);
            valid = valid && x >= 0 && x < operand.limits[i];
        }
        terms.emplace_back(valid ? source[address] : operand.fill, static_cast<uint32_t>(k));
    }
    std::sort(terms.begin(), terms.end());
    return terms;
}

}  // namespace pol
