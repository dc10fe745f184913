#include "native/isa.h"

#include <atomic>
#include <initializer_list>

namespace pol {
namespace {

#if defined(__x86_64__)
// By single features, because older compilers cannot ask for a level; processors with these have the rest of their
// level.
bool runs_v3() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
#if defined(POL_WITHOUT_V4)
bool runs_v4() { return false; }
#else
bool runs_v4() {
    return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif
bool runs(Isa isa) { return isa == Isa::v4 ? runs_v4() : isa == Isa::v3 ? runs_v3() : true; }
#else
bool runs(Isa isa) { return isa == Isa::baseline; }
#endif

std::atomic<Isa>& current() {
    static std::atomic<Isa> isa{isas().front()};
    return isa;
}

}  // namespace

const char* name_of(Isa isa) { return isa == Isa::v4 ? "v4" : isa == Isa::v3 ? "v3" : "baseline"; }

std::vector<Isa> isas() {
    std::vector<Isa> found;
    for (const Isa isa : {Isa::v4, Isa::v3, Isa::baseline})
        if (runs(isa)) found.push_back(isa);
    return found;
}

Isa isa() { return current(); }

bool set_isa(const std::string& name) {
    for (const Isa isa : isas())
        if (name == name_of(isa)) {
            current() = isa;
            return true;
        }
    return false;
}

}  // namespace pol
