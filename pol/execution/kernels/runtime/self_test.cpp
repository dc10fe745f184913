#include "runtime/self_test.h"

#include "nodes/kernels.h"
#include "plan/plan.h"
#include "runtime/floating_point_mode.h"

namespace pol {
namespace {

constexpr size_t kWords = 4096;
constexpr int64_t kRows = 29, kTerms = 70, kColumns = 37;

// Zeros, ones, subnormal and extreme numbers, halves, infinities, NaNs, and integers around the edges of shifts and
// words.
constexpr uint32_t kSpecial[16] = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x00000001, 0x807fffff, 0x00800000, 0x7f7fffff,
                                   0x7f800000, 0xff800000, 0x7fc00000, 0xffa00001, 0x4b000001, 0x3f000000, 0x0000001f, 0xcf000000};

// A fixed permutation of the words (the finalizer of MurmurHash3).
uint32_t mix(uint32_t x) {
    x = (x ^ x >> 16) * 0x85ebca6b;
    x = (x ^ x >> 13) * 0xc2b2ae35;
    return x ^ x >> 16;
}

// All triples of special words, then pseudo-random ones.
std::vector<uint32_t> operand(uint32_t which) {
    std::vector<uint32_t> words(2 * kWords);
    for (uint32_t i = 0; i < kWords; ++i) {
        words[i] = kSpecial[i >> 4 * which & 15];
        words[kWords + i] = mix(3 * i + which);
    }
    return words;
}

// Numbers of moderate size, so that the products round but do not overflow.
std::vector<uint32_t> matrix(int64_t size, uint32_t seed) {
    std::vector<uint32_t> words;
    for (int64_t i = 0; i < size; ++i) words.push_back((mix(seed + static_cast<uint32_t>(i)) & 0x807fffff) | 0x3f000000);
    return words;
}

Descriptor product() {
    Descriptor d;
    d.dims = {kRows, kColumns};
    d.fold = {kTerms};
    d.numel = kRows * kColumns;
    d.terms = kTerms;
    Operand x, y;
    x.source = y.source = kConstant;
    x.numel = kRows * kTerms;
    x.address.strides[1] = kTerms;
    x.address.strides[3] = 1;
    y.index = 1;
    y.numel = kTerms * kColumns;
    y.address.strides[2] = 1;
    y.address.strides[3] = kColumns;
    d.operands = {x, y};
    d.inputs = {{kAccumulator, 0}, {kOperand, 0}, {kOperand, 1}};
    d.body.inputs = 3;
    d.body.instructions = {{FFMA, 1, 2, 0}};
    return d;
}

}  // namespace

std::vector<uint32_t> self_test_words() {
    const FloatingPointMode mode;
    std::vector<uint32_t> results;
    std::vector<uint32_t> operands[3] = {operand(0), operand(1), operand(2)};
    std::vector<uint32_t> result(2 * kWords);
    uint32_t* registers[4] = {operands[0].data(), operands[1].data(), operands[2].data(), result.data()};
    for (int op = 0; op < 256; ++op) {
        if (arity(static_cast<uint8_t>(op)) == 0) continue;
        const PlannedInstruction instruction{static_cast<uint8_t>(op), 3, 0, 1, 2, 0, 0};
        kernels().program_values(&instruction, 1, registers, result.size());
        results.insert(results.end(), result.begin(), result.end());
    }
    const std::vector<uint32_t> x = matrix(kRows * kTerms, 1 << 20), y = matrix(kTerms * kColumns, 2 << 20);
    const uint32_t* sources[2] = {x.data(), y.data()};
    std::vector<uint32_t> out(kRows * kColumns);
    PlannedNode(product()).run(0, sources, out.data(), 1);
    results.insert(results.end(), out.begin(), out.end());
    return results;
}

}  // namespace pol
