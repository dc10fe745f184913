// Folds of the form acc = FFMA(x, y, acc), where x varies along some output dimensions (rows) and y along others (columns).
#include "contraction_matrix.h"
#include "nodes.h"

namespace pol::POL_ISA {

size_t contraction_tasks(const Plan& plan, size_t threads) { return static_cast<size_t>(matrix_pieces(plan, static_cast<int64_t>(threads))); }

size_t contraction_scratch(const Plan& plan) { return matrix_scratch(plan); }

void contract(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch) {
    multiply_matrices(plan, run, static_cast<int64_t>(task), static_cast<int64_t>(tasks), scratch);
}

}  // namespace pol::POL_ISA
