// The instruction sets that a module is built for, and the one in use. Every build computes the same bits; only speed
// differs.
//
// Files that are compiled once per set must not use inline library code (templates, containers): the linker keeps one
// copy of such functions, and if that were the copy with AVX-512 instructions, older processors would crash.
#pragma once
#include <string>
#include <vector>

namespace pol {

// v3 and v4: the levels x86-64-v3 (AVX2) and x86-64-v4 (AVX-512).
enum class Isa { baseline, v3, v4 };

const char* name_of(Isa isa);
// The sets that can run here, the best first.
std::vector<Isa> isas();
// The set in use: the best one, or the one that set_isa has named.
Isa isa();
// Returns false if no set of this name can run here.
bool set_isa(const std::string& name);

}  // namespace pol

// Declares the table `name`, which every build defines in its own namespace, and defines the function `name` that
// returns the table in use.
#if !defined(__x86_64__)
#define POL_TABLE_IN_USE(Table, name)               \
    namespace baseline { extern const Table name; } \
    const Table& name() { return baseline::name; }
#elif defined(POL_WITHOUT_V4)
#define POL_TABLE_IN_USE(Table, name)               \
    namespace baseline { extern const Table name; } \
    namespace v3 { extern const Table name; }       \
    const Table& name() { return isa() == Isa::v3 ? v3::name : baseline::name; }
#else
#define POL_TABLE_IN_USE(Table, name)                      \
    namespace baseline { extern const Table name; }        \
    namespace v3 { extern const Table name; }              \
    namespace v4 { extern const Table name; }              \
    const Table& name() {                                  \
        const Isa set = isa();                             \
        if (set == Isa::v4) return v4::name;               \
        return set == Isa::v3 ? v3::name : baseline::name; \
    }
#endif
