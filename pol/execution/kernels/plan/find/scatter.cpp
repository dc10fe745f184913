// Recognizes folds that nodes/scatter.cpp can run: SELECT(keys are the coordinates, joined, accumulator).
#include <algorithm>
#include <vector>

#include "plan/plan.h"

namespace pol {
namespace {

// The instruction whose result a register is.
const PlannedInstruction* origin(const std::vector<PlannedInstruction>& instructions, int reg) {
    for (const PlannedInstruction& in : instructions)
        if (in.result == reg) return &in;
    return nullptr;
}

// Whether a register is an OR of coordinates, which are listed.
bool list_coordinates(const std::vector<PlannedInstruction>& instructions, const Plan& plan, int reg, std::vector<int>& forms) {
    if (reg >= plan.operands && reg < plan.operands + plan.coordinates) {
        forms.push_back(plan.coordinate[reg - plan.operands].form);
        return true;
    }
    const PlannedInstruction* in = origin(instructions, reg);
    return in != nullptr && in->op == OR && list_coordinates(instructions, plan, in->a, forms) && list_coordinates(instructions, plan, in->b, forms);
}

}  // namespace

// A comparison of a key with the coordinate of a dimension of its own, or the AND of several.
bool PlannedNode::find_guards(int reg) {
    ScatterPlan& scatter = plan_.scatter;
    const PlannedInstruction* in = origin(each_, reg);
    if (in == nullptr) return false;
    if (in->op == AND) return find_guards(in->a) && find_guards(in->b);
    if (in->op != EQ || scatter.keys == kMaxScatterKeys) return false;
    const bool swapped = in->a >= plan_.operands;
    const int key = swapped ? in->b : in->a, coordinate = (swapped ? in->a : in->b) - plan_.operands;
    if (key >= plan_.operands || coordinate < 0 || coordinate >= plan_.coordinates) return false;
    const Form& form = forms_[coordinates_[coordinate].form];
    int axis = -1;
    for (int d = 0; d < plan_.space.rank; ++d)
        if (form.out[d] != 0) {
            if (axis >= 0 || form.out[d] != 1) return false;
            axis = d;
        }
    if (axis < 0 || coordinates_[coordinate].varies || operands_[key].gather >= 0) return false;
    if (std::find(scatter.axis, scatter.axis + scatter.keys, axis) != scatter.axis + scatter.keys) return false;
    scatter.key[scatter.keys] = key;
    scatter.form[scatter.keys] = coordinates_[coordinate].form;
    scatter.axis[scatter.keys++] = axis;
    return true;
}

bool PlannedNode::find_scatter() {
    if (!plan_.folds || each_.empty() || each_.back().op != SELECT) return false;
    const PlannedInstruction& last = each_.back();
    const int acc = plan_.accumulator;
    ScatterPlan& scatter = plan_.scatter;
    scatter = ScatterPlan{};
    scatter.before = -1;
    if (!find_guards(last.a)) return false;
    // No key may depend on a dimension that another one names.
    for (int i = 0; i < scatter.keys; ++i)
        for (int j = 0; j < scatter.keys; ++j)
            if (operands_[scatter.key[i]].axes >> scatter.axis[j] & 1) return false;
    const auto is_constant = [&](int reg) { return reg > acc && reg <= acc + plan_.constants; };
    const auto is_read = [&](int reg) { return reg < acc && (reg >= plan_.operands || operands_[reg].gather < 0); };
    const PlannedInstruction* joined = origin(each_, last.b);
    scatter.join = MOV;
    scatter.term = last.b;
    if (joined != nullptr) {
        scatter.join = joined->op;
        if (joined->op == FFMA) {
            if (joined->c != acc) return false;
            scatter.term = joined->a;
        } else {
            if ((joined->op != FADD && joined->op != ADD) || (joined->a == acc) == (joined->b == acc)) return false;
            scatter.term = joined->a == acc ? joined->b : joined->a;
        }
    }
    scatter.factor = scatter.join == FFMA ? joined->b : scatter.term;
    for (const int reg : {scatter.term, scatter.factor}) {
        if (!is_read(reg) && !is_constant(reg)) return false;
        for (int i = 0; i < (is_constant(reg) ? 0 : scatter.keys); ++i)
            if (reg < plan_.operands ? operands_[reg].axes >> scatter.axis[i] & 1 : forms_[coordinates_[reg - plan_.operands].form].out[scatter.axis[i]] != 0)
                return false;
    }
    if (last.c == acc) return once_.empty();
    // SELECT(any fold index, accumulator, what was there): the first term begins with the latter.
    const PlannedInstruction* kept = origin(each_, last.c);
    std::vector<int> forms;
    if (scatter.join != MOV || kept == nullptr || kept->op != SELECT || kept->b != acc || kept->c >= plan_.operands) return false;
    const PlannedOperand& before = operands_[kept->c];
    if (before.varies || before.gather >= 0 || !list_coordinates(each_, plan_, kept->a, forms) || !once_.empty()) return false;
    scatter.before = kept->c;
    std::vector<bool> counted(plan_.fold_rank, false);
    for (const int f : forms) {
        if (affines_[f].base != 0 || std::any_of(affines_[f].strides, affines_[f].strides + 1, [](int64_t s) { return s != 0; })) return false;
        if (std::any_of(forms_[f].out, forms_[f].out + plan_.space.rank, [](int64_t s) { return s != 0; })) return false;
        for (int d = 0; d < plan_.fold_rank; ++d) {
            if (forms_[f].fold[d] < 0) return false;
            counted[d] = counted[d] || forms_[f].fold[d] > 0;
        }
    }
    for (int d = 0; d < plan_.fold_rank; ++d)
        if (plan_.fold[d] > 1 && !counted[d]) return false;
    return true;
}

}  // namespace pol
