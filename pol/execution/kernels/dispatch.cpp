// Chooses the instruction-set build at run time.
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "isa.h"

namespace pol {

namespace baseline {
extern const Isa table;
}
#ifdef POL_HAS_ISA_v3
namespace v3 {
extern const Isa table;
}
#endif
#ifdef POL_HAS_ISA_v4
namespace v4 {
extern const Isa table;
}
#endif

namespace {

std::atomic<const Isa*> current{nullptr};

// By single features, because older compilers cannot ask for a level; processors with these have the rest of their level.
#ifdef POL_HAS_ISA_v3
bool supports_v3() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
#endif
#ifdef POL_HAS_ISA_v4
bool supports_v4() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

}  // namespace

const Isa* available_isa(size_t i) {
#ifdef POL_HAS_ISA_v4
    if (supports_v4() && i-- == 0) return &v4::table;
#endif
#ifdef POL_HAS_ISA_v3
    if (supports_v3() && i-- == 0) return &v3::table;
#endif
    return i == 0 ? &baseline::table : nullptr;
}

bool set_isa(const char* name) {
    const Isa* candidate;
    for (size_t i = 0; (candidate = available_isa(i)) != nullptr; ++i)
        if (std::strcmp(candidate->name, name) == 0) {
            current = candidate;
            return true;
        }
    return false;
}

const Isa& isa() {
    const Isa* chosen = current;
    if (chosen == nullptr) current = chosen = available_isa(0);
    return *chosen;
}

}  // namespace pol
