#include "hashing.h"

#include "native/isa.h"

namespace pol {

POL_TABLE_IN_USE(Hashing, hashing)

}  // namespace pol
