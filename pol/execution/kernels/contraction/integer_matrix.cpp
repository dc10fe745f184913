// A block of rows times a block of columns, over blocks of terms; vectors run over columns. Both operands are copied, so
// any reads will do.
#include "contraction/integer_matrix.h"

#include "nodes/lanes.h"

namespace pol::POL_ISA {
namespace {

constexpr int kRows = 64, kColumns = 64, kTerms = 128;
constexpr int kRowsAtOnce = 4;

struct Blocks {
    alignas(64) uint32_t x[kTerms][kRows], y[kTerms][kColumns], sum[kRows][kColumns];
    alignas(64) uint32_t buffer[kMaxLanes];
    int64_t strides[kMaxRank], bases[kMaxForms];
};

inline int64_t row_blocks(const ContractionPlan& shape) { return (shape.rows.size + kRows - 1) / kRows; }
inline int64_t column_blocks(const ContractionPlan& shape) { return (shape.columns.size + kColumns - 1) / kColumns; }
inline int within(int64_t size, int64_t first, int most) { return size - first < most ? static_cast<int>(size - first) : most; }

// The words of an operand for `count` places from `first` on, at the terms k .. k + terms - 1.
template <int width>
void read(const Plan& plan, const Access& access, const Space& space, const int64_t* bases, int64_t first, int count, int64_t k, int terms, Lanes& lanes, uint32_t* buffer, uint32_t (*to)[width]) {
    const int form = access.operand->address;
    locate(plan, space, bases, form, form + 1 + access.operand->bounds, first, count, lanes);
    FoldIndex at;
    seek(plan, k, at);
    for (int t = 0; t < terms; ++t, advance(plan, at)) copy(to[t], fetch(plan, access, lanes, at, nullptr, buffer), 1, count);
}

// sum += x * y; rows and columns past the last one hold anything.
void add_products(Blocks& blocks, int rows, int terms) {
    for (int r = 0; r < rows; r += kRowsAtOnce)
        for (int t = 0; t < terms; ++t)
#pragma GCC unroll 4
            for (int i = r; i < r + kRowsAtOnce; ++i)
                for (int c = 0; c < kColumns; ++c) blocks.sum[i][c] += blocks.x[t][i] * blocks.y[t][c];
}

}  // namespace

int64_t integer_pieces(const Plan& plan) {
    const ContractionPlan& shape = plan.contraction;
    return shape.batch.size * row_blocks(shape) * column_blocks(shape);
}

size_t integer_scratch(const Plan& plan) { return sizeof(Blocks) + lanes_bytes(plan.forms); }

void multiply_integers(const Plan& plan, const Run& run, int64_t piece, void* scratch) {
    const ContractionPlan& shape = plan.contraction;
    Blocks& blocks = *static_cast<Blocks*>(scratch);
    Lanes lanes = lanes_in(static_cast<uint8_t*>(scratch) + sizeof(Blocks));
    const int64_t columns_of = column_blocks(shape), batch = piece / (row_blocks(shape) * columns_of);
    const int64_t row = piece / columns_of % row_blocks(shape) * kRows, column = piece % columns_of * kColumns;
    const int rows = within(shape.rows.size, row, kRows), columns = within(shape.columns.size, column, kColumns);
    const Access x = access_to(plan, run, shape.x, shape.rows), y = access_to(plan, run, shape.y, shape.columns);
    output_strides(plan, blocks.strides);
    for (int f = 0; f < plan.forms; ++f) blocks.bases[f] = run.bases[f] + offset_at(shape.batch, plan.form[f].out, batch);
    for (int r = 0; r < kRows; ++r) fill(blocks.sum[r], plan.init, kColumns);
    for (int64_t k = 0; k < plan.terms; k += kTerms) {
        const int terms = within(plan.terms, k, kTerms);
        read(plan, x, shape.rows, blocks.bases, row, rows, k, terms, lanes, blocks.buffer, blocks.x);
        read(plan, y, shape.columns, blocks.bases, column, columns, k, terms, lanes, blocks.buffer, blocks.y);
        add_products(blocks, rows, terms);
    }
    uint32_t* out = run.out + offset_at(shape.batch, blocks.strides, batch);
    for (int c = 0; c < columns; ++c) {
        const int64_t at = offset_at(shape.columns, blocks.strides, column + c);
        for (int r = 0; r < rows; ++r) out[at + offset_at(shape.rows, blocks.strides, row + r)] = blocks.sum[r][c];
    }
}

}  // namespace pol::POL_ISA
