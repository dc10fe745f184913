// Scalar programs as they are committed (docs/spec/arithmetic.md), parsed and checked.
#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace pol {

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

constexpr int kMaxRegisters = 256;

// Primitive codes of docs/spec/arithmetic.md.
enum Op : uint8_t {
    FADD = 0x01, FSUB, FMUL, FDIV, FFMA, FSQRT, FMIN, FMAX, FEQ, FLT, FLE, FNEG, FABS, FRINT,
    F2I = 0x10, I2F, F2U, U2F, F2LHI, F2LLO, L2F, RBF16, RF16,
    ADD = 0x20, SUB, MUL, MULHI, AND, OR, XOR, SHL, SHR, SAR, EQ, LTU, LTS,
    SELECT = 0x30, MOV,
};
// Flag on a primitive's code: a NaN that it yields need not be the canonical one.
constexpr uint8_t kLazy = 0x40;
constexpr bool has_lazy_form(uint8_t op) { return op <= FMIN || op == FNEG || op == FABS; }
// Whether it tells one NaN from another.
constexpr bool sees_bits(uint8_t op) { return op == I2F || op == U2F || op == L2F || (op >= ADD && op <= LTS); }

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

}  // namespace pol
