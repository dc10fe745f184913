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

}  // namespace

const Isa* available_isa(size_t i) {
#ifdef POL_HAS_ISA_v4
    if (__builtin_cpu_supports("x86-64-v4") && i-- == 0) return &v4::table;
#endif
#ifdef POL_HAS_ISA_v3
    if (__builtin_cpu_supports("x86-64-v3") && i-- == 0) return &v3::table;
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
