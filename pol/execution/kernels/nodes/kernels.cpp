#include "nodes/kernels.h"

#include "native/isa.h"

namespace pol {

POL_TABLE_IN_USE(Kernels, kernels)

}  // namespace pol
