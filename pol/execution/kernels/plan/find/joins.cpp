// Recognizes how a fold joins a term to its accumulator.
#include "plan/plan.h"

namespace pol {
namespace {

bool joins(uint8_t op) {
    switch (op) {
        case FADD: case FMUL: case FMIN: case FMAX: case ADD: case MUL: case AND: case OR:
            return true;
        default:
            return false;
    }
}

}  // namespace

FoldJoin PlannedNode::find_fold_join() const {
    constexpr FoldJoin none{};
    if (!plan_.folds || each_.empty()) return none;
    const PlannedInstruction& last = each_.back();
    const int acc = plan_.accumulator;
    // The term, if one of two registers is the accumulator.
    const auto term = [&](const PlannedInstruction& in) { return in.a == acc ? in.b : in.a; };
    const auto has_term = [&](const PlannedInstruction& in) { return (in.a == acc) != (in.b == acc); };
    if (last.op == FFMA && last.c == acc && last.a != acc && last.b != acc) return {FFMA, last.a, last.b, 1};
    if (joins(last.op) && has_term(last)) return {last.op, term(last), term(last), 1};
    if (last.op != SELECT || each_.size() < 2) return none;
    const PlannedInstruction& less = each_[each_.size() - 2];
    if (less.op != LTS || less.result != last.a || !has_term(less)) return none;
    if (last.b == less.a && last.c == less.b) return {kLeast, term(less), term(less), 2};
    if (last.b == less.b && last.c == less.a) return {kGreatest, term(less), term(less), 2};
    return none;
}

}  // namespace pol
