// The kernels of this instruction-set build.
#include "nodes/kernels.h"
#include "nodes/nodes.h"

namespace pol::POL_ISA {

extern const Kernels kernels;
const Kernels kernels = {{{element_tasks, element_scratch, compute_elements},
                          {contraction_tasks, contraction_scratch, contract},
                          {row_tasks, row_scratch, compute_rows},
                          {scatter_tasks, scatter_scratch, compute_scatter},
                          {rank_tasks, rank_scratch, compute_ranks},
                          {scan_tasks, scan_scratch, compute_scan}},
                         fused_scratch, compute_fused, chain_scratch, follow_chain, read_term, program_values, checksum};

}  // namespace pol::POL_ISA
