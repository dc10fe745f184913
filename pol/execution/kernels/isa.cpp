// The table of this instruction-set build.
#include "isa.h"

#include "keccak_lanes.h"
#include "nodes.h"

#define POL_TEXT_(x) #x
#define POL_TEXT(x) POL_TEXT_(x)

namespace pol::POL_ISA {

extern const Isa table;
const Isa table = {POL_TEXT(POL_ISA),
                   hash_leaves,
                   hash_pairs,
                   keccak256,
                   {{element_tasks, element_scratch, compute_elements},
                    {contraction_tasks, contraction_scratch, contract},
                    {row_tasks, row_scratch, compute_rows}},
                   program_values};

}  // namespace pol::POL_ISA
