// Folds along contiguous words of their operands (plan/find/rows.cpp). A row is read from its first word to its last,
// its accumulators stay in registers, and sixteen rows share a tile, because their elements are neighbors in the
// output. Within a tile a NaN may have any bits; it becomes canonical when the tile is written to the output.
#include "nodes/nodes.h"
#include "nodes/registers.h"
#include "nodes/row_joins.h"

namespace pol::POL_ISA {
namespace {

constexpr size_t kRowTasksPerThread = 4;

// Positions of some dimensions in row-major order, with the offset of every form.
struct Odometer {
    int rank;
    int64_t dims[kMaxRank], at[kMaxRank];
    const int64_t* stride[kMaxRank];  // per dimension: the strides of all forms; not owned
    int forms;

    void seek(int64_t index, int64_t* offset) {
        for (int d = rank - 1; d >= 0; --d) {
            at[d] = index % dims[d];
            index /= dims[d];
            for (int f = 0; f < forms; ++f) offset[f] += stride[d][f] * at[d];
        }
    }
    void advance(int64_t* offset) {
        for (int d = rank - 1; d >= 0; --d) {
            const bool wraps = ++at[d] == dims[d];
            for (int f = 0; f < forms; ++f) offset[f] += stride[d][f] * (wraps ? 1 - dims[d] : 1);
            if (!wraps) return;
            at[d] = 0;
        }
    }
};

struct Rows : Registers {
    const RowPlan& row;
    const uint32_t* buffers;  // of registers
    int64_t strides[kMaxRank + kMaxFoldRank][kMaxForms];
    int64_t step[kMaxForms];              // of a form along a row
    int64_t at[kTileRows][kMaxForms];     // of a form at the beginning of a row, for the first fold index
    Odometer rows, outer;
    int64_t rounds;                       // of the outer fold dimensions
    bool centered;                         // the terms are computed in registers
    bool in_place;                        // all terms are words of the operands that can be read where they are
    alignas(64) uint32_t tile[kTileRows][kTileLanes];

    Rows(const Plan& plan_, const Run& run_, void* scratch)
        : Registers(plan_, run_, scratch, plan_.lanes), row(plan_.row), buffers(static_cast<const uint32_t*>(scratch)) {
        rows.rank = outer.rank = 0;
        rows.forms = outer.forms = plan.forms;
        int next = 0;
        for (int d = row.lanes ? 1 : 0; d < plan.space.rank; ++d, ++next) {
            for (int f = 0; f < plan.forms; ++f) strides[next][f] = plan.form[f].out[d];
            rows.stride[rows.rank] = strides[next];
            rows.dims[rows.rank++] = plan.space.dims[d];
        }
        rounds = 1;
        for (int d = 0; d + 1 < plan.fold_rank; ++d, ++next) {
            for (int f = 0; f < plan.forms; ++f) strides[next][f] = plan.form[f].fold[d];
            outer.stride[outer.rank] = strides[next];
            outer.dims[outer.rank++] = plan.fold[d];
            rounds *= plan.fold[d];
        }
        for (int f = 0; f < plan.forms; ++f) step[f] = row.lanes ? plan.form[f].out[0] : plan.form[f].fold[plan.fold_rank - 1];
        centered = row.centered;
        for (int o = 0; o < plan.operands; ++o) centered = centered && run.safe[o];
        in_place = !row.programmed;
        for (const int r : {row.x, row.y})
            in_place = in_place && r < plan.operands && run.safe[r] && step[plan.operand[r].address] == 1;
    }

    // The words [low, high) of a row of `count` words from `first` that an operand can read.
    void inside(int o, const int64_t* place, int64_t first, int count, int& low, int& high) const {
        const PlannedOperand& operand = plan.operand[o];
        low = 0, high = count;
        if (run.safe[o]) return;
        for (int f = operand.address + operand.bounds; f >= operand.address; --f)
            clip(place[f] + step[f] * first, step[f], f == operand.address ? operand.numel : operand.limits[f - operand.address - 1], low, high);
    }

    const uint32_t* read(int o, const int64_t* place, int64_t first, int count, uint32_t* to) const {
        const PlannedOperand& operand = plan.operand[o];
        const int64_t stride = step[operand.address], a = place[operand.address] + stride * first;
        int low, high;
        inside(o, place, first, count, low, high);
        if (low >= high) {
            fill(to, operand.fill, count);
            return to;
        }
        if (stride == 1 && low == 0 && high == count) return run.sources[o] + a;
        fill(to, operand.fill, low);
        copy(to + low, run.sources[o] + a + stride * low, stride, high - low);
        fill(to + high, operand.fill, count - high);
        return to;
    }

    // Sets the values of x and y to the words of a part of a row.
    void compute_terms(const int64_t* place, int64_t first, int count) {
        for (int o = 0; o < plan.operands; ++o) value[o] = read(o, place, first, count, buffer[o]);
        for (int i = 0; i < plan.once_count; ++i) execute(plan.once[i], buffer[plan.once[i].result], count);
        for (int i = 0; i < plan.each_count - plan.join.instructions; ++i) execute(plan.each[i], buffer[plan.each[i].result], count);
    }

    // How many words from the beginning of a row can be read where they are.
    int64_t readable(const int64_t* place) const {
        int64_t words = row.length;
        for (const int r : {row.x, row.y}) {
            if (r >= plan.operands || step[plan.operand[r].address] != 1) return 0;
            int low, high;
            const int count = words < (1 << 30) ? static_cast<int>(words) : 1 << 30;
            inside(r, place, 0, count, low, high);
            words = low > 0 || high < 0 ? 0 : high;
        }
        return words;
    }

    template <class Join, int vectors>
    void fold_lanes(int r, int64_t* place) {
        constexpr int width = vectors * kVector;
        if (centered) {
            const auto source = [&](int o) { return o < 0 ? nullptr : run.sources[o] + place[plan.operand[o].address]; };
            const auto join = row.factor < 0 ? join_centered<vectors, true, false> : row.scale < 0 ? join_centered<vectors, false, false> : join_centered<vectors, false, true>;
            for (int64_t k = 0; k < rounds; ++k, outer.advance(place))
                join(tile[r], source(row.factor), source(row.scale), source(row.value), *source(row.mean), row.length / width);
            return;
        }
        for (int64_t k = 0; k < rounds; ++k, outer.advance(place)) {
            int64_t first = 0;
            if (!row.programmed) {
                first = readable(place) / width * width;
                if (first > 0)
                    join_lanes<Join, vectors>(tile[r], run.sources[row.x] + place[plan.operand[row.x].address],
                                              run.sources[row.y] + place[plan.operand[row.y].address], first / width);
            }
            while (first < row.length) {
                const int count = row.length - first < plan.lanes ? static_cast<int>(row.length - first) : plan.lanes;
                compute_terms(place, first, count);
                join_lanes<Join, vectors>(tile[r], value[row.x], value[row.y], count / width);
                first += count;
            }
        }
    }

    template <class Join>
    void fold_rows(int count) {
        const uint32_t* x[kTileRows];
        const uint32_t* y[kTileRows];
        uint32_t acc[kTileRows];
        fill(acc, plan.init, kTileRows);
        if (rounds == 1 && in_place && row.length <= (1 << 30)) {
            for (int r = 0; r < kTileRows; ++r) {
                const int64_t* place = at[r < count ? r : 0];
                x[r] = run.sources[row.x] + place[plan.operand[row.x].address];
                y[r] = run.sources[row.y] + place[plan.operand[row.y].address];
            }
            join_rows<Join>(acc, x, y, static_cast<int>(row.length));
            for (int r = 0; r < count; ++r) tile[r][0] = acc[r];
            return;
        }
        Odometer start = outer;
        for (int r = 0; r < count; ++r) {
            outer = start;
            outer.seek(0, at[r]);
        }
        for (int64_t k = 0; k < rounds; ++k) {
            for (int64_t first = 0; first < row.length; first += plan.lanes) {
                const int n = row.length - first < plan.lanes ? static_cast<int>(row.length - first) : plan.lanes;
                for (int r = 0; r < kTileRows; ++r) {
                    if (r >= count) {
                        x[r] = x[0], y[r] = y[0];
                        continue;
                    }
                    compute_terms(at[r], first, n);
                    x[r] = keep(value[row.x], r, n);
                    y[r] = row.y == row.x ? x[r] : keep(value[row.y], kTileRows + r, n);
                }
                join_rows<Join>(acc, x, y, n);
            }
            const Odometer before = outer;
            for (int r = 0; r < count; ++r) {
                outer = before;
                outer.advance(at[r]);
            }
        }
        for (int r = 0; r < count; ++r) tile[r][0] = acc[r];
    }

    // The words themselves if they lie in a source, else a copy past the buffers, which the next row does not
    // overwrite.
    const uint32_t* keep(const uint32_t* words, int place, int count) {
        if (words < buffers || words >= rest) return words;
        uint32_t* copied = rest + size_t(place) * plan.lanes;
        __builtin_memcpy(copied, words, size_t(count) * sizeof(uint32_t));
        return copied;
    }

    template <class Join>
    void compute_tile(int64_t first, int count) {
        int64_t place[kMaxForms];
        for (int f = 0; f < plan.forms; ++f) place[f] = run.bases[f];
        rows.seek(first, place);
        for (int r = 0; r < count; ++r, rows.advance(place)) {
            for (int f = 0; f < plan.forms; ++f) at[r][f] = place[f];
            if (!row.lanes) continue;
            fill(tile[r], plan.init, row.width);
            outer.seek(0, at[r]);
            switch (row.width / kVector) {
                case 1: fold_lanes<Join, 1>(r, at[r]); break;
                case 2: fold_lanes<Join, 2>(r, at[r]); break;
                default: fold_lanes<Join, 4>(r, at[r]); break;
            }
        }
        if (!row.lanes) fold_rows<Join>(count);
        const int64_t all = plan.space.size / row.width;
        for (int l = 0; l < row.width; ++l) {
            uint32_t words[kTileRows];
            for (int r = 0; r < kTileRows; ++r) words[r] = tile[r][l];
            for (int r = 0; r < kTileRows; ++r) words[r] = settled<Join>(words[r]);
            __builtin_memcpy(run.out + l * all + first, words, size_t(count) * sizeof(uint32_t));
        }
    }

    template <class Join>
    void compute(int64_t first, int64_t end) {
        for (; first < end; first += kTileRows) compute_tile<Join>(first, end - first < kTileRows ? static_cast<int>(end - first) : kTileRows);
    }
};

int64_t tiles(const Plan& plan) { return (plan.space.size / plan.row.width + kTileRows - 1) / kTileRows; }

}  // namespace

size_t row_tasks(const Plan& plan, size_t threads) {
    const size_t wanted = threads > 1 ? threads * kRowTasksPerThread : 1, most = static_cast<size_t>(tiles(plan));
    return wanted < most ? wanted : most;
}

size_t row_scratch(const Plan& plan) { return register_bytes(plan) + size_t(2 * kTileRows) * plan.lanes * sizeof(uint32_t); }

void compute_rows(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch) {
    Rows rows(plan, run, scratch);
    const int64_t count = tiles(plan), all = plan.space.size / plan.row.width;
    const int64_t first = count * static_cast<int64_t>(task) / static_cast<int64_t>(tasks) * kTileRows;
    int64_t end = count * static_cast<int64_t>(task + 1) / static_cast<int64_t>(tasks) * kTileRows;
    if (end > all) end = all;
    with_join(plan.join.op, [&](auto join, auto) { rows.compute<decltype(join)>(first, end); });
}

}  // namespace pol::POL_ISA
