// Node descriptors as they are committed (docs/spec/program.md), parsed and checked.
#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace pol {

constexpr int kMaxRank = 8;
constexpr int kMaxFoldRank = 4;
constexpr int kMaxOperands = 16;
constexpr int kMaxBounds = 4;
constexpr int kMaxCoordinates = 1 + kMaxRank + kMaxFoldRank;

// The bytes break a rule of the specification; becomes a ProtocolError in Python.
struct Malformed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Integers big-endian, from a byte string of known length.
class Reader {
   public:
    Reader(const uint8_t* data, size_t size) : data_(data), size_(size) {}
    uint8_t u8() { return static_cast<uint8_t>(take(1)); }
    uint32_t u32() { return static_cast<uint32_t>(take(4)); }
    int64_t i64() { return static_cast<int64_t>(take(8)); }
    bool at_end() const { return position_ == size_; }

   private:
    uint64_t take(size_t bytes);
    const uint8_t* data_;
    size_t size_;
    size_t position_ = 0;
};

// Primitive codes of docs/spec/arithmetic.md.
enum Op : uint8_t {
    FADD = 0x01, FSUB, FMUL, FDIV, FFMA, FSQRT, FMIN, FMAX, FEQ, FLT, FLE, FNEG, FABS, FRINT,
    F2I = 0x10, I2F, F2U, U2F, F2LHI, F2LLO, L2F, RBF16, RF16,
    ADD = 0x20, SUB, MUL, MULHI, AND, OR, XOR, SHL, SHR, SAR, EQ, LTU, LTS,
    SELECT = 0x30, MOV,
};
// Number of operands of a primitive; 0 for a code that is not one.
int arity(uint8_t op);

struct Instruction {
    uint8_t op, a, b, c;
};

struct ScalarProgram {
    int inputs = 0;
    std::vector<uint32_t> constants;
    std::vector<Instruction> instructions;
    // Reads to the end; throws Malformed.
    static ScalarProgram read(Reader& reader);
};

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
    // Throws Malformed unless the bytes are exactly one valid descriptor.
    static Descriptor parse(const uint8_t* data, size_t size);
};

}  // namespace pol
