// A contraction as a matrix product: any reads, rows times columns in blocks, both operands in panels where that pays.
#pragma once
#include "plan/plan.h"

namespace pol::POL_ISA {

// Pieces of work of about equal cost; at least as many as threads where the shape allows it.
int64_t matrix_pieces(const Plan& plan, int64_t threads);
size_t matrix_scratch(const Plan& plan);
void multiply_matrices(const Plan& plan, const Run& run, int64_t piece, int64_t pieces, void* scratch);

}  // namespace pol::POL_ISA
