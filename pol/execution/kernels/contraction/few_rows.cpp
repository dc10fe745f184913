// One or two rows times a matrix: every word of the matrix is used once or twice, so it is read where it is, in the order
// of memory, and transposed in registers if its terms are neighbors.
#include "contraction/few_rows.h"

#include "contraction/tile.h"
#include "nodes/lanes.h"

namespace pol::POL_ISA {
namespace {

constexpr int kMostRows = 2;
constexpr int kWideVectors = 8;                        // of a tile, where columns are neighbors
constexpr int kTermsInTurn = 16;                       // lines of the matrix that are read side by side
constexpr int kGroups = 4;                             // of eight columns, where terms are neighbors
constexpr int64_t kSmallestPiece = 8 * kTileColumns;   // columns

// A run of columns of one batch element.
struct FewRows {
    int64_t terms, x_step, y_step, y_column, out_column;
    const float* x[kMostRows];
    const float* y;
    float* out[kMostRows];
    float init;

    template <int rows, int vectors>
    void multiply_wide(int64_t first, int64_t term, int count, const Ends& ends) const {
        const float* at[rows];
        float* to[rows];
        for (int r = 0; r < rows; ++r) {
            at[r] = x[r] + term * x_step;
            to[r] = out[r] + first;
        }
        multiply<rows, vectors, Stepped>({count, x_step, y_step}, ends, at, y + first + term * y_step, to);
    }

    // Columns are neighbors: some terms at a time add to all of the output, which stays in the first-level cache.
    template <int rows>
    void by_lines(int64_t columns) const {
        constexpr int width = kWideVectors * Vector::width;
        const int64_t whole = columns / Vector::width * Vector::width;
        for (int64_t term = 0; term < terms; term += kTermsInTurn) {
            const int count = terms - term < kTermsInTurn ? static_cast<int>(terms - term) : kTermsInTurn;
            const Ends ends{term == 0, term + count == terms, init};
            int64_t c = 0;
            for (; c + width <= whole; c += width) multiply_wide<rows, kWideVectors>(c, term, count, ends);
            for (; c < whole; c += Vector::width) multiply_wide<rows, 1>(c, term, count, ends);
        }
        for (int64_t c = whole; c < columns; ++c)
            for (int r = 0; r < rows; ++r) single(r, c);
    }

    // Any element by itself.
    void single(int r, int64_t column) const {
        float sum = init;
        for (int64_t t = 0; t < terms; ++t) sum = __builtin_fmaf(x[r][t * x_step], y[column * y_column + t * y_step], sum);
        out[r][column * out_column] = number(word<false>(sum));
    }

#if defined(__AVX2__)
    // Eight words of eight columns, transposed: to[i] has word i of every column.
    [[gnu::always_inline]] static void transposed(const float* const* from, __m256* to) {
        __m256 a[8], b[8];
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            a[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from[i])), _mm_loadu_ps(from[i + 4]), 1);
            a[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from[i] + 4)), _mm_loadu_ps(from[i + 4] + 4), 1);
        }
#pragma GCC unroll 2
        for (int h = 0; h < 8; h += 4) {
            b[h] = _mm256_unpacklo_ps(a[h], a[h + 1]);
            b[h + 1] = _mm256_unpackhi_ps(a[h], a[h + 1]);
            b[h + 2] = _mm256_unpacklo_ps(a[h + 2], a[h + 3]);
            b[h + 3] = _mm256_unpackhi_ps(a[h + 2], a[h + 3]);
            to[h] = _mm256_shuffle_ps(b[h], b[h + 2], 0x44);
            to[h + 1] = _mm256_shuffle_ps(b[h], b[h + 2], 0xee);
            to[h + 2] = _mm256_shuffle_ps(b[h + 1], b[h + 3], 0x44);
            to[h + 3] = _mm256_shuffle_ps(b[h + 1], b[h + 3], 0xee);
        }
    }

    // Terms are neighbors: 32 columns at a time, all terms.
    template <int rows>
    void by_columns(int64_t columns) const {
        constexpr int width = 8 * kGroups;
        int64_t c = 0;
        for (; c + width <= columns; c += width) {
            const float* from[width];
            for (int i = 0; i < width; ++i) from[i] = y + (c + i) * y_column;
            __m256 sum[rows][kGroups];
            for (int r = 0; r < rows; ++r)
                for (int g = 0; g < kGroups; ++g) sum[r][g] = _mm256_set1_ps(init);
            int64_t t = 0;
            for (; t + 8 <= terms; t += 8) {
#pragma GCC unroll 4
                for (int g = 0; g < kGroups; ++g) {
                    const float* at[8];
                    for (int i = 0; i < 8; ++i) at[i] = from[8 * g + i] + t;
                    __m256 term[8];
                    transposed(at, term);
#pragma GCC unroll 8
                    for (int i = 0; i < 8; ++i)
                        for (int r = 0; r < rows; ++r) sum[r][g] = _mm256_fmadd_ps(_mm256_set1_ps(x[r][(t + i) * x_step]), term[i], sum[r][g]);
                }
            }
            for (; t < terms; ++t)
                for (int g = 0; g < kGroups; ++g) {
                    float words[8];
                    for (int i = 0; i < 8; ++i) words[i] = from[8 * g + i][t];
                    for (int r = 0; r < rows; ++r) sum[r][g] = _mm256_fmadd_ps(_mm256_set1_ps(x[r][t * x_step]), _mm256_loadu_ps(words), sum[r][g]);
                }
            for (int r = 0; r < rows; ++r)
                for (int g = 0; g < kGroups; ++g) {
                    alignas(32) uint32_t words[8];
                    _mm256_store_ps(reinterpret_cast<float*>(words), sum[r][g]);
                    for (int i = 0; i < 8; ++i) out[r][(c + 8 * g + i) * out_column] = number(is_nan(words[i]) ? kNan : words[i]);
                }
        }
        for (; c < columns; ++c)
            for (int r = 0; r < rows; ++r) single(r, c);
    }
#endif

    template <int rows>
    void compute(int64_t columns) const {
#if defined(__AVX2__)
        if (y_column != 1 || out_column != 1) return by_columns<rows>(columns);
#endif
        by_lines<rows>(columns);
    }
};

// Dimensions of a space as one, if a form steps through them evenly.
bool even_stride(const Space& space, const int64_t* strides, int64_t* stride) {
    *stride = strides[space.axis[space.rank - 1]];
    int64_t expected = *stride;
    for (int d = space.rank - 1; d > 0; --d)
        if (__builtin_mul_overflow(expected, space.dims[d], &expected) || strides[space.axis[d - 1]] != expected) return false;
    return true;
}

}  // namespace

bool has_few_rows(const Plan& plan, const Run& run) {
    const ContractionPlan& shape = plan.contraction;
    if (shape.rows.size > kMostRows || plan.fold_rank != 1 || !run.safe[shape.x] || !run.safe[shape.y]) return false;
    int64_t strides[kMaxRank], column, out_column;
    output_strides(plan, strides);
    const Form& y = plan.form[plan.operand[shape.y].address];
    if (!even_stride(shape.columns, y.out, &column) || !even_stride(shape.columns, strides, &out_column)) return false;
    if (column == 1 && out_column == 1) return true;
#if defined(__AVX2__)
    return y.fold[0] == 1 && shape.columns.size >= 8 * kGroups;
#else
    return false;
#endif
}

void multiply_few_rows(const Plan& plan, const Run& run, int64_t piece, int64_t pieces) {
    const ContractionPlan& shape = plan.contraction;
    int64_t strides[kMaxRank], splits = pieces / shape.batch.size;
    output_strides(plan, strides);
    const int64_t most = (shape.columns.size + kSmallestPiece - 1) / kSmallestPiece;
    if (splits > most) splits = most;
    const int64_t batch = piece % shape.batch.size, split = piece / shape.batch.size;
    if (split >= splits) return;
    const int64_t tiles = (shape.columns.size + kTileColumns - 1) / kTileColumns;
    const int64_t first = tiles * split / splits * kTileColumns, past = tiles * (split + 1) / splits * kTileColumns;
    const int64_t end = past < shape.columns.size ? past : shape.columns.size;
    const int x_form = plan.operand[shape.x].address, y_form = plan.operand[shape.y].address;
    const Form &x = plan.form[x_form], &y = plan.form[y_form];
    FewRows few{plan.terms, x.fold[0], y.fold[0], 0, 0, {}, nullptr, {}, number(plan.init)};
    even_stride(shape.columns, y.out, &few.y_column);
    even_stride(shape.columns, strides, &few.out_column);
    const auto in_batch = [&](const int64_t* form) { return shape.batch.rank > 0 ? offset_at(shape.batch, form, batch) : 0; };
    few.y = reinterpret_cast<const float*>(run.sources[shape.y]) + run.bases[y_form] + in_batch(y.out) + first * few.y_column;
    for (int r = 0; r < shape.rows.size; ++r) {
        few.x[r] = reinterpret_cast<const float*>(run.sources[shape.x]) + run.bases[x_form] + in_batch(x.out) + offset_at(shape.rows, x.out, r);
        few.out[r] = reinterpret_cast<float*>(run.out) + in_batch(strides) + offset_at(shape.rows, strides, r) + first * few.out_column;
    }
    shape.rows.size == 1 ? few.compute<1>(end - first) : few.compute<2>(end - first);
}

}  // namespace pol::POL_ISA
