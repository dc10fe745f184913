// Maps whose operands are read at in-range addresses that are linear in the element's coordinates: whole lines, rows or
// tiles, with nothing to look up per block. Included by elements.cpp.
#pragma once
#include "maps/endings.h"
#include "maps/short_rows.h"
#include "nodes/registers.h"
#include "maps/uniform_lanes.h"

namespace pol::POL_ISA {
namespace {

constexpr int kTileRows = 16;                   // a cache line of words
constexpr int64_t kLongest = int64_t{1} << 30;  // lanes at once, where no buffer is needed

struct PlainMap : Registers {
    ApplyEnding plain_ending;  // where all leaves are blocks of words

    PlainMap(const Plan& plan_, const Run& run_, void* scratch)
        : Registers(plan_, run_, scratch, block_width(plan_)), plain_ending(ending_with(plan.ending, 0)) {}

    // The body of a map whose ending is computed in registers.
    void compute_ending(ApplyEnding apply_leaves, uint32_t* out, int lanes) {
        execute(plan.before, plan.before_count, out, lanes);
        const uint32_t* leaf[kMostLeaves];
        for (int i = 0; i < plan.leaves; ++i) leaf[i] = value[plan.leaf[i]];
        apply_leaves(out, leaf, lanes);
    }

    // The body of a map on blocks of words.
    void compute_block(uint32_t* out, int lanes) {
        if (plain_ending != nullptr)
            compute_ending(plain_ending, out, lanes);
        else
            compute(out, lanes);
    }

    // Maps whose operands are lines through the whole output: nothing to locate, and words in place are read there.
    void compute_line(int64_t first, int64_t end) {
        const int inner = plan.space.axis[plan.space.rank - 1];
        bool in_place = plan.each_count == 1 && plan.once_count == 0 && plan.constants == 0;
        for (int o = 0; o < plan.operands; ++o) in_place = in_place && plan.form[plan.operand[o].address].out[inner] == 1;
        const int64_t step = in_place ? kLongest : plan.lanes;
        for (bool begins = true; first < end; first += step, begins = false) {
            const int count = end - first < step ? static_cast<int>(end - first) : static_cast<int>(step);
            for (int o = 0; o < plan.operands; ++o) {
                const int form = plan.operand[o].address;
                const int64_t stride = plan.form[form].out[inner];
                const uint32_t* from = run.sources[o] + run.bases[form] + stride * first;
                if (stride == 1) {
                    value[o] = from;
                    // The next block comes while this one is computed.
                    if (!in_place && first + 2 * step <= end)
                        for (int64_t j = step; j < 2 * step; j += 16) __builtin_prefetch(from + j);
                } else if (stride != 0 || begins) {
                    copy(buffer[o], from, stride, count);
                }
            }
            compute_block(run.out + first, count);
        }
    }

    // The position in each dimension but the innermost, and where the row there starts in every form.
    struct Row {
        int64_t at[kMaxRank];
        int64_t start[kMaxForms];
    };

    void seek_row(Row& row, int64_t number) const {
        const int inner = plan.space.rank - 1;
        for (int d = inner - 1; d >= 0; number /= plan.space.dims[d--]) row.at[d] = number % plan.space.dims[d];
        for (int f = 0; f < plan.forms; ++f) {
            row.start[f] = run.bases[f];
            for (int d = 0; d < inner; ++d) row.start[f] += plan.form[f].out[d] * row.at[d];
        }
    }

    void next_row(Row& row) const {
        for (int d = plan.space.rank - 2; d >= 0; --d) {
            const bool wraps = ++row.at[d] == plan.space.dims[d];
            for (int f = 0; f < plan.forms; ++f) row.start[f] += plan.form[f].out[d] * (wraps ? 1 - plan.space.dims[d] : 1);
            if (!wraps) return;
            row.at[d] = 0;
        }
    }

    // How many rows from this one on, up to `most`, differ from it in the last dimension but one alone.
    int neighbors(const Row& row, int most) const {
        if (plan.space.rank < 2) return 1;
        const int64_t left = plan.space.dims[plan.space.rank - 2] - row.at[plan.space.rank - 2];
        return left < most ? static_cast<int>(left) : most;
    }

    // Goes `count` rows on, all of them neighbors.
    void skip_rows(Row& row, int count) const {
        if (plan.space.rank < 2) return;
        row.at[plan.space.rank - 2] += count - 1;
        for (int f = 0; f < plan.forms; ++f) row.start[f] += row_stride(f) * (count - 1);
        next_row(row);
    }

    int64_t row_stride(int form) const { return plan.space.rank < 2 ? 0 : plan.form[form].out[plan.space.rank - 2]; }

    int64_t inner_stride(int form) const { return plan.form[form].out[plan.space.rank - 1]; }

    bool same_in_all_rows(int form) const {
        for (int d = 0; d < plan.space.rank - 1; ++d)
            if (plan.form[form].out[d] != 0) return false;
        return true;
    }

    static void count_up(uint32_t* to, uint32_t first, uint32_t stride, int count) {
        for (int j = 0; j < count; ++j) to[j] = first + stride * static_cast<uint32_t>(j);
    }

    // Of an instruction: its operands that are one word in a row, as bits.
    static unsigned mask_of(const PlannedInstruction& in, const bool* uniform) {
        const bool fused = (in.op & ~kLazy) == FFMA;
        return static_cast<unsigned>(uniform[in.a]) | static_cast<unsigned>(uniform[in.b]) << 1 | static_cast<unsigned>(fused && uniform[in.c]) << 2;
    }

    // Finds the registers of operands that are one word in a row and need no buffer for it: no instruction reads one that
    // takes whole blocks only, or words alone.
    void find_uniform(bool* uniform) const {
        for (int r = 0; r < plan.registers; ++r) uniform[r] = r < plan.operands && inner_stride(plan.operand[r].address) == 0 && !moves();
        for (bool settled = false; !settled;) {
            settled = true;
            for (const auto& [instructions, count] : {Part{plan.once, plan.once_count}, Part{plan.each, plan.each_count}})
                for (int i = 0; i < count; ++i) {
                    const PlannedInstruction& in = instructions[i];
                    const unsigned all = (in.op & ~kLazy) == FFMA ? 7 : 3;
                    if (takes_uniform(in.op) && mask_of(in, uniform) != all) continue;
                    for (const int r : {in.a, in.b, in.c, in.d, in.e}) {
                        settled = settled && !uniform[r];
                        uniform[r] = false;
                    }
                }
        }
    }

    struct Part {
        const PlannedInstruction* instructions;
        int count;
    };

    // The ending in rows whose operands are one word where they can be; null if it is none of those that are compiled.
    ApplyEnding find_row_ending(bool* uniform) const {
        if (plan.ending == Ending::none) return nullptr;
        unsigned mask = 0;
        for (int i = 0; i < plan.leaves; ++i) mask |= static_cast<unsigned>(plan.leaf[i] < plan.operands && inner_stride(plan.operand[plan.leaf[i]].address) == 0) << i;
        for (int k = 0; k < plan.before_count; ++k)
            for (const int r : {plan.before[k].a, plan.before[k].b, plan.before[k].c, plan.before[k].d, plan.before[k].e})
                for (int i = 0; i < plan.leaves; ++i)
                    if (r == plan.leaf[i] && mask >> i & 1) return nullptr;
        const ApplyEnding found = ending_with(plan.ending, mask);
        if (found == nullptr) return nullptr;
        for (int r = 0; r < plan.registers; ++r) uniform[r] = false;
        for (int i = 0; i < plan.leaves; ++i) uniform[plan.leaf[i]] = mask >> i & 1;
        return found;
    }

    void compute_with(const bool* uniform, uint32_t* out, int lanes) {
        for (const auto& [instructions, count] : {Part{plan.once, plan.once_count}, Part{plan.each, plan.each_count}})
            for (int i = 0; i < count; ++i) {
                const PlannedInstruction& in = instructions[i];
                uint32_t* result = buffer[in.result] == nullptr ? out : buffer[in.result];
                const unsigned mask = takes_uniform(in.op) ? mask_of(in, uniform) : 0;
                if (mask != 0)
                    apply_uniform(in.op, mask, result, value[in.a], value[in.b], value[in.c], lanes);
                else if (in.op != MOV || value[in.a] != result)
                    execute(in, result, lanes);
            }
    }

    // Long rows, whatever the operands do from row to row: the blocks [block, end), `pieces` of them a row.
    void compute_rows(int64_t block, int64_t end, int64_t pieces) {
        const int64_t length = plan.space.dims[plan.space.rank - 1];
        const int widest = static_cast<int>((length + pieces - 1) / pieces);
        int64_t number = block / pieces, piece = block % pieces;
        Row row;
        seek_row(row, number);
        const int moved = moves() ? plan.each->a : -1;
        bool uniform[kMaxPlanRegisters];
        const ApplyEnding row_ending = find_row_ending(uniform);
        if (row_ending == nullptr) find_uniform(uniform);
        bool streams[kMaxOperands];
        for (int o = 0; o < plan.operands; ++o) streams[o] = !same_in_all_rows(plan.operand[o].address);
        const uint32_t* filled[kMaxOperands] = {};
        int64_t counted[kMaxCoordinates];  // where the coordinate's words in the buffer start
        bool empty = true;
        for (; block < end; ++block, empty = false) {
            const int64_t from = length * piece / pieces;
            const int count = static_cast<int>(length * (piece + 1) / pieces - from);
            uint32_t* const out = run.out + number * length + from;
            for (int o = 0; o < plan.operands; ++o) {
                const int form = plan.operand[o].address;
                const int64_t stride = inner_stride(form);
                const uint32_t* words = run.sources[o] + row.start[form] + stride * from;
                if (o == moved) value[o] = buffer[o] = out;
                if (stride == 1) {
                    value[o] = words;
                    // The next block comes while this one is computed.
                    if (streams[o])
                        for (int j = 0; j < count; j += 16) __builtin_prefetch(words + count + j);
                } else if (stride != 0) {
                    copy(buffer[o], words, stride, count);
                } else if (uniform[o]) {
                    value[o] = words;
                } else if (o == moved) {
                    fill(out, *words, count);
                } else if (filled[o] != words) {
                    fill(buffer[o], *words, widest);
                    filled[o] = words;
                }
            }
            for (int i = 0; i < plan.coordinates; ++i) {
                const int form = plan.coordinate[i].form;
                const int64_t first = row.start[form] + inner_stride(form) * from;
                if (!empty && counted[i] == first) continue;
                count_up(buffer[plan.operands + i], static_cast<uint32_t>(first), static_cast<uint32_t>(inner_stride(form)), widest);
                counted[i] = first;
            }
            if (row_ending != nullptr)
                compute_ending(row_ending, out, count);
            else
                compute_with(uniform, out, count);
            if (++piece < pieces) continue;
            piece = 0;
            ++number;
            next_row(row);
        }
    }

    // Short rows: blocks of several rows [number, end). An operand is one line through all, the same in every row, or
    // put together row by row.
    void compute_short_rows(int64_t number, int64_t end) {
        const int length = static_cast<int>(plan.space.dims[plan.space.rank - 1]);
        const int most = static_cast<int>(end - number < plan.lanes / length ? end - number : plan.lanes / length);
        Row row;
        seek_row(row, number);
        int joined[kMaxOperands], operands = 0, counted[kMaxCoordinates], coordinates = 0;
        bool line[kMaxOperands];
        for (int o = 0; o < plan.operands; ++o) {
            const int form = plan.operand[o].address;
            line[o] = is_linear(plan, plan.operand[o], plan.space);
            if (!line[o] && !same_in_all_rows(form)) joined[operands++] = o;
            if (!line[o] && same_in_all_rows(form))
                for (int r = 0; r < most; ++r) copy(buffer[o] + r * length, run.sources[o] + row.start[form], inner_stride(form), length);
        }
        for (int i = 0; i < plan.coordinates; ++i) {
            const int form = plan.coordinate[i].form;
            if (!same_in_all_rows(form)) counted[coordinates++] = i;
            else
                for (int r = 0; r < most; ++r)
                    count_up(buffer[plan.operands + i] + r * length, static_cast<uint32_t>(row.start[form]), static_cast<uint32_t>(inner_stride(form)), length);
        }
        for (; number < end; number += most) {
            const int rows = end - number < most ? static_cast<int>(end - number) : most;
            for (int o = 0; o < plan.operands; ++o) {
                if (!line[o]) continue;
                const int form = plan.operand[o].address;
                const uint32_t* words = run.sources[o] + row.start[form];
                if (inner_stride(form) == 1)
                    value[o] = words;
                else
                    copy(buffer[o], words, inner_stride(form), rows * length);
            }
            uint32_t* const out = run.out + number * length;
            if (moves() && operands == 1 && joined[0] == plan.each->a) value[plan.each->a] = buffer[plan.each->a] = out;
            for (int r = 0, some; r < rows; r += some) {
                some = neighbors(row, rows - r);
                for (int k = 0; k < operands; ++k) {
                    const int o = joined[k], form = plan.operand[o].address;
                    copy_rows(buffer[o] + r * length, run.sources[o] + row.start[form], row_stride(form), inner_stride(form), some, length);
                }
                for (int k = 0; k < coordinates; ++k) {
                    const int form = plan.coordinate[counted[k]].form;
                    count_rows(buffer[plan.operands + counted[k]] + r * length, static_cast<uint32_t>(row.start[form]), static_cast<uint32_t>(row_stride(form)), static_cast<uint32_t>(inner_stride(form)), some, length);
                }
                skip_rows(row, some);
            }
            compute_block(out, rows * length);
        }
    }

    // Maps with an operand that is contiguous along another output dimension than the innermost: tiles over these two,
    // so that whole cache lines are read and written.
    void compute_tile(int64_t tile) {
        const int inner = plan.space.rank - 1, other = plan.tile_axis;
        const int columns = plan.lanes / kTileRows;
        int64_t at[kMaxRank] = {}, stride = 1, offset = 0, strides[kMaxRank];
        const int64_t rows = (plan.space.dims[other] + kTileRows - 1) / kTileRows;
        at[other] = tile % rows * kTileRows;
        tile /= rows;
        const int64_t wide = (plan.space.dims[inner] + columns - 1) / columns;
        at[inner] = tile % wide * columns;
        tile /= wide;
        for (int d = inner - 1; d >= 0; --d)
            if (d != other) {
                at[d] = tile % plan.space.dims[d];
                tile /= plan.space.dims[d];
            }
        for (int d = inner; d >= 0; --d) {
            strides[d] = stride;
            offset += stride * at[d];
            stride *= plan.space.dims[d];
        }
        const int64_t below = plan.space.dims[other] - at[other], right = plan.space.dims[inner] - at[inner];
        const int height = below < kTileRows ? static_cast<int>(below) : kTileRows;
        const int width = right < columns ? static_cast<int>(right) : columns;
        for (int o = 0; o < plan.operands; ++o) {
            const int form = plan.operand[o].address;
            const int64_t* forms = plan.form[form].out;
            const uint32_t* from = run.sources[o] + run.bases[form];
            for (int d = 0; d <= inner; ++d) from += forms[d] * at[d];
            uint32_t* to = buffer[o];
            if (forms[other] == 1 && forms[inner] != 0 && height == kTileRows) {
                for (int c = 0; c < width; ++c)
                    for (int r = 0; r < kTileRows; ++r) to[r * width + c] = from[c * forms[inner] + r];
            } else {
                for (int r = 0; r < height; ++r) copy(to + r * width, from + r * forms[other], forms[inner], width);
            }
        }
        const PlannedInstruction& last = plan.each[plan.each_count - 1];
        const uint32_t* result = value[last.a];
        if (last.op != MOV || plan.each_count > 1 || plan.once_count > 0) {
            // The result goes where the tile's own lines are written from.
            compute(rest, height * width);
            result = rest;
        }
        for (int r = 0; r < height; ++r) copy(run.out + offset + r * strides[other], result + r * width, 1, width);
    }
};

}  // namespace
}  // namespace pol::POL_ISA
