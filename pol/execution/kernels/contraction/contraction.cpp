// Folds of the form acc = FFMA(x, y, acc), or the same of integers, where x varies along some output dimensions and y along others.
#include "contraction/few_rows.h"
#include "contraction/integer_matrix.h"
#include "contraction/matrix.h"
#include "contraction/taps.h"
#include "nodes/nodes.h"

namespace pol::POL_ISA {

// What can have taps is cut for them, although addresses, which may depend on the step, decide only when it is run.
size_t contraction_tasks(const Plan& plan, size_t threads) {
    const int64_t wanted = static_cast<int64_t>(threads);
    if (plan.contraction.integers) return static_cast<size_t>(integer_pieces(plan));
    return static_cast<size_t>(plan.contraction.has_taps ? tap_pieces(plan, wanted) : matrix_pieces(plan, wanted));
}

size_t contraction_scratch(const Plan& plan) {
    if (plan.contraction.integers) return integer_scratch(plan);
    const size_t matrix = matrix_scratch(plan), taps = plan.contraction.has_taps ? tap_scratch() : 0;
    return matrix > taps ? matrix : taps;
}

void contract(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch) {
    if (plan.contraction.integers) {
        multiply_integers(plan, run, static_cast<int64_t>(task), scratch);
        return;
    }
    if (has_taps(plan, run)) {
        multiply_taps(plan, run, static_cast<int64_t>(task), static_cast<int64_t>(tasks), scratch);
        return;
    }
    const int64_t pieces = plan.contraction.has_taps ? matrix_pieces(plan, static_cast<int64_t>(tasks)) : static_cast<int64_t>(tasks);
    const int64_t first = pieces * static_cast<int64_t>(task) / static_cast<int64_t>(tasks);
    const int64_t end = pieces * static_cast<int64_t>(task + 1) / static_cast<int64_t>(tasks);
    const bool few = has_few_rows(plan, run);
    for (int64_t piece = first; piece < end; ++piece)
        few ? multiply_few_rows(plan, run, piece, pieces) : multiply_matrices(plan, run, piece, pieces, scratch);
}

}  // namespace pol::POL_ISA
