// Rows times columns in blocks of terms. Reads that cannot leave their tensor are copied by strides into panels, or not
// at all where they would be used only a few times; others are fetched lane by lane, out-of-range reads becoming the
// fill word.
#include "contraction/matrix.h"

#include "contraction/tile.h"
#include "nodes/lanes.h"

namespace pol::POL_ISA {
namespace {

constexpr int kBlockTerms = 384;
constexpr int kBlockRows = 112 / kTileRows * kTileRows;
constexpr int kBlockColumns = kMaxLanes / kTileColumns * kTileColumns;
constexpr int kColumnPanels = kBlockColumns / kTileColumns;
constexpr int kRowPitch = kBlockTerms + 16;      // no multiple of a page: rows of a tile must not share cache sets
constexpr int kAhead = 16;                       // terms that strided reads are asked for in advance
constexpr int kFewUses = 2;                      // tiles that read a word; packing pays from there on
constexpr int kSmallestSplit = 8 * kTileColumns; // columns worth a piece of their own

struct Panels {
    alignas(64) float x[kRowPitch * kBlockRows];
    alignas(64) float y[kColumnPanels * kBlockTerms * kTileColumns];
    alignas(64) uint32_t buffer[kMaxLanes];
    alignas(64) float tile[kTileRows * kTileColumns];
    int64_t x_term[kBlockTerms], y_term[kBlockTerms];
    const float* row[kBlockRows];                // where the words of a row begin, packed or not
    const float* panel[kColumnPanels];
    bool in_place[kColumnPanels];
    int64_t row_offset[kBlockRows];              // in the output
    int64_t column_offset[kBlockColumns];
    int64_t column_place[kBlockColumns];         // in the source of y
};

constexpr Multiplies<Stepped> kMultiplies;

struct Block {
    int64_t k;
    int terms;
    Ends ends;
};

// Whether the numbers form an arithmetic progression, and of which step.
inline bool progression(const int64_t* numbers, int count, int64_t* step) {
    *step = count > 1 ? numbers[1] - numbers[0] : 1;
    for (int i = 2; i < count; ++i)
        if (numbers[i] - numbers[i - 1] != *step) return false;
    return true;
}

inline bool consecutive(const int64_t* numbers, int count) {
    int64_t step;
    return progression(numbers, count, &step) && step == 1;
}

struct MatrixProduct {
    const Plan& plan;
    const ContractionPlan& shape;
    const Run& run;
    Panels& panels;
    Lanes lanes;
    Access x, y;
    int64_t strides[kMaxRank];
    int64_t bases[kMaxForms];
    uint32_t* out;
    int64_t x_step, y_step;  // of a row's terms; of the terms of panels read in place

    MatrixProduct(const Plan& plan_, const Run& run_, void* scratch, int64_t batch)
        : plan(plan_),
          shape(plan_.contraction),
          run(run_),
          panels(*static_cast<Panels*>(scratch)),
          lanes(lanes_in(static_cast<uint8_t*>(scratch) + sizeof(Panels))) {
        x = access_to(plan, run, shape.x, shape.rows);
        y = access_to(plan, run, shape.y, shape.columns);
        output_strides(plan, strides);
        out = run.out;
        for (int f = 0; f < plan.forms; ++f) bases[f] = run.bases[f];
        if (shape.batch.rank > 0) {
            out += offset_at(shape.batch, strides, batch);
            for (int f = 0; f < plan.forms; ++f) bases[f] += offset_at(shape.batch, plan.form[f].out, batch);
        }
    }

    void place(const Access& access, const Space& space, int64_t first, int count) {
        const int form = access.operand->address;
        locate(plan, space, bases, form, form + 1 + access.operand->bounds, first, count, lanes);
    }

    // Addresses of the terms of a block, from those of a row or column.
    void locate_terms(const Block& block) {
        int64_t at[kMaxFoldRank];
        int64_t k = block.k;
        for (int d = plan.fold_rank - 1; d >= 0; --d) {
            at[d] = k % plan.fold[d];
            k /= plan.fold[d];
        }
        const int64_t* x_fold = plan.form[x.operand->address].fold;
        const int64_t* y_fold = plan.form[y.operand->address].fold;
        for (int t = 0; t < block.terms; ++t) {
            int64_t x_at = 0, y_at = 0;
            for (int d = 0; d < plan.fold_rank; ++d) {
                x_at += x_fold[d] * at[d];
                y_at += y_fold[d] * at[d];
            }
            panels.x_term[t] = x_at;
            panels.y_term[t] = y_at;
            for (int d = plan.fold_rank - 1; d >= 0 && ++at[d] == plan.fold[d]; --d) at[d] = 0;
        }
    }

    // x for `count` rows, to be read by `uses` tiles each.
    void pack_rows(int64_t first, int count, const Block& block, int uses) {
        const int terms = block.terms;
        const auto by_tile = [&](int r) { return panels.x + r / kTileRows * kTileRows * terms + r % kTileRows; };
        if (!x.safe) {
            place(x, shape.rows, first, count);
            FoldIndex at;
            seek(plan, block.k, at);
            for (int t = 0; t < terms; ++t, advance(plan, at)) {
                const float* words = reinterpret_cast<const float*>(fetch(plan, x, lanes, at, nullptr, panels.buffer));
                for (int r = 0; r < count; ++r) by_tile(r)[t * kTileRows] = words[r];
            }
            for (int r = 0; r < count; ++r) panels.row[r] = by_tile(r);
            x_step = kTileRows;
            return;
        }
        const float* source = reinterpret_cast<const float*>(x.source) + bases[x.operand->address];
        for (int r = 0; r < count; ++r) panels.row[r] = source + offset_at(shape.rows, plan.form[x.operand->address].out, first + r);
        const bool even = progression(panels.x_term, terms, &x_step);
        if (even && uses <= kFewUses) {
            for (int r = 0; r < count; ++r) panels.row[r] += panels.x_term[0];
            return;
        }
        if (even && x_step == 1) {
            for (int r = 0; r < count; ++r) {
                float* to = panels.x + r * kRowPitch;
                __builtin_memcpy(to, panels.row[r] + panels.x_term[0], size_t(terms) * sizeof(float));
                panels.row[r] = to;
            }
            return;
        }
        for (int r = 0; r < count; r += kTileRows) {
            float* to = by_tile(r);
            const int rows = count - r < kTileRows ? count - r : kTileRows;
            const float* const* from = panels.row + r;
            bool neighbors = rows == kTileRows;
            for (int i = 1; i < rows; ++i) neighbors = neighbors && from[i] == from[0] + i;
            if (neighbors)
                for (int t = 0; t < terms; ++t) {
                    __builtin_prefetch(from[0] + panels.x_term[t + kAhead < terms ? t + kAhead : t]);
                    __builtin_memcpy(to + t * kTileRows, from[0] + panels.x_term[t], kTileRows * sizeof(float));
                }
            else
                for (int i = 0; i < rows; ++i)
                    for (int t = 0; t < terms; ++t) to[t * kTileRows + i] = from[i][panels.x_term[t]];
            for (int i = 0; i < rows; ++i) panels.row[r + i] = to + i;
        }
        x_step = kTileRows;
    }

    float* packed(int panel) { return panels.y + panel * kBlockTerms * kTileColumns; }

    // y for `count` columns, to be read by `uses` tiles each; what a panel has past the last column is zero.
    void pack_columns(int64_t first, int count, const Block& block, int uses) {
        const int terms = block.terms, last = (count - 1) / kTileColumns;
        for (int p = 0; p <= last; ++p) {
            panels.panel[p] = packed(p);
            panels.in_place[p] = false;
        }
        if (count % kTileColumns != 0) __builtin_memset(packed(last), 0, size_t(terms) * kTileColumns * sizeof(float));
        if (!y.safe) {
            fetch_columns(first, count, block);
            return;
        }
        const float* source = reinterpret_cast<const float*>(y.source) + bases[y.operand->address];
        const bool even = progression(panels.y_term, terms, &y_step);
        for (int p = 0; p <= last; ++p) {
            const int columns = p < last ? kTileColumns : count - last * kTileColumns;
            const int64_t* at = panels.column_place + p * kTileColumns;
            const bool neighbors = consecutive(at, columns);
            if (neighbors && even && uses <= kFewUses && columns == kTileColumns) {
                panels.panel[p] = source + at[0] + panels.y_term[0];
                panels.in_place[p] = true;
            } else if (neighbors && columns == kTileColumns) {
                for (int t = 0; t < terms; ++t) {
                    __builtin_prefetch(source + at[0] + panels.y_term[t + kAhead < terms ? t + kAhead : t]);
                    __builtin_memcpy(packed(p) + t * kTileColumns, source + at[0] + panels.y_term[t], kTileColumns * sizeof(float));
                }
            } else if (even && y_step == 1) {
                const float* from[kTileColumns];
                for (int c = 0; c < columns; ++c) from[c] = source + at[c] + panels.y_term[0];
                transpose(from, columns, terms, packed(p), kTileColumns);
            } else {
                for (int t = 0; t < terms; ++t)
                    for (int c = 0; c < columns; ++c) packed(p)[t * kTileColumns + c] = source[at[c] + panels.y_term[t]];
            }
        }
    }

    void fetch_columns(int64_t first, int count, const Block& block) {
        place(y, shape.columns, first, count);
        FoldIndex at;
        seek(plan, block.k, at);
        for (int t = 0; t < block.terms; ++t, advance(plan, at)) {
            const uint32_t* words = fetch(plan, y, lanes, at, nullptr, panels.buffer);
            for (int c = 0; c < count; c += kTileColumns)
                copy(reinterpret_cast<uint32_t*>(packed(c / kTileColumns) + t * kTileColumns), words + c, 1, count - c < kTileColumns ? count - c : kTileColumns);
        }
    }

    // One tile of the output.
    void multiply_tile(int row, int rows, int panel, int columns, const Block& block) {
        const int vectors = vectors_for(columns), width = vectors * Vector::width;
        const int64_t* column = panels.column_offset + panel * kTileColumns;
        const bool direct = columns == width && column[columns - 1] - column[0] == columns - 1;
        float* tile[kTileRows];
        for (int r = 0; r < rows; ++r) {
            uint32_t* place = out + panels.row_offset[row + r];
            tile[r] = direct ? reinterpret_cast<float*>(place + column[0]) : panels.tile + r * kTileColumns;
            if (!direct && !block.ends.first)
                for (int c = 0; c < columns; ++c) reinterpret_cast<uint32_t*>(tile[r])[c] = place[column[c]];
        }
        const Stepped terms{block.terms, x_step, panels.in_place[panel] ? y_step : kTileColumns};
        kMultiplies.of[rows][vectors](terms, block.ends, panels.row + row, panels.panel[panel], tile);
        if (direct) return;
        for (int r = 0; r < rows; ++r) {
            uint32_t* place = out + panels.row_offset[row + r];
            for (int c = 0; c < columns; ++c) place[column[c]] = reinterpret_cast<uint32_t*>(tile[r])[c];
        }
    }

    // Asks for the words of a tile before they are needed.
    void prefetch_tile(int row, int rows, int panel) {
        const int64_t* column = panels.column_offset + panel * kTileColumns;
        for (int r = 0; r < rows; ++r) __builtin_prefetch(out + panels.row_offset[row + r] + column[0], 1);
    }

    void compute(int64_t first_row, int64_t end_row, int64_t first_column, int columns) {
        const int64_t* place = plan.form[y.operand->address].out;
        for (int c = 0; c < columns; ++c) {
            panels.column_offset[c] = offset_at(shape.columns, strides, first_column + c);
            panels.column_place[c] = offset_at(shape.columns, place, first_column + c);
        }
        const int panels_used = (columns + kTileColumns - 1) / kTileColumns;
        const int64_t row_tiles = (end_row - first_row + kTileRows - 1) / kTileRows;
        // Blocks of terms as equal as they can be: a short one would not repay the reading of the sums.
        const int64_t blocks = (plan.terms + kBlockTerms - 1) / kBlockTerms;
        for (int64_t b = 0; b < blocks; ++b) {
            const int64_t k = plan.terms * b / blocks, end = plan.terms * (b + 1) / blocks;
            const Block block{k, static_cast<int>(end - k), {k == 0, end == plan.terms, number(plan.init)}};
            locate_terms(block);
            pack_columns(first_column, columns, block, row_tiles < kMaxLanes ? static_cast<int>(row_tiles) : kMaxLanes);
            for (int64_t row = first_row; row < end_row; row += kBlockRows) {
                const int rows = end_row - row < kBlockRows ? static_cast<int>(end_row - row) : kBlockRows;
                for (int r = 0; r < rows; ++r) panels.row_offset[r] = offset_at(shape.rows, strides, row + r);
                pack_rows(row, rows, block, panels_used);
                const int tiles = (rows + kTileRows - 1) / kTileRows;
                for (int panel = 0; panel < panels_used; ++panel) {
                    const int width = columns - panel * kTileColumns < kTileColumns ? columns - panel * kTileColumns : kTileColumns;
                    for (int t = 0; t < tiles; ++t) {
                        // Tiles of nearly equal height: a last one of a row or two would waste most of its time.
                        const int begin = rows * t / tiles, end = rows * (t + 1) / tiles;
                        if (t + 1 < tiles) prefetch_tile(end, rows * (t + 2) / tiles - end, panel);
                        multiply_tile(begin, end - begin, panel, width, block);
                    }
                }
            }
        }
    }
};

int64_t fewest_column_blocks(const Plan& plan) { return (plan.contraction.columns.size + kBlockColumns - 1) / kBlockColumns; }

}  // namespace

// A piece is a batch element, a block of columns and a range of rows; rows are split only where columns are too few.
int64_t matrix_pieces(const Plan& plan, int64_t threads) {
    const ContractionPlan& shape = plan.contraction;
    const int64_t pieces = shape.batch.size * fewest_column_blocks(plan);
    if (pieces % threads == 0 || pieces >= 4 * threads) return pieces;
    return pieces * threads;
}

size_t matrix_scratch(const Plan& plan) { return sizeof(Panels) + lanes_bytes(plan.forms); }

void multiply_matrices(const Plan& plan, const Run& run, int64_t piece, int64_t pieces, void* scratch) {
    const ContractionPlan& shape = plan.contraction;
    const int64_t per_batch = pieces / shape.batch.size, least = fewest_column_blocks(plan);
    const bool by_columns = shape.columns.size >= per_batch * kSmallestSplit;
    const int64_t blocks = by_columns ? per_batch : least, splits = per_batch / blocks;
    MatrixProduct product(plan, run, scratch, piece / per_batch);
    const int64_t block = piece % per_batch / splits, split = piece % splits;
    // Blocks of whole panels, as equal as these allow.
    const int64_t tiles = (shape.columns.size + kTileColumns - 1) / kTileColumns;
    const int64_t first = tiles * block / blocks * kTileColumns, past = tiles * (block + 1) / blocks * kTileColumns;
    const int64_t end = past < shape.columns.size ? past : shape.columns.size;
    if (first < end) product.compute(shape.rows.size * split / splits, shape.rows.size * (split + 1) / splits, first, static_cast<int>(end - first));
}

}  // namespace pol::POL_ISA
