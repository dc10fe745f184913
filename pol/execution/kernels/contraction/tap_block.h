// A block of the terms (taps) of rows times lanes: where its words are, at every position, and which are within bounds.
//
// y is copied once per block of terms into an array that has the lanes innermost and otherwise keeps the order of the
// source, so that overlapping windows share words and every tap is one address. x is read a word at a time.
#pragma once
#include "contraction/tap_ranges.h"
#include "contraction/tile.h"
#include "nodes/lanes.h"

namespace pol::POL_ISA {
namespace {

constexpr int kMostTerms = 256, kMostPositions = 512, kMostRows = 512, kMostLimits = 2 * kMaxBounds;
constexpr int kFewTerms = 64, kFewRows = 28 / kTileRows * kTileRows;
constexpr int kBlockRows = 96 / kTileRows * kTileRows;
constexpr int kRowPitch = kMostTerms + 16;  // no multiple of a page: rows of a tile must not share cache sets
constexpr int64_t kPackedWords = 1 << 16, kSumWords = 9 << 14;
using Term = Listed::Term;

inline bool is_finite(const float* numbers, int64_t count) {
    const uint32_t* words = reinterpret_cast<const uint32_t*>(numbers);
    uint32_t found = 0;
    for (int64_t i = 0; i < count; ++i) found |= (words[i] & kInfinity) == kInfinity;
    return found == 0;
}

// Remembers whether numbers were finite.
struct Finiteness {
    bool known = false, yes = true;
    void check(const float* numbers, int64_t count) {
        if (!known) yes = is_finite(numbers, count);
        known = true;
    }
};

struct Position {
    int64_t x, y, out;
    int32_t limited[kMostLimits];
};

struct Scratch {
    alignas(64) float packed[kPackedWords + kTileColumns];  // y; at its end the fill word for every lane
    alignas(64) float sums[kSumWords];                      // by row, position, lane
    alignas(64) float x[kBlockRows * kRowPitch];
    Term all[kMostTerms], some[kMostTerms];
    int32_t x_term[kMostTerms];                             // places in x, from that of a block
    int32_t limited[kMostLimits][kMostTerms];               // what a bound's form is at a term, from that of a block
    Position position[kMostPositions];
    const float* row[kBlockRows];
    int64_t row_x[kMostRows], row_out[kMostRows];
};

struct TapBlock {
    const Plan& plan;
    const TapPlan& taps;
    const Run& run;
    Scratch& scratch;
    const PlannedOperand &x, &y;
    const Form &x_form, &y_form;
    const Sizes sizes;
    int64_t strides[kMaxRank];
    int64_t bases[kMaxForms];
    uint32_t* out;
    const float *x_source, *y_source;
    Range x_range;         // of all words of x that the piece may read
    bool x_moves;          // x depends on the position
    int x_bounds, limits;  // those that can be broken: of x, then of y
    int64_t limit[kMostLimits];
    int lanes, vectors, width;
    int64_t lane_in, lane_out;  // distances of lanes
    int rows, positions;   // of the current chunk
    int64_t pitch;         // of rows in `sums`
    // The current block.
    int64_t low, line;     // the least place of a position in y, and words of y per array and lane
    int64_t x_block, y_block, packed_end;
    int32_t first_of[kMostLimits];  // what the bounds' forms are at its first term, from those at a position
    int64_t located;             // values of the chunked dimension whose terms are located, for the current positions
    int terms, run_length;
    int32_t least[kMostLimits], most[kMostLimits];
    bool skipped;          // any term so far
    bool pads;             // x is copied with its fill words around it, and no term is skipped
    int64_t factor[kMaxBounds];  // of the bounds' forms in the address of x
    Finiteness x_tame;     // of all x; where x is the same at all positions, single rows are looked at instead
    Finiteness y_tame;     // of the packed block; asked for only if x has bounds

    TapBlock(const Plan& plan_, const Run& run_, void* memory, int64_t batch, int64_t first_lane)
        : plan(plan_), taps(plan.contraction.taps), run(run_), scratch(*static_cast<Scratch*>(memory)),
          x(plan.operand[taps.x]), y(plan.operand[taps.y]), x_form(plan.form[x.address]), y_form(plan.form[y.address]), sizes(sizes_of(plan)) {
        output_strides(plan, strides);
        const int axis = taps.lanes.axis[0];
        for (int f = 0; f < plan.forms; ++f)
            bases[f] = run.bases[f] + offset_at(taps.batch, plan.form[f].out, batch) + plan.form[f].out[axis] * first_lane;
        out = run.out + offset_at(taps.batch, strides, batch) + strides[axis] * first_lane;
        x_source = reinterpret_cast<const float*>(run.sources[taps.x]);
        y_source = reinterpret_cast<const float*>(run.sources[taps.y]);
        lane_in = y_form.out[axis];
        lane_out = strides[axis];
        lanes = static_cast<int>(taps.lanes.size - first_lane < kTileColumns ? taps.lanes.size - first_lane : kTileColumns);
        vectors = vectors_for(lanes);
        width = vectors * Vector::width;
        if (lanes < width) __builtin_memset(scratch.packed, 0, sizeof scratch.packed);
        x_bounds = run.safe[taps.x] ? 0 : x.bounds;
        x_moves = x_bounds > 0;
        for (int i = 0; i < taps.positions.rank; ++i) x_moves = x_moves || x_form.out[taps.positions.axis[i]] != 0;
        // A superset of what is read, clipped to the source; taps that are skipped count too.
        x_range = {bases[x.address], bases[x.address]};
        for (int d = 0; d < plan.fold_rank; ++d) x_range.add(x_form.fold[d], plan.fold[d]);
        for (const Space* space : {&taps.rows, &taps.positions})
            for (int i = 0; i < space->rank; ++i) x_range.add(x_form.out[space->axis[i]], space->dims[i]);
        if (x_range.low < 0) x_range.low = 0;
        if (x_range.high >= x.numel) x_range.high = x.numel - 1;
        for (int l = 0; l < kTileColumns; ++l) scratch.packed[kPackedWords + l] = number(y.fill);
        limits = 0;
        for (int i = 0; i < x_bounds; ++i) limit[limits++] = x.limits[i];
        for (int i = 0; i < (run.safe[taps.y] ? 0 : y.bounds); ++i) limit[limits++] = y.limits[i];
        pads = can_pad();
    }

    // Whether positions can be rows of tiles: they differ in the words of x alone, whose place in a block follows from the
    // bounds' forms. That pays where there are few rows.
    bool can_pad() {
        if (x_bounds == 0 || limits > x_bounds || taps.rows.size >= kTileRows) return false;
        Form rest = x_form;
        for (int i = 0; i < x_bounds; ++i) factor[i] = take_out(plan, plan.form[x.address + 1 + i], rest);
        for (int d = taps.chunked; d < plan.fold_rank; ++d)
            if (rest.fold[d] != 0) return false;
        for (int i = 0; i < taps.positions.rank; ++i)
            if (rest.out[taps.positions.axis[i]] != 0 || y_form.out[taps.positions.axis[i]] != 0) return false;
        return true;
    }

    int form_of(int i) const { return i < x_bounds ? x.address + 1 + i : y.address + 1 + i - x_bounds; }

    // Locates as many positions from `first` on as the scratch memory has room for; returns the next one.
    int64_t locate_positions(int64_t first, int64_t end) {
        Range reach{0, 0};
        int count = 0;
        for (; first + count < end && count < kMostPositions; ++count) {
            Position& position = scratch.position[count];
            position.y = offset_at(taps.positions, y_form.out, first + count);
            const Range wider{count == 0 || position.y < reach.low ? position.y : reach.low, count == 0 || position.y > reach.high ? position.y : reach.high};
            const bool fits = packed_words(taps, sizes, wider.width(), width) <= kPackedWords && rows * ((count + 1) | 1) * int64_t{width} <= kSumWords;
            if (count > 0 && !fits) break;
            reach = wider;
            position.x = offset_at(taps.positions, x_form.out, first + count);
            position.out = offset_at(taps.positions, strides, first + count);
            for (int i = 0; i < limits; ++i)
                position.limited[i] = static_cast<int32_t>(bases[form_of(i)] + offset_at(taps.positions, plan.form[form_of(i)].out, first + count));
        }
        positions = count;
        pitch = count | 1;
        located = 0;
        low = reach.low;
        line = packed_words(taps, sizes, reach.width(), width) / ((sizes.apart ? taps.chunk : 1) * width);
        return first + count;
    }

    // The part of a form that the terms of a block share, and the rest of term t.
    int64_t begin_of(const Form& form, const int64_t* at) const {
        int64_t offset = 0;
        for (int d = 0; d <= taps.chunked; ++d) offset += form.fold[d] * at[d];
        return offset;
    }
    int64_t rest_of(const Form& form, int64_t chunk_stride, int64_t t) const {
        int64_t offset = chunk_stride * (t / taps.inner);
        for (int d = plan.fold_rank - 1; d > taps.chunked; --d) {
            offset += form.fold[d] * (t % plan.fold[d]);
            t /= plan.fold[d];
        }
        return offset;
    }

    // The terms from fold index `at` on, `count` values of the chunked dimension.
    void locate_terms(const int64_t* at, int64_t count) {
        x_block = bases[x.address] + begin_of(x_form, at);
        y_block = bases[y.address] + begin_of(y_form, at) + low + sizes.first;
        terms = static_cast<int>(count * taps.inner);
        for (int i = 0; i < limits; ++i) first_of[i] = static_cast<int32_t>(begin_of(plan.form[form_of(i)], at));
        if (count == located) return;
        located = count;
        for (int t = 0; t < terms; ++t) {
            scratch.x_term[t] = static_cast<int32_t>(rest_of(x_form, x_form.fold[taps.chunked], t));
            const int64_t y_at = rest_of(y_form, sizes.apart ? line : y_form.fold[taps.chunked], t) - sizes.first;
            scratch.all[t] = {x_moves ? scratch.x_term[t] : t, static_cast<int32_t>(y_at * width)};
        }
        for (int i = 0; i < limits; ++i) {
            const Form& form = plan.form[form_of(i)];
            for (int t = 0; t < terms; ++t) {
                const int32_t value = static_cast<int32_t>(rest_of(form, form.fold[taps.chunked], t));
                scratch.limited[i][t] = value;
                least[i] = t == 0 || value < least[i] ? value : least[i];
                most[i] = t == 0 || value > most[i] ? value : most[i];
            }
        }
        find_run();
    }

    // Copies y. Words that no allowed read can reach may lie outside of the source: they become zeros.
    void pack_y(int64_t chunks) {
        const int64_t arrays = sizes.apart ? chunks : 1, far = (lanes - 1) * lane_in;
        packed_end = arrays * line * width;
        for (int64_t i = 0; i < arrays; ++i) {
            const int64_t place = y_block + y_form.fold[taps.chunked] * i;
            const int64_t first = -(place + (far < 0 ? far : 0)), past = y.numel - (place + (far > 0 ? far : 0));
            const int64_t from = first < 0 ? 0 : first < line ? first : line, to = past > line ? line : past > from ? past : from;
            float* array = scratch.packed + i * line * width;
            const float* lane[kTileColumns];
            for (int l = 0; l < lanes; ++l) lane[l] = y_source + place + l * lane_in + from;
            transpose(lane, lanes, to - from, array + from * width, width);
            __builtin_memset(array, 0, size_t(from * width) * sizeof(float));
            __builtin_memset(array + to * width, 0, size_t((line - to) * width) * sizeof(float));
        }
    }

    // Where the words of `count` rows begin for this block; copied if they are the same at all positions.
    void place_rows(int first, int count) {
        for (int r = 0; r < count; ++r) {
            const float* from = x_source + x_block + scratch.row_x[first + r];
            scratch.row[r] = from;
            if (x_moves) continue;
            float* to = scratch.x + r * kRowPitch;
            for (int t = 0; t < terms; t += run_length) __builtin_memcpy(to + t, from + scratch.x_term[t], size_t(run_length) * sizeof(float));
            scratch.row[r] = to;
        }
    }

    // How many consecutive terms stand side by side in x, all over the block.
    void find_run() {
        run_length = 1;
        while (run_length < terms && scratch.x_term[run_length] == scratch.x_term[run_length - 1] + 1) ++run_length;
        for (int t = 0; t < terms; ++t)
            if (terms % run_length != 0 || scratch.x_term[t] != scratch.x_term[t / run_length * run_length] + t % run_length) run_length = 1;
    }

    // Whether the other factors of all terms that may be skipped are finite, in this block and these rows.
    bool is_tame(int count) {
        if (x_bounds > 0) y_tame.check(scratch.packed, packed_end);
        if (x_moves) x_tame.check(x_source + x_range.low, x_range.width());
        if (x_moves || !y_tame.yes) return x_tame.yes && y_tame.yes;
        for (int r = 0; r < count; ++r)
            if (!is_finite(scratch.row[r], terms)) return false;
        return true;
    }

    bool is_within(const Position& position, int from, int to, int t) const {
        bool within = true;
        for (int i = from; i < to; ++i) {
            const int32_t value = position.limited[i] + first_of[i] + scratch.limited[i][t];
            within &= static_cast<uint32_t>(value) < static_cast<uint32_t>(limit[i]);
        }
        return within;
    }

    // The terms of a position that are within bounds.
    Listed terms_at(const Position& position) {
        bool all = true;
        for (int i = 0; i < limits; ++i) all = all && position.limited[i] + first_of[i] + least[i] >= 0 && position.limited[i] + first_of[i] + most[i] < limit[i];
        if (all) return {terms, scratch.all};
        uint32_t within[kMostTerms];
        fill(within, 1, terms);
        for (int i = 0; i < limits; ++i) {
            const int32_t place = position.limited[i] + first_of[i], most_allowed = static_cast<int32_t>(limit[i] - 1);
            for (int t = 0; t < terms; ++t) {
                const int32_t value = place + scratch.limited[i][t];
                within[t] &= static_cast<uint32_t>((value >= 0) & (value <= most_allowed));
            }
        }
        int count = 0;
        for (int t = 0; t < terms; ++t) {
            scratch.some[count] = scratch.all[t];
            count += static_cast<int>(within[t]);
        }
        return {count, scratch.some};
    }
};

}  // namespace
}  // namespace pol::POL_ISA
