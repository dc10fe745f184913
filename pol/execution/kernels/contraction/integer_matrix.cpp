// A block of rows times a block of columns, over blocks of terms; vectors run over columns. Both operands are copied, so
// any reads will do. Words that are all numbers of 16 bits, as int8 is, are copied in pairs of terms: processors multiply
// two such pairs and add the products in one instruction.
#include "contraction/integer_matrix.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "nodes/lanes.h"

namespace pol::POL_ISA {
namespace {

#if defined(__AVX512BW__)
constexpr int kWidth = 16;
#elif defined(__AVX2__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif
typedef uint32_t Integers __attribute__((vector_size(kWidth * sizeof(uint32_t))));

constexpr int kTileRows = 4, kTileVectors = 2, kTileColumns = kTileVectors * kWidth;
constexpr int kRows = 128, kColumns = 256, kTerms = 128;

struct Blocks {
    // Both operands in panels: those of a tile's rows, or columns, next to each other, term by term.
    alignas(64) uint32_t x[kTerms * kRows], y[kTerms * kColumns], sum[kRows][kColumns];
    alignas(64) uint32_t buffer[kMaxLanes];
    int64_t strides[kMaxRank], bases[kMaxForms];
};

// Of words: their product. Of pairs of 16 bits: the sum of both products.
inline Integers multiplied(Integers x, Integers y) { return x * y; }
inline Integers multiplied_pairs(Integers x, Integers y) {
#if defined(__AVX512BW__)
    return reinterpret_cast<Integers>(_mm512_madd_epi16(reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(y)));
#elif defined(__AVX2__)
    return reinterpret_cast<Integers>(_mm256_madd_epi16(reinterpret_cast<__m256i>(x), reinterpret_cast<__m256i>(y)));
#else
    typedef int32_t Signed __attribute__((vector_size(kWidth * sizeof(int32_t))));
    const Signed high = reinterpret_cast<Signed>(x) >> 16, low = reinterpret_cast<Signed>(x << 16) >> 16;
    const Signed other_high = reinterpret_cast<Signed>(y) >> 16, other_low = reinterpret_cast<Signed>(y << 16) >> 16;
    return reinterpret_cast<Integers>(high) * reinterpret_cast<Integers>(other_high) + reinterpret_cast<Integers>(low) * reinterpret_cast<Integers>(other_low);
#endif
}

inline int64_t row_blocks(const ContractionPlan& shape) { return (shape.rows.size + kRows - 1) / kRows; }
inline int64_t column_blocks(const ContractionPlan& shape) { return (shape.columns.size + kColumns - 1) / kColumns; }
inline int within(int64_t size, int64_t first, int most) { return size - first < most ? static_cast<int>(size - first) : most; }

// `pack` for reads that can't leave the tensor: a panel at a time, whose places are read side by side.
template <int width>
void pack_safe(const Plan& plan, const Access& access, const Space& space, int64_t base, int64_t first, int count, int64_t k, int terms, uint32_t* to) {
    const int form = access.operand->address;
    int64_t term[kTerms];
    FoldIndex at;
    seek(plan, k, at);
    for (int t = 0; t < terms; ++t, advance(plan, at)) term[t] = at.offset[form];
    for (int place = 0; place < count; place += width) {
        const int filled = within(count, place, width);
        const uint32_t* from[width];
        for (int i = 0; i < width; ++i) from[i] = access.source + base + offset_at(space, plan.form[form].out, first + place + (i < filled ? i : 0));
        uint32_t* panel = to + place * kTerms;
        bool neighbors = filled == width;
        for (int i = 1; i < width; ++i) neighbors = neighbors && from[i] == from[0] + i;
        for (int t = 0; t < terms; ++t, panel += width) {
            if (neighbors)
                copy(panel, from[0] + term[t], 1, width);
            else
                for (int i = 0; i < width; ++i) panel[i] = from[i][term[t]];
        }
    }
}

// Panels of an operand: `count` places from `first` on, at the terms k .. k + terms - 1.
template <int width>
void pack(const Plan& plan, const Access& access, const Space& space, const int64_t* bases, int64_t first, int count, int64_t k, int terms, Lanes& lanes, uint32_t* buffer, uint32_t* to) {
    const int form = access.operand->address;
    if (access.safe && access.operand->gather < 0) {
        pack_safe<width>(plan, access, space, bases[form], first, count, k, terms, to);
        return;
    }
    locate(plan, space, bases, form, form + 1 + access.operand->bounds, first, count, lanes);
    FoldIndex at;
    seek(plan, k, at);
    for (int t = 0; t < terms; ++t, advance(plan, at)) {
        const uint32_t* words = fetch(plan, access, lanes, at, nullptr, buffer);
        for (int place = 0; place < count; place += width) {
            uint32_t* panel = to + place * kTerms + t * width;
            const int filled = within(count, place, width);
            copy(panel, words + place, 1, filled);
            fill(panel + filled, 0, width - filled);
        }
    }
}

template <int width>
bool is_short(const uint32_t* panels, int count, int terms) {
    uint32_t wide = 0;
    for (int place = 0; place < count; place += width)
        for (int i = 0; i < terms * width; ++i) wide |= (panels[place * kTerms + i] + 0x8000u) >> 16;
    return wide == 0;
}

// Terms 2 t and 2 t + 1 become the halves of word t; a last odd one is joined by zero.
template <int width>
void pair_terms(uint32_t* panels, int count, int terms) {
    for (int place = 0; place < count; place += width) {
        uint32_t* panel = panels + place * kTerms;
        if (terms % 2) fill(panel + terms * width, 0, width);
        for (int t = 0; t < terms; t += 2)
            for (int i = 0; i < width; ++i) panel[t / 2 * width + i] = (panel[t * width + i] & 0xffffu) | panel[(t + 1) * width + i] << 16;
    }
}

// sum += x * y
template <Integers (*product)(Integers, Integers)>
void add_products(Blocks& blocks, int rows, int columns, int terms) {
    for (int c = 0; c < columns; c += kTileColumns)
        for (int r = 0; r < rows; r += kTileRows) {
            const uint32_t *x = blocks.x + r * kTerms, *y = blocks.y + c * kTerms;
            Integers sum[kTileRows][kTileVectors];
            for (int i = 0; i < kTileRows; ++i) __builtin_memcpy(sum[i], &blocks.sum[r + i][c], sizeof(sum[i]));
            for (int t = 0; t < terms; ++t, x += kTileRows, y += kTileColumns) {
                Integers column[kTileVectors];
                __builtin_memcpy(column, y, sizeof(column));
#pragma GCC unroll 4
                for (int i = 0; i < kTileRows; ++i)
#pragma GCC unroll 2
                    for (int v = 0; v < kTileVectors; ++v) sum[i][v] += product(Integers{} + x[i], column[v]);
            }
            for (int i = 0; i < kTileRows; ++i) __builtin_memcpy(&blocks.sum[r + i][c], sum[i], sizeof(sum[i]));
        }
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
        pack<kTileRows>(plan, x, shape.rows, blocks.bases, row, rows, k, terms, lanes, blocks.buffer, blocks.x);
        pack<kTileColumns>(plan, y, shape.columns, blocks.bases, column, columns, k, terms, lanes, blocks.buffer, blocks.y);
        if (is_short<kTileRows>(blocks.x, rows, terms) && is_short<kTileColumns>(blocks.y, columns, terms)) {
            pair_terms<kTileRows>(blocks.x, rows, terms);
            pair_terms<kTileColumns>(blocks.y, columns, terms);
            add_products<multiplied_pairs>(blocks, rows, columns, (terms + 1) / 2);
        } else {
            add_products<multiplied>(blocks, rows, columns, terms);
        }
    }
    uint32_t* out = run.out + offset_at(shape.batch, blocks.strides, batch);
    for (int c = 0; c < columns; ++c) {
        const int64_t at = offset_at(shape.columns, blocks.strides, column + c);
        for (int r = 0; r < rows; ++r) out[at + offset_at(shape.rows, blocks.strides, row + r)] = blocks.sum[r][c];
    }
}

}  // namespace pol::POL_ISA
