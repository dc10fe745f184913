// Node descriptors as they are committed (docs/spec/program.md), parsed and checked.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "arithmetic/scalar_program.h"

namespace pol {

constexpr int kMaxRank = 8;
constexpr int kMaxFoldRank = 4;
constexpr int kMaxOperands = 16;
constexpr int kMaxBounds = 4;
constexpr int kMaxCoordinates = 1 + kMaxRank + kMaxFoldRank;
constexpr int kMaxForms = kMaxOperands * (1 + kMaxBounds) + kMaxCoordinates;  // affine forms of a node

// base + sum of strides times coordinates (step, element..., fold...).
struct Affine {
    int64_t base = 0;
    int64_t strides[kMaxCoordinates] = {};
};

struct Bound {
    Affine affine;
    int64_t limit = 0;
};

struct Operand {
    uint8_t source = 0;
    uint32_t index = 0;
    int64_t numel = 0;
    uint32_t fill = 0;
    Affine address;
    std::vector<Bound> bounds;
    int gather = -1;
    int64_t gather_stride = 0;
    int64_t gather_limit = 0;
};

enum Source : uint8_t { kState = 1, kConstant = 2, kNode = 3 };
enum InputKind : uint8_t { kAccumulator = 1, kOperand = 2, kCoordinate = 3 };

struct Input {
    uint8_t kind, index;
};

struct Descriptor {
    std::vector<int64_t> dims;
    std::vector<int64_t> fold;  // empty for a map
    int64_t numel = 1;
    int64_t terms = 1;
    uint32_t init = 0;
    std::vector<Operand> operands;
    std::vector<Input> inputs;
    ScalarProgram body;
    std::vector<int64_t> origin;  // coordinates of the first element; empty: zeros
    // The terms of one element's fold as the elements of a map: the same body, whose accumulator is given to each of them.
    Descriptor terms_of(int64_t element) const;
    // Throws Malformed unless the bytes are exactly one valid descriptor.
    static Descriptor parse(const uint8_t* data, size_t size);
};

}  // namespace pol
