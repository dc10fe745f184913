// Products of integer matrices: acc = ADD(acc, MUL(x, y)) modulo 2^32, which every order of the terms gives.
#pragma once
#include "plan/plan.h"

namespace pol::POL_ISA {

// Pieces of work of about equal cost.
int64_t integer_pieces(const Plan& plan);
size_t integer_scratch(const Plan& plan);
void multiply_integers(const Plan& plan, const Run& run, int64_t piece, void* scratch);

}  // namespace pol::POL_ISA
