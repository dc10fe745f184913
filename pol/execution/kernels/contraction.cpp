// Folds of the form acc = FFMA(x, y, acc), where x varies along some output dimensions (rows) and y along others (columns).
// Vectors run over columns, never over the fold index: every element is the plain sequence of fused multiply-adds.
// Blocks of x and y are copied into packed panels first; out-of-range reads become the fill word there.
#include "lanes.h"
#include "nodes.h"
#include "primitives.h"

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace pol::POL_ISA {
namespace {

#if defined(__AVX512F__)
struct Vector {
    static constexpr int width = 16;
    __m512 v;
    static Vector load(const float* p) { return {_mm512_loadu_ps(p)}; }
    static Vector splat(float x) { return {_mm512_set1_ps(x)}; }
    void store(float* p) const { _mm512_storeu_ps(p, v); }
    void add_product(Vector a, Vector b) { v = _mm512_fmadd_ps(a.v, b.v, v); }
};
constexpr int kTileRows = 14, kTileVectors = 2;
#elif defined(__AVX2__)
struct Vector {
    static constexpr int width = 8;
    __m256 v;
    static Vector load(const float* p) { return {_mm256_loadu_ps(p)}; }
    static Vector splat(float x) { return {_mm256_set1_ps(x)}; }
    void store(float* p) const { _mm256_storeu_ps(p, v); }
    void add_product(Vector a, Vector b) { v = _mm256_fmadd_ps(a.v, b.v, v); }
};
constexpr int kTileRows = 6, kTileVectors = 2;
#elif defined(__aarch64__)
struct Vector {
    static constexpr int width = 4;
    float32x4_t v;
    static Vector load(const float* p) { return {vld1q_f32(p)}; }
    static Vector splat(float x) { return {vdupq_n_f32(x)}; }
    void store(float* p) const { vst1q_f32(p, v); }
    void add_product(Vector a, Vector b) { v = vfmaq_f32(v, a.v, b.v); }
};
constexpr int kTileRows = 8, kTileVectors = 3;
#else
struct Vector {
    static constexpr int width = 1;
    float v;
    static Vector load(const float* p) { return {*p}; }
    static Vector splat(float x) { return {x}; }
    void store(float* p) const { *p = v; }
    void add_product(Vector a, Vector b) { v = __builtin_fmaf(a.v, b.v, v); }
};
constexpr int kTileRows = 4, kTileVectors = 4;
#endif

constexpr int kTileColumns = kTileVectors * Vector::width;
constexpr int kBlockTerms = 256;
constexpr int kBlockRows = 112 / kTileRows * kTileRows;
constexpr int kBlockColumns = kMaxLanes / kTileColumns * kTileColumns;
constexpr int kColumnPanels = kBlockColumns / kTileColumns;

// tile[r][..] += the products of `terms` terms; rows of x are kBlockRows apart per term.
template <int rows>
void multiply(int terms, const float* x, const float* y, float* const* tile) {
    Vector sum[rows][kTileVectors];
    for (int r = 0; r < rows; ++r)
        for (int v = 0; v < kTileVectors; ++v) sum[r][v] = Vector::load(tile[r] + v * Vector::width);
    for (int k = 0; k < terms; ++k, x += kBlockRows, y += kTileColumns) {
        Vector column[kTileVectors];
        for (int v = 0; v < kTileVectors; ++v) column[v] = Vector::load(y + v * Vector::width);
        for (int r = 0; r < rows; ++r) {
            const Vector row = Vector::splat(x[r]);
            for (int v = 0; v < kTileVectors; ++v) sum[r][v].add_product(row, column[v]);
        }
    }
    for (int r = 0; r < rows; ++r)
        for (int v = 0; v < kTileVectors; ++v) sum[r][v].store(tile[r] + v * Vector::width);
}

using Multiply = void (*)(int, const float*, const float*, float* const*);

template <int rows>
void list_multiplies(Multiply* table) {
    table[rows] = multiply<rows>;
    if constexpr (rows > 1) list_multiplies<rows - 1>(table);
}

struct Panels {
    alignas(64) float x[kBlockTerms * kBlockRows];
    alignas(64) float y[kColumnPanels * kBlockTerms * kTileColumns];
    alignas(64) uint32_t buffer[kMaxLanes];
    alignas(64) float tile[kTileRows * kTileColumns];
    int64_t row_offset[kBlockRows];
    int64_t column_offset[kBlockColumns];
};

// Distance in words of the output between neighbours along each merged dimension.
void output_strides(const Plan& plan, int64_t* strides) {
    int64_t stride = 1;
    for (int d = plan.space.rank - 1; d >= 0; --d) {
        strides[d] = stride;
        stride *= plan.space.dims[d];
    }
}

int64_t column_blocks(const Plan& plan) { return (plan.contraction.columns.size + kBlockColumns - 1) / kBlockColumns; }

struct Contraction {
    const Plan& plan;
    const Run& run;
    Panels& panels;
    Lanes lanes;
    Access x, y;
    int64_t strides[kMaxRank];
    int64_t bases[kMaxOperands * (1 + kMaxBounds) + kMaxCoordinates];
    uint32_t* out;
    Multiply multiplies[kTileRows + 1];

    Contraction(const Plan& plan_, const Run& run_, void* scratch, int64_t batch)
        : plan(plan_), run(run_), panels(*static_cast<Panels*>(scratch)), lanes(lanes_in(static_cast<uint8_t*>(scratch) + sizeof(Panels))) {
        x = access_to(plan, run, plan.contraction.x, plan.contraction.rows);
        y = access_to(plan, run, plan.contraction.y, plan.contraction.columns);
        output_strides(plan, strides);
        out = run.out;
        for (int f = 0; f < plan.forms; ++f) bases[f] = run.bases[f];
        if (plan.contraction.batch.rank > 0) {
            out += offset_at(plan.contraction.batch, strides, batch);
            for (int f = 0; f < plan.forms; ++f) bases[f] += offset_at(plan.contraction.batch, plan.form[f].out, batch);
        }
        list_multiplies<kTileRows>(multiplies);
    }

    void place(const Access& access, const Space& space, int64_t first, int count) {
        const int form = access.operand->address;
        locate(plan, space, bases, form, form + 1 + access.operand->bounds, first, count, lanes);
    }

    // x for `count` rows and terms k .. k + terms - 1, term by term.
    void pack_rows(int64_t first, int count, int64_t k, int terms) {
        place(x, plan.contraction.rows, first, count);
        FoldIndex at;
        seek(plan, k, at);
        for (int t = 0; t < terms; ++t, advance(plan, at))
            copy(reinterpret_cast<uint32_t*>(panels.x + t * kBlockRows), fetch(plan, x, lanes, at, nullptr, panels.buffer), 1, count);
    }

    // y for `count` columns and the same terms, in panels of kTileColumns columns; what lies past the end is zero.
    void pack_columns(int64_t first, int count, int64_t k, int terms) {
        place(y, plan.contraction.columns, first, count);
        const int whole = count / kTileColumns, rest = count % kTileColumns;
        FoldIndex at;
        seek(plan, k, at);
        for (int t = 0; t < terms; ++t, advance(plan, at)) {
            const uint32_t* words = fetch(plan, y, lanes, at, nullptr, panels.buffer);
            uint32_t* to = reinterpret_cast<uint32_t*>(panels.y + t * kTileColumns);
            for (int p = 0; p < whole; ++p) copy(to + p * kBlockTerms * kTileColumns, words + p * kTileColumns, 1, kTileColumns);
            if (rest != 0) {
                to += whole * kBlockTerms * kTileColumns;
                copy(to, words + whole * kTileColumns, 1, rest);
                fill(to + rest, 0, kTileColumns - rest);
            }
        }
    }

    // One tile of the output, for a block of terms of which it says whether they are the first and the last.
    void multiply_tile(int row, int rows, int panel, int columns, int terms, bool first, bool last) {
        const int64_t* column = panels.column_offset + panel * kTileColumns;
        const bool direct = columns == kTileColumns && column[columns - 1] - column[0] == columns - 1;
        float* tile[kTileRows];
        for (int r = 0; r < rows; ++r) {
            uint32_t* place = out + panels.row_offset[row + r];
            tile[r] = direct ? reinterpret_cast<float*>(place + column[0]) : panels.tile + r * kTileColumns;
            uint32_t* words = reinterpret_cast<uint32_t*>(tile[r]);
            if (first)
                fill(words, plan.init, kTileColumns);
            else if (!direct)
                for (int c = 0; c < kTileColumns; ++c) words[c] = c < columns ? place[column[c]] : 0;
        }
        multiplies[rows](terms, panels.x + row, panels.y + panel * kBlockTerms * kTileColumns, tile);
        for (int r = 0; r < rows; ++r) {
            uint32_t* words = reinterpret_cast<uint32_t*>(tile[r]);
            // A NaN stays one to the end of the fold, so that it may be made the one NaN there.
            if (last)
                for (int c = 0; c < kTileColumns; ++c) words[c] = is_nan(words[c]) ? kNan : words[c];
            if (!direct)
                for (int c = 0; c < columns; ++c) out[panels.row_offset[row + r] + column[c]] = words[c];
        }
    }

    void compute(int64_t first_row, int64_t end_row, int64_t first_column, int columns) {
        for (int c = 0; c < columns; ++c) panels.column_offset[c] = offset_at(plan.contraction.columns, strides, first_column + c);
        for (int64_t k = 0; k < plan.terms; k += kBlockTerms) {
            const int terms = plan.terms - k < kBlockTerms ? static_cast<int>(plan.terms - k) : kBlockTerms;
            pack_columns(first_column, columns, k, terms);
            for (int64_t row = first_row; row < end_row; row += kBlockRows) {
                const int rows = end_row - row < kBlockRows ? static_cast<int>(end_row - row) : kBlockRows;
                for (int r = 0; r < rows; ++r) panels.row_offset[r] = offset_at(plan.contraction.rows, strides, row + r);
                pack_rows(row, rows, k, terms);
                const int tiles = (rows + kTileRows - 1) / kTileRows;
                for (int panel = 0; panel * kTileColumns < columns; ++panel) {
                    const int width = columns - panel * kTileColumns < kTileColumns ? columns - panel * kTileColumns : kTileColumns;
                    for (int t = 0; t < tiles; ++t) {
                        // Tiles of nearly equal height: a last one of a row or two would waste most of its time.
                        const int begin = rows * t / tiles, end = rows * (t + 1) / tiles;
                        multiply_tile(begin, end - begin, panel, width, terms, k == 0, k + terms == plan.terms);
                    }
                }
            }
        }
    }
};

}  // namespace

// Tasks are batch elements times column blocks times row ranges; rows are split only if threads would be idle otherwise.
size_t contraction_tasks(const Plan& plan, size_t threads) {
    const int64_t pieces = plan.contraction.batch.size * column_blocks(plan);
    if (pieces >= static_cast<int64_t>(threads)) return static_cast<size_t>(pieces);
    const int64_t splits = static_cast<int64_t>(threads) < plan.contraction.rows.size ? static_cast<int64_t>(threads) : plan.contraction.rows.size;
    return static_cast<size_t>(pieces * splits);
}

size_t contraction_scratch(const Plan& plan) { return sizeof(Panels) + lanes_bytes(plan.forms); }

void contract(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch) {
    const int64_t blocks = column_blocks(plan);
    const int64_t splits = static_cast<int64_t>(tasks) / (plan.contraction.batch.size * blocks);
    const int64_t piece = static_cast<int64_t>(task) / splits, split = static_cast<int64_t>(task) % splits;
    const int64_t first_column = piece % blocks * kBlockColumns;
    const int64_t left = plan.contraction.columns.size - first_column;
    Contraction contraction(plan, run, scratch, piece / blocks);
    contraction.compute(plan.contraction.rows.size * split / splits, plan.contraction.rows.size * (split + 1) / splits, first_column,
                        left < kBlockColumns ? static_cast<int>(left) : kBlockColumns);
}

}  // namespace pol::POL_ISA
