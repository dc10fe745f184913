// Products of one or two rows with a matrix.
#pragma once
#include "nodes/kernels.h"

namespace pol::POL_ISA {

bool has_few_rows(const Plan& plan, const Run& run);
void multiply_few_rows(const Plan& plan, const Run& run, int64_t piece, int64_t pieces);

}  // namespace pol::POL_ISA
