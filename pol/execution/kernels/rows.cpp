// Folds along contiguous words of their operands. None is recognised yet (plan_rows.cpp).
#include "nodes.h"

namespace pol::POL_ISA {

size_t row_tasks(const Plan&, size_t) { return 0; }

size_t row_scratch(const Plan&) { return 0; }

void compute_rows(const Plan&, const Run&, size_t, size_t, void*) {}

}  // namespace pol::POL_ISA
