// Checksums of arrays, to see whether somebody has changed them.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/step.h"

namespace pol {

// One for each array; the same with any number of threads, but not by every instruction set or version.
std::vector<uint64_t> checksums(const std::vector<Words>& arrays, size_t threads);

}  // namespace pol
