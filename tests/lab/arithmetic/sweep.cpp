// Compares a function with its definition in binary64 over words and their negatives: errors, order, symmetry.
//
// Built by exhaustive.py with two generated files: program.h (native.py) and reference.cpp.
// Usage: sweep FIRST LAST DIRECTION MIRROR over FIRST <= magnitude < LAST. DIRECTION is 1 for a function that should not fall
// as its argument grows, -1 for one that should not rise, 0 for others; MIRROR is the factor -1 or 1 between f(-x) and f(x),
// 0 if there is none. Or: sweep results, for the results of words on standard input.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

namespace {

// Written once more, not shared with the kernels: what is measured here must not depend on what it is compared with.
constexpr uint32_t kNan = 0x7fc00000, kSign = 0x80000000;

inline float number(uint32_t word) {
    float value;
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
}
inline uint32_t bits(float value) {
    uint32_t word;
    __builtin_memcpy(&word, &value, sizeof word);
    return word;
}
inline bool is_nan(uint32_t word) { return (word & ~kSign) > 0x7f800000; }
inline uint32_t word(float value) { return value != value ? kNan : bits(value); }
inline uint32_t least(uint32_t a, uint32_t b) {
    const float x = number(a), y = number(b);
    const uint32_t ordered = x < y ? a : y < x ? b : a | b;
    return (x != x) | (y != y) ? kNan : ordered;
}
inline uint32_t greatest(uint32_t a, uint32_t b) {
    const float x = number(a), y = number(b);
    const uint32_t ordered = x > y ? a : y > x ? b : a & b;
    return (x != x) | (y != y) ? kNan : ordered;
}
inline uint32_t truncated(uint32_t a) {
    const float x = number(a);
    const bool fits = x >= -2147483648.0f && x < 2147483648.0f;
    return fits ? static_cast<uint32_t>(static_cast<int32_t>(fits ? x : 0.0f)) : is_nan(a) ? 0u : a >> 31 ? 0x80000000u : 0x7fffffffu;
}
inline uint32_t truncated_unsigned(uint32_t a) {
    const float x = number(a);
    const bool fits = x >= 0.0f && x < 4294967296.0f;
    return fits ? static_cast<uint32_t>(static_cast<int64_t>(fits ? x : 0.0f)) : is_nan(a) || a >> 31 ? 0u : 0xffffffffu;
}
inline uint64_t truncated_wide(uint32_t a) {
    const float x = number(a);
    const bool fits = x >= -0x1p63f && x < 0x1p63f;
    return fits ? static_cast<uint64_t>(static_cast<int64_t>(fits ? x : 0.0f)) : is_nan(a) ? 0u : a >> 31 ? uint64_t{1} << 63 : ~uint64_t{0} >> 1;
}
inline uint32_t rounded_f16(uint32_t a) {
    const uint32_t size = a & ~kSign;
    // Below 2^-14 the numbers of the format are 2^-24 apart, as those of binary32 are from 1/2 to 1.
    const uint32_t rounded = size < 0x38800000 ? bits((number(size) + 0.5f) - 0.5f) : (size + 0xfff + (size >> 13 & 1)) & 0xffffe000;
    return is_nan(a) ? kNan : (rounded > 0x477fe000 ? 0x7f800000 : rounded) | (a & kSign);
}

#include "program.h"

constexpr int kBlock = 2048;

// The distance in units in the last place of binary32 at the exact value, as the bits of a binary64 number, which order like it.
inline int64_t distance(uint32_t result, double exact) {
    const double value = number(result), size = __builtin_fabs(exact);
    int64_t field;
    __builtin_memcpy(&field, &size, sizeof field);
    field >>= 52;
    field = field < 897 ? 897 : field > 1150 ? 1150 : field;  // exponents -126 .. 127
    const int64_t scale_bits = (2069 - field) << 52;            // 2^(23 - exponent)
    double scale;
    __builtin_memcpy(&scale, &scale_bits, sizeof scale);
    const double infinity = std::numeric_limits<double>::infinity();
    const double found = __builtin_fabs(value - exact) * scale;
    // Without short cuts, so that compilers can work on several numbers at once.
    const bool overflows = (value * exact == infinity) & (__builtin_fabs(value) == infinity) & (size >= 0x1p128 - 0x1p103);
    const bool right = overflows | (value == exact) | ((value != value) & (exact != exact));
    const double known = found == found ? found : infinity;
    const double error = right ? 0.0 : known;
    int64_t error_bits;
    __builtin_memcpy(&error_bits, &error, sizeof error_bits);
    return error_bits;
}

// Binary32 numbers as integers in the same order; both zeros are 0.
inline int64_t rank(uint32_t word) { return word & kSign ? -static_cast<int64_t>(word & ~kSign) : static_cast<int64_t>(word); }

struct Side {
    uint32_t result[kBlock + 1];  // from the last one of the block before
    bool started = false;
};

}  // namespace

void reference(const double* __restrict x, double* __restrict y, int count);

int main(int argc, char** argv) {
    if (argc == 2 && std::strcmp(argv[1], "results") == 0) {
        std::vector<uint32_t> words(kBlock);
        for (size_t n; (n = std::fread(words.data(), sizeof(uint32_t), kBlock, stdin)) > 0;) {
            for (size_t j = 0; j < n; ++j) words[j] = program(words[j]);
            if (std::fwrite(words.data(), sizeof(uint32_t), n, stdout) != n) return 1;
        }
        return 0;
    }
    if (argc != 5) return 2;
    const int64_t first = std::atoll(argv[1]), last = std::atoll(argv[2]);
    const int direction = std::atoi(argv[3]), mirror = std::atoi(argv[4]);
    static Side sides[2];
    static double x[kBlock], exact[kBlock];
    static int64_t error[kBlock];
    int64_t greatest_error = -1, steps_back = 0, furthest_back = 0, odd_breaks = 0, even_breaks = 0, foreign_nans = 0;
    uint32_t worst = 0;
    for (int64_t start = first; start < last; start += kBlock) {
        const int count = static_cast<int>(last - start < kBlock ? last - start : kBlock);
        for (int negative = 0; negative < 2; ++negative) {
            const uint32_t sign = negative ? kSign : 0;
            Side& side = sides[negative];
            uint32_t* const result = side.result + 1;
            for (int j = 0; j < count; ++j) result[j] = program(static_cast<uint32_t>(start + j) | sign);
            if (negative && mirror != 0) {
                for (int j = 0; j < count; ++j) exact[j] *= mirror;
            } else {
                for (int j = 0; j < count; ++j) x[j] = number(static_cast<uint32_t>(start + j) | sign);
                reference(x, exact, count);
            }
            int64_t block_error = -1;
            for (int j = 0; j < count; ++j) {
                error[j] = distance(result[j], exact[j]);
                block_error = error[j] > block_error ? error[j] : block_error;
            }
            if (block_error > greatest_error) {
                greatest_error = block_error;
                for (int j = count - 1; j >= 0; --j)
                    if (error[j] == block_error) worst = static_cast<uint32_t>(start + j) | sign;
            }
            for (int j = 0; j < count; ++j) foreign_nans += is_nan(result[j]) && result[j] != kNan;
            if (!side.started) side.result[0] = result[0];
            side.started = true;
            const int64_t towards = negative ? -direction : direction;
            int64_t back = 0, furthest = 0;
            for (int j = 0; j < count; ++j) {
                const int64_t step = towards * (rank(side.result[j]) - rank(result[j]));
                const int64_t found = step > 0 && !is_nan(side.result[j]) && !is_nan(result[j]) ? step : 0;
                back += found > 0;
                furthest = found > furthest ? found : furthest;
            }
            steps_back += back;
            furthest_back = furthest > furthest_back ? furthest : furthest_back;
        }
        int64_t odd = 0, even = 0;
        for (int j = 1; j <= count; ++j) {
            const uint32_t plus = sides[0].result[j], minus = sides[1].result[j];
            odd += (plus ^ kSign) != minus && !(is_nan(plus) && plus == minus);
            even += plus != minus;
        }
        odd_breaks += odd;
        even_breaks += even;
        for (Side& side : sides) side.result[0] = side.result[count];
    }
    double greatest_number;
    __builtin_memcpy(&greatest_number, &greatest_error, sizeof greatest_number);
    std::printf("%.17g %u %lld %lld %lld %lld %lld\n", greatest_number, worst, static_cast<long long>(steps_back),
                static_cast<long long>(furthest_back), static_cast<long long>(odd_breaks), static_cast<long long>(even_breaks),
                static_cast<long long>(foreign_nans));
    return 0;
}
