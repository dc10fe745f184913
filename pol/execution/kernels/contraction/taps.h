// A contraction with bounds, as in a convolution: what lies outside of a tensor is skipped, not multiplied.
#pragma once
#include "plan/plan.h"

namespace pol::POL_ISA {

// Whether this kernel can run the plan; if not, a matrix product can.
bool has_taps(const Plan& plan, const Run& run);
// Pieces of work of about equal cost.
int64_t tap_pieces(const Plan& plan, int64_t threads);
size_t tap_scratch();
void multiply_taps(const Plan& plan, const Run& run, int64_t piece, int64_t pieces, void* scratch);

}  // namespace pol::POL_ISA
