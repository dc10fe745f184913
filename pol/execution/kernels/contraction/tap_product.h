// Rows times lanes at every position, over the list of those terms (taps) whose reads are within bounds there.
//
// A term outside of bounds has a fill word as a factor, and is skipped. Why this keeps the bits, if that word is a zero
// and the other factors of skipped terms are finite: the term's product is +0 or -0, so that it changes only an
// accumulator that is itself a zero, and then from -0 to +0 at most. Let s be the accumulator with terms skipped and t
// the one without. Before every term s == t, or s is -0 and t is +0. That holds at first; a skipped term keeps it; and
// any other term makes both equal again, unless its product is -0, which leaves both as they are. So a result differs
// at most where s is -0. Therefore: should a factor not be finite, or a result be -0 (products of normal size never
// round to it), all is done again without skipping.
#pragma once
#include "contraction/planes.h"
#include "contraction/tap_block.h"

namespace pol::POL_ISA {
namespace {

constexpr Multiplies<Listed> kMultiplies;

struct TapProduct : TapBlock {
    using TapBlock::TapBlock;

    float* sums_at(int row, int64_t at) const { return scratch.sums + (row * pitch + at) * width; }

    void multiply_rows(const Listed& list, const Ends& ends, int first, int count, int64_t at) {
        const Position& position = scratch.position[at];
        const float* y_at = scratch.packed + (position.y - low) * width;
        const int tiles = (count + kTileRows - 1) / kTileRows;
        for (int i = 0; i < tiles; ++i) {
            const int begin = count * i / tiles, end = count * (i + 1) / tiles;
            const float* row[kTileRows];
            float* tile[kTileRows];
            for (int r = begin; r < end; ++r) {
                row[r - begin] = scratch.row[r] + position.x;
                tile[r - begin] = sums_at(first + r, at);
            }
            kMultiplies.of[end - begin][vectors](list, ends, row, y_at, tile);
        }
    }

    // The same with fill words multiplied: y's are a term that stands at the end of `packed`, x's need a row of their
    // own.
    void multiply_filled(Ends ends, int first, int count, int64_t at) {
        const Position& position = scratch.position[at];
        const int32_t filled = static_cast<int32_t>(scratch.packed + kPackedWords - (scratch.packed + (position.y - low) * width));
        const float x_fill = number(x.fill);
        const float* rows_of_x[kBlockRows];
        for (int t = 0; t < terms; ++t) {
            Term term = scratch.all[t];
            if (!is_within(position, x_bounds, limits, t)) term.y = filled;
            const bool inside = is_within(position, 0, x_bounds, t);
            if (!inside) {
                term.x = 0;
                for (int r = 0; r < count; ++r) {
                    rows_of_x[r] = scratch.row[r];
                    scratch.row[r] = &x_fill - position.x;
                }
            }
            multiply_rows({1, &term}, ends, first, count, at);
            if (!inside)
                for (int r = 0; r < count; ++r) scratch.row[r] = rows_of_x[r];
            ends.first = false;
        }
    }

    Planes planes_of_block() const {
        Planes planes{x_bounds, x.fill, factor, limit, {}, {}, {}, 1};
        for (int i = x_bounds - 1; i >= 0; --i) {
            Range range{scratch.position[0].limited[i], scratch.position[0].limited[i]};
            for (int p = 1; p < positions; ++p) {
                const int64_t at = scratch.position[p].limited[i];
                if (at < range.low) range.low = at;
                if (at > range.high) range.high = at;
            }
            planes.add(i, range.low + first_of[i] + least[i], range.width() + most[i] - least[i]);
        }
        return planes;
    }

    // The sums of a block, rows and positions side by side; false if x has too many words.
    bool add_padded_block(const Ends& ends) {
        const Planes planes = planes_of_block();
        if (planes.words * rows > kBlockRows * kRowPitch) return false;
        const Position& first = scratch.position[0];
        int64_t place = x_block + scratch.x_term[0] + first.x;
        for (int i = 0; i < x_bounds; ++i) place -= factor[i] * (first.limited[i] + first_of[i] + scratch.limited[i][0]);
        for (int r = 0; r < rows; ++r) planes.copy(x_source + place + scratch.row_x[r], scratch.x + r * planes.words);
        for (int t = 0; t < terms; ++t) {
            int64_t at = 0;
            for (int i = 0; i < x_bounds; ++i) at += (scratch.limited[i][t] - least[i]) * planes.stride[i];
            scratch.all[t].x = static_cast<int32_t>(at);
        }
        const int count = rows * positions, tiles = (count + kTileRows - 1) / kTileRows;
        for (int i = 0; i < tiles; ++i) {
            const int begin = count * i / tiles, end = count * (i + 1) / tiles;
            const float* row[kTileRows];
            float* tile[kTileRows];
            for (int n = begin; n < end; ++n) {
                const Position& position = scratch.position[n % positions];
                row[n - begin] = scratch.x + n / positions * planes.words;
                for (int b = 0; b < x_bounds; ++b) row[n - begin] += (position.limited[b] + first_of[b] + least[b] - planes.low[b]) * planes.stride[b];
                tile[n - begin] = sums_at(n / positions, n % positions);
            }
            kMultiplies.of[end - begin][vectors](Listed{terms, scratch.all}, ends, row, scratch.packed, tile);
        }
        return true;
    }

    // The sums of a block; false if terms may not be skipped.
    bool add_block(const Ends& ends, bool skip) {
        if (pads && add_padded_block(ends)) return true;
        for (int first = 0; first < rows; first += kBlockRows) {
            const int count = rows - first < kBlockRows ? rows - first : kBlockRows;
            place_rows(first, count);
            bool tame = false;
            for (int64_t at = 0; at < positions; ++at) {
                const Listed list = terms_at(scratch.position[at]);
                if (list.terms == terms || skip) {
                    if (list.terms < terms && !tame && !(tame = is_tame(count))) return false;
                    skipped = skipped || list.terms < terms;
                    multiply_rows(list, ends, first, count, at);
                } else {
                    multiply_filled(ends, first, count, at);
                }
            }
        }
        return true;
    }

    bool compute_sums(bool skip) {
        skipped = false;
        int64_t at[kMaxFoldRank] = {};
        Ends ends{true, false, number(plan.init)};
        for (;;) {
            const int64_t left = plan.fold[taps.chunked] - at[taps.chunked], chunks = left < taps.chunk ? left : taps.chunk;
            ends.last = chunks == left;
            for (int d = 0; d < taps.chunked; ++d) ends.last = ends.last && at[d] + 1 == plan.fold[d];
            locate_terms(at, chunks);
            pack_y(chunks);
            y_tame = {};
            if (!add_block(ends, skip)) return false;
            ends.first = false;
            int d = taps.chunked;
            for (at[d] += chunks; d >= 0 && at[d] >= plan.fold[d]; --d) {
                at[d] = 0;
                if (d > 0) ++at[d - 1];
            }
            if (d < 0) return true;
        }
    }

    // Moves the sums to the output; false if there is a -0 among them that skipping may have made.
    bool store_sums() {
        bool side_by_side = true;
        for (int64_t p = 1; p < positions; ++p) side_by_side = side_by_side && scratch.position[p].out == scratch.position[p - 1].out + 1;
        for (int r = 0; r < rows; ++r) {
            const uint32_t* words = reinterpret_cast<const uint32_t*>(sums_at(r, 0));
            uint32_t negative_zeros = 0;
            for (int64_t i = 0; i < (skipped ? positions * width : 0); ++i) negative_zeros |= words[i] == kSign;
            if (negative_zeros != 0) return false;
            uint32_t* place = out + scratch.row_out[r];
            if (!side_by_side) {
                for (int64_t p = 0; p < positions; ++p)
                    for (int l = 0; l < lanes; ++l) place[scratch.position[p].out + l * lane_out] = words[p * width + l];
                continue;
            }
            // The output has a lane's positions side by side, the sums a position's lanes.
            const float* from[kMostPositions];
            for (int64_t p = 0; p < positions; ++p) from[p] = sums_at(r, p);
            // Some lanes after the other: they may be far apart, where one line of each takes the place of the next.
            for (int l = 0; l < lanes; l += kTransposed) {
                transpose(from, positions, lanes - l < kTransposed ? lanes - l : kTransposed, reinterpret_cast<float*>(place + scratch.position[0].out + l * lane_out), lane_out);
                for (int64_t p = 0; p < positions; ++p) from[p] += kTransposed;
            }
        }
        return true;
    }

    void compute(int64_t first_row, int64_t end_row, int64_t first_position, int64_t end_position) {
        const bool skip = (x.fill & kMagnitude) == 0 && (y.fill & kMagnitude) == 0 && plan.init != kSign;
        // With few terms, what is written counts: fewer rows leave room for longer lines of positions.
        const int most_rows = plan.terms <= kFewTerms ? kFewRows : kMostRows;
        for (int64_t group = first_row; group < end_row; group += most_rows) {
            rows = static_cast<int>(end_row - group < most_rows ? end_row - group : most_rows);
            for (int r = 0; r < rows; ++r) {
                scratch.row_x[r] = offset_at(taps.rows, x_form.out, group + r);
                scratch.row_out[r] = offset_at(taps.rows, strides, group + r);
            }
            for (int64_t at = first_position; at < end_position;) {
                at = locate_positions(at, end_position);
                if (compute_sums(skip) && store_sums()) continue;
                compute_sums(false);
                store_sums();
            }
        }
    }
};

}  // namespace
}  // namespace pol::POL_ISA
