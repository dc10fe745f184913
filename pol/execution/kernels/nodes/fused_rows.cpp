// Runs the members of a row group on few rows (plan/fused_rows.h). Nothing is looked up per row, and a fold in lanes joins
// them without writing them.
#include "maps/endings.h"
#include "nodes/nodes.h"
#include "nodes/registers.h"
#include "nodes/row_joins.h"

namespace pol::POL_ISA {
namespace {

constexpr int64_t kShortRow = 128;  // shorter rows are one line of words, in which words of rows are repeated
constexpr int64_t kSlack = 16;      // words that may be written past the end of such a line

struct Source {
    const uint32_t* words;
    int64_t row, column;
};

struct Stage : Registers {
    const FusedStage& stage;
    const FusedRun& fused;
    Source source[kMaxOperands];
    uint32_t* lines;  // memory for lines of words
    int64_t count;

    Stage(const FusedStage& stage_, const Run& run_, const FusedRun& fused_, void* scratch, int width)
        : Registers(*stage_.plan, run_, scratch, width), stage(stage_), fused(fused_), count(fused_.count) {
        lines = rest;
        for (int o = 0; o < plan.operands; ++o) source[o] = {fused.sources[o] + stage.operand[o].base, stage.operand[o].row, stage.operand[o].column};
    }

    uint32_t* take_line(int64_t words) {
        uint32_t* const line = lines;
        lines += (words + 2 * kSlack) / kSlack * kSlack;
        return line;
    }

    // All rows of a source side by side.
    const uint32_t* line_of(const Source& from) {
        const int64_t width = stage.width;
        if (from.column == 1 && from.row == width) return from.words;
        uint32_t* const line = take_line(count * width);
        for (int64_t r = 0; r < count; ++r) {
            if (from.column == 1)
                __builtin_memcpy(line + r * width, from.words + r * from.row, size_t(width) * sizeof(uint32_t));
            else  // the next row is written over what is too much
                for (int64_t c = 0; c < width; c += kSlack) fill(line + r * width + c, from.words[r * from.row], kSlack);
        }
        return line;
    }

    Source counted_columns() {
        uint32_t* const line = take_line(stage.width);
        for (int64_t c = 0; c < stage.width; ++c) line[c] = static_cast<uint32_t>(c);
        return {line, 0, 1};
    }

    // Where a leaf of the ending is read; false if it is computed.
    bool leaf_source(int reg, Source& found) {
        if (reg < plan.operands) found = source[reg];
        else if (reg < plan.accumulator) found = counted_columns();
        else if (reg > plan.accumulator && reg <= plan.accumulator + plan.constants) found = {&plan.constant[reg - plan.accumulator - 1], 0, 0};
        else return false;
        return true;
    }

    void compute_scalars() {
        for (int64_t b = 0; b < stage.before; ++b)
            for (int64_t first = 0; first < count; first += plan.lanes) {
                const int n = count - first < plan.lanes ? static_cast<int>(count - first) : plan.lanes;
                for (int o = 0; o < plan.operands; ++o) {
                    const uint32_t* from = source[o].words + b * stage.operand[o].before + first * source[o].row;
                    value[o] = from;
                    if (source[o].row == 0) {
                        value[o] = buffer[o];
                        fill(buffer[o], *from, n);
                    }
                }
                compute(fused.out + b * stage.capacity + first, n);
            }
    }

    bool compute_ending() {
        if (plan.ending == Ending::none || plan.before_count > 0) return false;
        Source leaf[kMostLeaves];
        const uint32_t* words[kMostLeaves];
        unsigned mask = 0;
        for (int i = 0; i < plan.leaves; ++i) {
            if (!leaf_source(plan.leaf[i], leaf[i])) return false;
            mask |= static_cast<unsigned>(leaf[i].column == 0) << i;
        }
        const ApplyEnding by_rows = stage.width >= kShortRow ? ending_with(plan.ending, mask) : nullptr;
        if (by_rows != nullptr) {
            for (int64_t r = 0; r < count; ++r) {
                for (int i = 0; i < plan.leaves; ++i) words[i] = leaf[i].words + r * leaf[i].row;
                by_rows(fused.out + r * stage.width, words, static_cast<int>(stage.width));
            }
            return true;
        }
        const ApplyEnding by_line = stage.width < kShortRow ? ending_with(plan.ending, 0) : nullptr;
        if (by_line == nullptr) return false;
        for (int i = 0; i < plan.leaves; ++i) words[i] = line_of(leaf[i]);
        by_line(fused.out, words, static_cast<int>(count * stage.width));
        return true;
    }

    // The values of all operands for a part of a row.
    void read(int64_t row, int64_t first) {
        for (int o = 0; o < plan.operands; ++o) {
            const uint32_t* from = source[o].words + row * source[o].row;
            value[o] = source[o].column == 1 ? from + first : buffer[o];
            if (source[o].column == 0 && first == 0) fill(buffer[o], *from, plan.lanes);
        }
    }

    void compute_wide() {
        if (compute_ending()) return;
        lines = rest;
        const Source columns = plan.coordinates > 0 ? counted_columns() : Source{};
        if (stage.width >= kShortRow) {
            for (int64_t r = 0; r < count; ++r)
                for (int64_t first = 0; first < stage.width; first += plan.lanes) {
                    const int n = stage.width - first < plan.lanes ? static_cast<int>(stage.width - first) : plan.lanes;
                    read(r, first);
                    for (int i = 0; i < plan.coordinates; ++i) value[plan.operands + i] = columns.words + first;
                    compute(fused.out + r * stage.width + first, n);
                }
            return;
        }
        const uint32_t* line[kMaxOperands];
        for (int o = 0; o < plan.operands; ++o) line[o] = line_of(source[o]);
        const uint32_t* const counted = plan.coordinates > 0 ? line_of(columns) : nullptr;
        const int64_t words = count * stage.width;
        for (int64_t first = 0; first < words; first += plan.lanes) {
            const int n = words - first < plan.lanes ? static_cast<int>(words - first) : plan.lanes;
            for (int o = 0; o < plan.operands; ++o) value[o] = line[o] + first;
            for (int i = 0; i < plan.coordinates; ++i) value[plan.operands + i] = counted + first;
            compute(fused.out + first, n);
        }
    }

    void compute_terms(int n) {
        for (int i = 0; i < plan.once_count; ++i) execute(plan.once[i], buffer[plan.once[i].result], n);
        for (int i = 0; i < plan.each_count - plan.join.instructions; ++i) execute(plan.each[i], buffer[plan.each[i].result], n);
    }

    bool term_is_read() const { return !plan.row.programmed; }

    // exp(x - shift), the rest being FADD; the operands of x and shift.
    bool term_is_exponential() const { return plan.row.exponent >= 0; }

    // Sixteen rows share a tile, whose terms are joined side by side.
    template <class Join>
    void compute_sequence() {
        const RowPlan& shape = plan.row;
        const int64_t words = count * stage.width;
        Source x{}, y{};
        if (term_is_read() && source[shape.x].column == 1 && source[shape.y].column == 1) {
            x = source[shape.x], y = source[shape.y];
        } else {
            uint32_t* const terms = take_line(words);
            uint32_t* const factors = shape.y == shape.x ? terms : take_line(words);
            if (term_is_exponential()) {
                const uint32_t* leaf[] = {line_of(source[shape.exponent]), line_of(source[shape.shift])};
                exponentials(terms, leaf, static_cast<int>(words));
            } else {
                const uint32_t* line[kMaxOperands];
                for (int o = 0; o < plan.operands; ++o) line[o] = line_of(source[o]);
                for (int64_t first = 0; first < words; first += plan.lanes) {
                    const int n = words - first < plan.lanes ? static_cast<int>(words - first) : plan.lanes;
                    for (int o = 0; o < plan.operands; ++o) value[o] = line[o] + first;
                    compute_terms(n);
                    __builtin_memcpy(terms + first, value[shape.x], size_t(n) * sizeof(uint32_t));
                    if (factors != terms) __builtin_memcpy(factors + first, value[shape.y], size_t(n) * sizeof(uint32_t));
                }
            }
            x = {terms, stage.width, 1}, y = {factors, stage.width, 1};
        }
        for (int64_t first = 0; first < count; first += kTileRows) {
            const uint32_t *xs[kTileRows], *ys[kTileRows];
            uint32_t acc[kTileRows];
            const int n = count - first < kTileRows ? static_cast<int>(count - first) : kTileRows;
            for (int r = 0; r < kTileRows; ++r) {
                const int64_t at = first + (r < n ? r : 0);
                xs[r] = x.words + at * x.row, ys[r] = y.words + at * y.row;
            }
            fill(acc, plan.init, kTileRows);
            join_rows<Join>(acc, xs, ys, static_cast<int>(stage.width));
            for (int r = 0; r < kTileRows; ++r) acc[r] = settled<Join>(acc[r]);
            __builtin_memcpy(fused.out + first, acc, size_t(n) * sizeof(uint32_t));
        }
    }

    // Joins the whole vectors of a row in [first, first + n).
    template <class Join>
    void join_part(uint32_t* acc, int64_t row, int64_t first, int64_t n) {
        const RowPlan& shape = plan.row;
        const int64_t vectors = n / kFoldLanes;
        const auto at = [&](int o) { return o < 0 ? nullptr : source[o].words + row * source[o].row + first * source[o].column; };
        if (term_is_read() && source[shape.x].column == 1 && source[shape.y].column == 1) {
            join_lanes<Join, 4>(acc, at(shape.x), at(shape.y), vectors);
        } else if (shape.centered) {
            const auto join = shape.factor < 0 ? join_centered<4, true, false> : shape.scale < 0 ? join_centered<4, false, false> : join_centered<4, false, true>;
            join(acc, at(shape.factor), at(shape.scale), at(shape.value), *at(shape.mean), vectors);
        } else {
            for (int64_t done = 0; done < n; done += plan.lanes) {
                const int part = n - done < plan.lanes ? static_cast<int>(n - done) : plan.lanes;
                if (term_is_exponential() && source[shape.exponent].column == 1 && source[shape.shift].column == 0) {
                    const uint32_t* leaf[] = {at(shape.exponent) + done, at(shape.shift)};
                    exponentials_of_row(buffer[shape.exponent], leaf, part);
                    join_lanes<Join, 4>(acc, buffer[shape.exponent], buffer[shape.exponent], part / kFoldLanes);
                    continue;
                }
                for (int o = 0; o < plan.operands; ++o) {
                    value[o] = source[o].column == 1 ? at(o) + done : buffer[o];
                    if (source[o].column == 0 && done == 0) fill(buffer[o], *at(o), plan.lanes);
                }
                compute_terms(part);
                join_lanes<Join, 4>(acc, value[shape.x], value[shape.y], part / kFoldLanes);
            }
        }
    }

    // Joins a round that the row ends in or before: lanes from `count` on read the fills.
    template <class Join>
    void join_padded(uint32_t* acc, int64_t row, int64_t first, int words) {
        for (int o = 0; o < plan.operands; ++o) {
            const uint32_t* from = source[o].words + row * source[o].row + first * source[o].column;
            for (int j = 0; j < kFoldLanes; ++j) buffer[o][j] = j < words ? from[j * source[o].column] : plan.operand[o].fill;
            value[o] = buffer[o];
        }
        compute_terms(kFoldLanes);
        join_lanes<Join, 4>(acc, value[plan.row.x], value[plan.row.y], 1);
    }

    template <class Join, class Half>
    void compute_lanes() {
        const int64_t piece = stage.rounds * kFoldLanes;
        alignas(64) uint32_t acc[kFoldLanes], total[kFoldLanes];
        const bool joins = stage.joined > 0;
        fill(total, plan.init, kFoldLanes);
        for (int64_t r = 0; r < count; ++r) {
            if (joins && stage.pieces > 1) fill(total, plan.init, kFoldLanes);
            for (int64_t p = 0; p < stage.pieces; ++p) {
                const int64_t first = p * piece, left = stage.width - first;
                const int64_t here = left < 0 ? 0 : left < piece ? left : piece;
                int64_t done = here / kFoldLanes * kFoldLanes;
                fill(acc, plan.init, kFoldLanes);
                if (done > 0) join_part<Join>(acc, r, first, done);
                for (; done < piece; done += kFoldLanes) join_padded<Join>(acc, r, here > done ? first + done : 0, here > done ? static_cast<int>(here - done) : 0);
                if (!joins)
                    for (int l = 0; l < kFoldLanes; ++l) fused.out[(l * stage.pieces + p) * stage.capacity + r] = settled<Join>(acc[l]);
                else if (stage.pieces > 1)
                    join_lanes<Half, 4>(total, acc, acc, 1);
            }
            if (!joins) continue;
            uint32_t four[kVector];
            join_halves<Half>(four, stage.pieces > 1 ? total : acc);
            for (int l = 0; l < kJoinedLanes; ++l) fused.out[l * stage.capacity + r] = settled<Join>(four[l]);
        }
    }

    template <class Join, class Half>
    void compute_fold() {
        if (stage.kind == FusedKind::lanes)
            compute_lanes<Join, Half>();
        else
            compute_sequence<Join>();
    }

    void compute_stage() {
        if (stage.kind == FusedKind::scalars) return compute_scalars();
        if (stage.kind == FusedKind::wide) return compute_wide();
        with_join(plan.join.op, [&](auto join, auto half) { compute_fold<decltype(join), decltype(half)>(); });
    }
};

}  // namespace

size_t fused_scratch(const FusedStage& stage) {
    // A sequence computes the terms of all rows side by side, however long the rows are.
    const bool by_lines = stage.width < kShortRow || stage.kind == FusedKind::sequence;
    const int64_t columns = stage.width + 2 * kSlack, line = by_lines ? stage.capacity * stage.width + 2 * kSlack : 0;
    return register_bytes(*stage.plan) + static_cast<size_t>(2 * columns + (kMaxOperands + 4) * line) * sizeof(uint32_t);
}

void compute_fused(const FusedStage& stage, const FusedRun& fused, void* scratch) {
    const Run run{};
    const int lanes = stage.plan->lanes;
    const bool few = stage.kind == FusedKind::scalars && fused.count < lanes;
    Stage(stage, run, fused, scratch, few ? static_cast<int>(fused.count) : lanes).compute_stage();
}

}  // namespace pol::POL_ISA
