// The kernels of this instruction-set build; kernels.h says what each function does.
#pragma once
#include "nodes/kernels.h"
#include "plan/plan.h"

namespace pol::POL_ISA {

size_t element_tasks(const Plan& plan, size_t threads);
size_t element_scratch(const Plan& plan);
void compute_elements(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch);

size_t contraction_tasks(const Plan& plan, size_t threads);
size_t contraction_scratch(const Plan& plan);
void contract(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch);

size_t row_tasks(const Plan& plan, size_t threads);
size_t row_scratch(const Plan& plan);
void compute_rows(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch);

size_t scatter_tasks(const Plan& plan, size_t threads);
size_t scatter_scratch(const Plan& plan);
void compute_scatter(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch);

size_t rank_tasks(const Plan& plan, size_t threads);
size_t rank_scratch(const Plan& plan);
void compute_ranks(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch);

size_t scan_tasks(const Plan& plan, size_t threads);
size_t scan_scratch(const Plan& plan);
void compute_scan(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch);

size_t fused_scratch(const FusedStage& stage);
void compute_fused(const FusedStage& stage, const FusedRun& run, void* scratch);

size_t chain_scratch(const Plan& plan);
void follow_chain(const Plan& plan, const Run& run, const Chain& chain, void* scratch);
void read_term(const Plan& plan, const Run& run, int64_t term, uint32_t* words, void* scratch);

void program_values(const PlannedInstruction* instructions, int count, uint32_t* const* registers, size_t lanes);

uint64_t checksum(const uint32_t* words, int64_t count);

}  // namespace pol::POL_ISA
