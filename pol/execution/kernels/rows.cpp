// Folds along contiguous words of their operands (plan_rows.cpp). A row is read from its first word to its last, its
// accumulators stay in registers, and sixteen rows share a tile, because their elements are neighbours in the output.
// In between, a NaN may be any NaN; it becomes the one NaN where the tile goes to the output.
#include "lanes.h"
#include "nodes.h"
#include "primitives.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

// Vectors wider than the processor's are passed between inlined functions only.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace pol::POL_ISA {
namespace {

constexpr int kTileRows = 16, kTileLanes = 32, kVector = 8;
constexpr size_t kRowTasksPerThread = 4;
constexpr int kMaxForms = kMaxOperands * (1 + kMaxBounds) + kMaxCoordinates;
constexpr int kMaxRegisterCount = kMaxOperands + kMaxCoordinates + 1 + 256;

typedef float Floats __attribute__((vector_size(32)));
typedef uint32_t Words __attribute__((vector_size(32)));
typedef Floats FloatsAnywhere __attribute__((aligned(4), may_alias));

[[gnu::always_inline]] inline Floats load(const uint32_t* p) { return *reinterpret_cast<const FloatsAnywhere*>(p); }
[[gnu::always_inline]] inline void store(uint32_t* p, Floats v) { *reinterpret_cast<FloatsAnywhere*>(p) = v; }
#define POL_UNROLL _Pragma("GCC unroll 8")

// How a term joins an accumulator; a NaN stays a NaN.
struct Add {
    static constexpr bool pair = false;
    [[gnu::always_inline]] static Floats join(Floats acc, Floats x, Floats) { return acc + x; }
};
struct Fuse {
    static constexpr bool pair = true;
    [[gnu::always_inline]] static Floats join(Floats acc, Floats x, Floats y) {
#if defined(__AVX2__)
        return (Floats)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)acc);
#else
        for (int i = 0; i < kVector; ++i) acc[i] = __builtin_fmaf(x[i], y[i], acc[i]);
        return acc;
#endif
    }
};
struct Least {
    static constexpr bool pair = false;
    [[gnu::always_inline]] static Floats join(Floats a, Floats b, Floats) {
        const Words u = (Words)a, v = (Words)b;
        return (Floats)(a < b ? u : b < a ? v : u | v);  // equal: -0 if either is; one is NaN: so is u | v
    }
};
struct Greatest {
    static constexpr bool pair = false;
    [[gnu::always_inline]] static Floats join(Floats a, Floats b, Floats) {
        const Words u = (Words)a, v = (Words)b;
        return (Floats)(a > b ? u : b > a ? v : ((u ^ kSign) | (v ^ kSign)) ^ kSign);
    }
};

// Joins `rounds` times `width` words of a row to as many accumulators.
template <class Join, int vectors>
void join_lanes(uint32_t* acc, const uint32_t* x, const uint32_t* y, int64_t rounds) {
    Floats a[vectors];
    POL_UNROLL for (int v = 0; v < vectors; ++v) a[v] = load(acc + v * kVector);
    for (int64_t k = 0; k < rounds; ++k, x += vectors * kVector, y += vectors * kVector)
        POL_UNROLL for (int v = 0; v < vectors; ++v) a[v] = Join::join(a[v], load(x + v * kVector), Join::pair ? load(y + v * kVector) : a[v]);
    POL_UNROLL for (int v = 0; v < vectors; ++v) store(acc + v * kVector, a[v]);
}

// The same for terms factor * scale * (value - mean), or (value - mean)^2; what is not there is null.
template <int vectors, bool squared, bool scaled>
void join_centred(uint32_t* acc, const uint32_t* factor, const uint32_t* scale, const uint32_t* value, uint32_t mean, int64_t rounds) {
    const Words splat = Words{} + mean;
    Floats a[vectors];
    POL_UNROLL for (int v = 0; v < vectors; ++v) a[v] = load(acc + v * kVector);
    for (int64_t k = 0; k < rounds; ++k) {
        POL_UNROLL for (int v = 0; v < vectors; ++v) {
            const int64_t at = (k * vectors + v) * kVector;
            const Floats centred = load(value + at) - (Floats)splat;
            const Floats other = squared ? centred : scaled ? load(factor + at) * load(scale + at) : load(factor + at);
            a[v] = Fuse::join(a[v], other, centred);
        }
    }
    POL_UNROLL for (int v = 0; v < vectors; ++v) store(acc + v * kVector, a[v]);
}

#if defined(__clang__)
#define POL_PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define POL_PICK(a, b, ...) __builtin_shuffle(a, b, (Words){__VA_ARGS__})
#endif

[[gnu::always_inline]] inline void transpose(Floats* r) {
    Floats s[8], t[8];
    POL_UNROLL for (int i = 0; i < 8; i += 2) {
        s[i] = POL_PICK(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        s[i + 1] = POL_PICK(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    POL_UNROLL for (int i = 0; i < 8; i += 4)
        POL_UNROLL for (int j = 0; j < 2; ++j) {
            t[i + 2 * j] = POL_PICK(s[i + j], s[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            t[i + 2 * j + 1] = POL_PICK(s[i + j], s[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    POL_UNROLL for (int i = 0; i < 4; ++i) {
        r[i] = POL_PICK(t[i], t[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        r[i + 4] = POL_PICK(t[i], t[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

#undef POL_PICK

// Joins `count` words of each of sixteen rows, in order, to one accumulator per row.
template <class Join>
void join_rows(uint32_t* acc, const uint32_t* const* x, const uint32_t* const* y, int count) {
    Floats a[kTileRows / kVector];
    POL_UNROLL for (int h = 0; h < kTileRows / kVector; ++h) a[h] = load(acc + h * kVector);
    int k = 0;
    for (; k + kVector <= count; k += kVector)
        POL_UNROLL for (int h = 0; h < kTileRows / kVector; ++h) {
            Floats s[kVector], t[kVector];
            POL_UNROLL for (int r = 0; r < kVector; ++r) s[r] = load(x[h * kVector + r] + k);
            transpose(s);
            if (Join::pair) {
                POL_UNROLL for (int r = 0; r < kVector; ++r) t[r] = load(y[h * kVector + r] + k);
                transpose(t);
            }
            POL_UNROLL for (int i = 0; i < kVector; ++i) a[h] = Join::join(a[h], s[i], Join::pair ? t[i] : a[h]);
        }
    for (; k < count; ++k)
        POL_UNROLL for (int h = 0; h < kTileRows / kVector; ++h) {
            Words s, t{};
            POL_UNROLL for (int r = 0; r < kVector; ++r) s[r] = x[h * kVector + r][k];
            if (Join::pair)
                POL_UNROLL for (int r = 0; r < kVector; ++r) t[r] = y[h * kVector + r][k];
            a[h] = Join::join(a[h], (Floats)s, Join::pair ? (Floats)t : a[h]);
        }
    POL_UNROLL for (int h = 0; h < kTileRows / kVector; ++h) store(acc + h * kVector, a[h]);
}

// Positions of some dimensions in row-major order, with the offset of every form.
struct Odometer {
    int rank;
    int64_t dims[kMaxRank], at[kMaxRank];
    const int64_t* stride[kMaxRank];  // not owned: per dimension, of every form
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

struct Rows {
    const Plan& plan;
    const Run& run;
    const RowPlan& row;
    uint32_t* buffers;    // of registers
    uint32_t* terms;      // rows without lanes: the term words of sixteen rows, twice
    int64_t strides[kMaxRank + kMaxFoldRank][kMaxForms];
    int64_t step[kMaxForms];              // of a form along a row
    int64_t at[kTileRows][kMaxForms];     // of a form at the begin of a row, for the first fold index
    Odometer rows, outer;
    int64_t rounds;                       // of the outer fold dimensions
    bool centred;                         // the terms are computed in registers
    bool in_place;                        // all terms are words of the operands that can be read where they are
    uint32_t* buffer[kMaxRegisterCount];
    const uint32_t* value[kMaxRegisterCount];
    alignas(64) uint32_t tile[kTileRows][kTileLanes];

    Rows(const Plan& plan_, const Run& run_, void* scratch) : plan(plan_), run(run_), row(plan_.row) {
        buffers = static_cast<uint32_t*>(scratch);
        terms = buffers + size_t(plan.buffers) * plan.lanes;
        for (int r = 0; r < plan.registers; ++r) {
            buffer[r] = plan.buffer[r] == kOutputBuffer ? nullptr : buffers + size_t(plan.buffer[r]) * plan.lanes;
            value[r] = buffer[r];
        }
        for (int i = 0; i < plan.constants; ++i) fill(buffer[plan.accumulator + 1 + i], plan.constant[i], plan.lanes);
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
        centred = row.centred;
        for (int o = 0; o < plan.operands; ++o) centred = centred && run.safe[o];
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

    void execute(const PlannedInstruction* instructions, int count, int n) {
        for (int i = 0; i < count; ++i) {
            const PlannedInstruction& in = instructions[i];
            if (in.op < kFunction) {
                apply(in.op, buffer[in.result], value[in.a], value[in.b], value[in.c], n);
            } else {
                const uint32_t* inputs[] = {value[in.a], value[in.b], value[in.c], value[in.d], value[in.e]};
                apply_function(in.op - kFunction, buffer[in.result], inputs, n);
            }
        }
    }

    // Sets the values of x and y to the words of a part of a row.
    void compute_terms(const int64_t* place, int64_t first, int count) {
        for (int o = 0; o < plan.operands; ++o) value[o] = read(o, place, first, count, buffer[o]);
        execute(plan.once, plan.once_count, count);
        execute(plan.each, plan.each_count - 1, count);
    }

    // How many words from the begin of a row can be read where they are.
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
        if (centred) {
            const auto source = [&](int o) { return o < 0 ? nullptr : run.sources[o] + place[plan.operand[o].address]; };
            const auto join = row.factor < 0 ? join_centred<vectors, true, false> : row.scale < 0 ? join_centred<vectors, false, false> : join_centred<vectors, false, true>;
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

    // The words themselves if they lie in a source, else a copy that the next row does not overwrite.
    const uint32_t* keep(const uint32_t* words, int place, int count) {
        if (words < buffers || words >= terms) return words;
        uint32_t* copied = terms + size_t(place) * plan.lanes;
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
            for (int r = 0; r < kTileRows; ++r) words[r] = is_nan(words[r]) ? kNan : words[r];
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

size_t row_scratch(const Plan& plan) { return (size_t(plan.buffers) + 2 * kTileRows) * plan.lanes * sizeof(uint32_t); }

void compute_rows(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch) {
    Rows rows(plan, run, scratch);
    const int64_t count = tiles(plan), all = plan.space.size / plan.row.width;
    const int64_t first = count * static_cast<int64_t>(task) / static_cast<int64_t>(tasks) * kTileRows;
    int64_t end = count * static_cast<int64_t>(task + 1) / static_cast<int64_t>(tasks) * kTileRows;
    if (end > all) end = all;
    switch (plan.row.join) {
        case FADD: rows.compute<Add>(first, end); break;
        case FMAX: rows.compute<Greatest>(first, end); break;
        case FMIN: rows.compute<Least>(first, end); break;
        default: rows.compute<Fuse>(first, end); break;
    }
}

}  // namespace pol::POL_ISA
