// Which float instructions may leave a NaN as the processor made it.
//
// Every primitive yields the canonical NaN, but float primitives do not tell NaNs apart. So the bits of a NaN matter
// only where they escape: in the output and in integer primitives. SELECT and MOV pass them on.
#include <algorithm>
#include <vector>

#include "plan/plan.h"

namespace pol {

void PlannedNode::mark_lazy() {
    std::vector<bool> escapes(plan_.registers, false);
    const auto mark = [&](std::vector<PlannedInstruction>& instructions) {
        for (auto in = instructions.rbegin(); in != instructions.rend(); ++in) {
            if (in->op >= kFunction || sees_bits(in->op)) {
                for (const int r : {in->a, in->b, in->c, in->d, in->e}) escapes[r] = true;
            } else if (in->op == SELECT || in->op == MOV) {
                // The condition of a SELECT: a NaN is not 0, whichever it is.
                if (escapes[in->result]) escapes[in->op == SELECT ? in->b : in->a] = escapes[in->c] = true;
            } else if (has_lazy_form(in->op) && !escapes[in->result]) {
                in->op |= kLazy;
            }
        }
    };
    escapes[each_.back().result] = true;
    mark(each_);
    mark(once_);
}

}  // namespace pol
