#include "plan/descriptor.h"

#include <string>

namespace pol {
namespace {

constexpr int64_t kElementLimit = int64_t{1} << 31;
constexpr int64_t kTermLimit = int64_t{1} << 32;
constexpr int64_t kSteps = int64_t{1} << 32;

[[noreturn]] void fail(const std::string& what) { throw Malformed(what); }

// Dimensions and their product, which must stay below the limit.
int64_t read_dims(Reader& reader, int max_rank, int64_t limit, std::vector<int64_t>* dims) {
    const int rank = reader.u8();
    if (rank > max_rank) fail("rank " + std::to_string(rank) + " is above " + std::to_string(max_rank));
    int64_t product = 1;
    for (int i = 0; i < rank; ++i) {
        const int64_t size = reader.u32();
        if (size == 0) fail("a dimension is 0");
        if (__builtin_mul_overflow(product, size, &product) || product >= limit) fail("a shape has too many elements");
        if (dims != nullptr) dims->push_back(size);
    }
    return product;
}

void read_dtype(Reader& reader) {
    const int dtype = reader.u8();
    if (dtype != 1 && dtype != 2) fail("unknown dtype code " + std::to_string(dtype));
}

Affine read_affine(Reader& reader, int coordinates) {
    Affine affine;
    affine.base = reader.i64();
    for (int i = 0; i < coordinates; ++i) affine.strides[i] = reader.i64();
    return affine;
}

unsigned __int128 magnitude(int64_t x) { return x < 0 ? -static_cast<__int128>(x) : static_cast<__int128>(x); }

// No value, and no partial sum in any order, may leave the range of i64.
void check_reach(const Affine& affine, const std::vector<int64_t>& extents, unsigned __int128 reach) {
    reach += magnitude(affine.base);
    for (size_t i = 0; i < extents.size(); ++i) reach += magnitude(affine.strides[i]) * static_cast<uint64_t>(extents[i] - 1);
    if (reach > static_cast<uint64_t>(INT64_MAX)) fail("an address can leave the range of i64");
}

Operand read_operand(Reader& reader, const std::vector<Operand>& earlier, const std::vector<int64_t>& extents) {
    const int coordinates = static_cast<int>(extents.size());
    Operand operand;
    operand.source = reader.u8();
    if (operand.source < kState || operand.source > kNode) fail("unknown source code " + std::to_string(operand.source));
    operand.index = reader.u32();
    read_dtype(reader);
    operand.numel = read_dims(reader, kMaxRank, kElementLimit, nullptr);
    operand.fill = reader.u32();
    operand.address = read_affine(reader, coordinates);
    const int bounds = reader.u8();
    if (bounds > kMaxBounds) fail("too many bounds");
    for (int i = 0; i < bounds; ++i) {
        Bound bound;
        bound.affine = read_affine(reader, coordinates);
        bound.limit = reader.i64();
        check_reach(bound.affine, extents, 0);
        operand.bounds.push_back(bound);
    }
    unsigned __int128 reach = 0;
    const int gathers = reader.u8();
    if (gathers > 1) fail("an operand gathers at most once");
    if (gathers == 1) {
        operand.gather = reader.u8();
        operand.gather_stride = reader.i64();
        operand.gather_limit = reader.i64();
        if (static_cast<size_t>(operand.gather) >= earlier.size() || earlier[operand.gather].gather >= 0)
            fail("an operand gathers through an earlier one that does not gather");
        const int64_t greatest = operand.gather_limit - (operand.gather_limit > 0);
        reach = magnitude(operand.gather_stride) * static_cast<uint64_t>(greatest < 0 ? 0 : greatest > INT32_MAX ? INT32_MAX : greatest);
    }
    check_reach(operand.address, extents, reach);
    return operand;
}

}  // namespace

Descriptor Descriptor::terms_of(int64_t element) const {
    Descriptor map = *this;
    map.origin.assign(1 + dims.size() + fold.size(), 0);
    for (size_t d = dims.size(); d-- > 0; element /= dims[d]) map.origin[1 + d] = element % dims[d];
    const auto move = [&](Affine& affine) {
        for (size_t i = 0; i < map.origin.size(); ++i) affine.base += affine.strides[i] * map.origin[i];
    };
    for (Operand& operand : map.operands) {
        move(operand.address);
        for (Bound& bound : operand.bounds) move(bound.affine);
    }
    map.dims.assign(dims.size(), 1);
    map.dims.insert(map.dims.end(), fold.begin(), fold.end());
    map.fold.clear();
    map.numel = terms;
    map.terms = 1;
    map.init = 0;
    return map;
}

Descriptor Descriptor::parse(const uint8_t* data, size_t size) {
    Reader reader(data, size);
    Descriptor d;
    const int version = reader.u8();
    if (version != 1) fail("unknown node descriptor version " + std::to_string(version));
    read_dtype(reader);
    d.numel = read_dims(reader, kMaxRank, kElementLimit, &d.dims);
    d.terms = read_dims(reader, kMaxFoldRank, kTermLimit, &d.fold);
    d.init = reader.u32();
    if (d.fold.empty() && d.init != 0) fail("a map has init 0");
    std::vector<int64_t> extents{kSteps};
    extents.insert(extents.end(), d.dims.begin(), d.dims.end());
    extents.insert(extents.end(), d.fold.begin(), d.fold.end());
    const int operands = reader.u8();
    if (operands > kMaxOperands) fail("too many operands");
    for (int i = 0; i < operands; ++i) d.operands.push_back(read_operand(reader, d.operands, extents));
    const int inputs = reader.u8();
    for (int i = 0; i < inputs; ++i) {
        Input input;
        input.kind = reader.u8();
        input.index = reader.u8();
        const bool valid = (input.kind == kAccumulator && input.index == 0 && !d.fold.empty()) ||
                           (input.kind == kOperand && input.index < operands) ||
                           (input.kind == kCoordinate && input.index < extents.size());
        if (!valid) fail("an input names an accumulator, operand or coordinate that does not exist");
        d.inputs.push_back(input);
    }
    d.body = ScalarProgram::read(reader);
    if (d.body.inputs != inputs) fail("the scalar program has another number of inputs than the node");
    return d;
}

}  // namespace pol
