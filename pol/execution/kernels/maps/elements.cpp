// The kernel for any node: interprets the scalar program over blocks of output elements, one instruction at a time over
// all lanes. A fold runs its terms in order, for all lanes of a block side by side.
#include "nodes/blocks.h"
#include "maps/column_joins.h"
#include "nodes/nodes.h"
#include "maps/plain_maps.h"

namespace pol::POL_ISA {
namespace {

constexpr size_t kTasksPerThread = 4;
constexpr int64_t kLongRow = 128;  // a row of at least so many words is cut into blocks of its own
constexpr int64_t kLine = 16;

// Neighboring lanes of a node.
struct LaneSpan {
    int64_t first;
    int count;
};

constexpr int kColumnBlocks = 64;  // whose accumulators stay in the second-level cache
struct ColumnBlock {
    const uint32_t* at[4];  // x, y, mean, scale
};

// One worker.
struct Engine : Block {
    uint32_t* turned;  // the words of a block whose lanes are no neighbors in the output
    int64_t strides[kMaxRank];
    bool columns;      // terms are joined by maps/column_joins.h

    Engine(const Plan& plan_, const Run& run_, void* scratch)
        : Block(plan_, run_, plan_.turned, scratch), turned(rest + lanes_bytes(plan.forms) / sizeof(uint32_t)) {
        output_strides(plan, strides);
        columns = plan.columns.found;
        for (int o = 0; o < plan.operands; ++o) columns = columns && run.safe[o];
    }

    // Computes what does not depend on the fold index.
    void begin_block(uint32_t* out, int64_t first, int count) {
        locate_lanes(first, count);
        seek(plan, 0, fold);
        value[plan.accumulator] = out;
        if (moves()) {
            // Only the operand that is moved goes to the output, not an index that it gathers through.
            uint32_t*& to = buffer[plan.each->a];
            uint32_t* const own = to;
            to = out;
            read_operands(false);
            to = own;
            return;
        }
        read_operands(false);
        compute_coordinates(false);
        execute(plan.once, plan.once_count, out, lanes.count);
        if (plan.folds) fill(out, plan.init, count);
    }

    void compute_term(uint32_t* out) {
        if (plan.folds) {
            read_operands(true);
            compute_coordinates(true);
        }
        execute(plan.each, plan.each_count, out, lanes.count);
    }

    // Copies the words of a join, each from the only operand that is in range there. Returns false if two are: their
    // words have to be combined.
    bool copy_block(int64_t first, int count) {
        const int inner = plan.space.axis[plan.space.rank - 1];
        locate_lanes(first, count);
        for (int cut = 0; cut < lanes.cuts; ++cut) {
            uint32_t* const to = run.out + first + lanes.begin[cut];
            LaneRange done[kMaxOperands];
            int owner[kMaxOperands], ranges = 0;
            // The ranges of a cut come first, then the copies: the output may have the memory of an operand.
            for (int o = 0; o < plan.operands; ++o) {
                const LaneRange range = read_range(plan, plan.operand[o], inner, lanes, cut);
                if (range.low >= range.high) continue;
                for (int i = 0; i < ranges; ++i)
                    if (range.low < done[i].high && done[i].low < range.high) return false;
                owner[ranges] = o;
                done[ranges++] = range;
            }
            for (int i = 0; i < ranges; ++i) {
                const int form = plan.operand[owner[i]].address, low = done[i].low;
                const int64_t stride = plan.form[form].out[inner];
                const uint32_t* from = run.sources[owner[i]] + lanes.start[form * kMaxLanes + cut] + stride * low;
                if (from != to + low) copy(to + low, from, stride, done[i].high - low);
            }
            // Words that no operand has are 0.
            const int end = lanes.begin[cut + 1] - lanes.begin[cut];
            for (int at = 0; at < end;) {
                int next = end, reach = at;
                for (int i = 0; i < ranges; ++i) {
                    if (done[i].low <= at && done[i].high > reach) reach = done[i].high;
                    if (done[i].low > at && done[i].low < next) next = done[i].low;
                }
                if (reach == at) {
                    fill(to + at, 0, next - at);
                    reach = next;
                }
                at = reach;
            }
        }
        return true;
    }

    void compute_block(int64_t first, int count) {
        if (plan.joins && copy_block(first, count)) return;
        uint32_t* const out = plan.turns ? turned : run.out + first;
        begin_block(out, first, count);
        for (int64_t k = 0; k < plan.terms; ++k, advance(plan, fold)) compute_term(out);
        if (plan.turns) store_turned(first);
    }

    // A fold with simple terms, in blocks where all addresses are linear. Some terms of all blocks, then the next terms:
    // neighboring blocks read what lies side by side, while the terms of one lie far apart. Returns false if addresses
    // are not linear.
    bool join_columns(const LaneSpan* blocks, int count) {
        ColumnBlock block[kColumnBlocks];
        const ColumnPlan& shape = plan.columns;
        const int y = shape.value >= 0 ? shape.value : shape.y;
        const int operands[] = {shape.x, y, shape.mean, shape.scale};
        for (int b = 0; b < count; ++b) {
            locate_lanes(blocks[b].first, blocks[b].count);
            if (lanes.cuts > 1) return false;
            for (int i = 0; i < 4; ++i) {
                const int o = operands[i];
                block[b].at[i] = o < 0 ? nullptr : run.sources[o] + lanes.start[plan.operand[o].address * kMaxLanes];
            }
        }
        for (int b = 0; b < count; ++b) fill(run.out + blocks[b].first, plan.init, blocks[b].count);
        const bool is_word = y >= 0 && plan.form[plan.operand[y].address].out[space.axis[space.rank - 1]] == 0;
        seek(plan, 0, fold);
        for (int64_t k = 0; k < plan.terms;) {
            int64_t moved[kTermsAtOnce][4] = {};
            int terms = 0;
            for (; terms < kTermsAtOnce && k < plan.terms; ++terms, ++k, advance(plan, fold))
                for (int i = 0; i < 4; ++i)
                    if (operands[i] >= 0) moved[terms][i] = fold.offset[plan.operand[operands[i]].address];
            for (int b = 0; b < count; ++b) {
                const uint32_t* const* at = block[b].at;
                ColumnTerm term[kTermsAtOnce];
                for (int t = 0; t < terms; ++t) {
                    const int64_t* by = moved[t];
                    term[t] = {at[0] + by[0], at[1] + by[1], at[2] + by[2], at[3] + by[3]};
                }
                join_terms(plan, is_word, run.out + blocks[b].first, term, terms, blocks[b].count);
            }
        }
        if (plan.join.of_numbers())
            for (int b = 0; b < count; ++b) make_nans_canonical(run.out + blocks[b].first, blocks[b].count);
        return true;
    }

    void store_turned(int64_t first) const {
        const int64_t stride = strides[space.axis[space.rank - 1]];
        for (int cut = 0; cut < lanes.cuts; ++cut) {
            const int begin = lanes.begin[cut], count = lanes.begin[cut + 1] - begin;
            uint32_t* const to = run.out + offset_at(space, strides, first + begin);
            for (int j = 0; j < count; ++j) to[j * stride] = turned[begin + j];
        }
    }

    // A block of a keyed plan on which the key coordinate is constant: runs the terms [from, to) of the order by key.
    void compute_keyed_block(int64_t first, int count, int64_t from, int64_t to) {
        if (from == to) {
            fill(run.out + first, plan.init, count);
            return;
        }
        begin_block(run.out + first, first, count);
        for (int64_t i = from; i < to; ++i) {
            seek(plan, run.term[i], fold);
            compute_term(run.out + first);
        }
    }
};

// The first position in the ordered keys that is not below `key`.
int64_t first_key(const Run& run, uint64_t key) {
    int64_t low = 0, high = run.keys;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (run.key[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Number of neighboring elements that share the coordinate of a keyed plan.
int64_t keyed_width(const Plan& plan) {
    int64_t width = 1;
    for (int d = plan.key_axis + 1; d < plan.space.rank; ++d) width *= plan.space.dims[d];
    return width;
}

// Whether it is a map whose operands are read in range, at addresses that are linear in the element's coordinates.
bool is_plain(const Plan& plan, const Run& run) {
    if (plan.folds) return false;
    for (int o = 0; o < plan.operands; ++o)
        if (!run.safe[o] || plan.operand[o].gather >= 0) return false;
    return true;
}

// Whether the addresses of such a map are linear in the element's index.
bool is_line(const Plan& plan) {
    for (int o = 0; o < plan.operands; ++o)
        if (!is_linear(plan, plan.operand[o], plan.space)) return false;
    return plan.coordinates == 0;
}

// Blocks of long rows end where these do, so that addresses are linear within a block.
bool cuts_rows(const Plan& plan) { return !plan.keyed && !plan.turns && plan.space.dims[plan.space.rank - 1] >= kLongRow; }

int64_t blocks_of_row(const Plan& plan) { return (plan.space.dims[plan.space.rank - 1] + plan.lanes - 1) / plan.lanes; }

size_t tiles(const Plan& plan) {
    const int64_t columns = plan.lanes / kTileRows, inner = plan.space.dims[plan.space.rank - 1], other = plan.space.dims[plan.tile_axis];
    return static_cast<size_t>(plan.space.size / inner / other * ((inner + columns - 1) / columns) * ((other + kTileRows - 1) / kTileRows));
}

// Units of work of about equal cost: groups of elements that share the key, or blocks.
size_t blocks(const Plan& plan) {
    if (cuts_rows(plan)) return static_cast<size_t>(plan.space.size / plan.space.dims[plan.space.rank - 1] * blocks_of_row(plan));
    if (plan.keyed) return static_cast<size_t>(plan.space.size / keyed_width(plan));
    return static_cast<size_t>((plan.space.size + plan.lanes - 1) / plan.lanes);
}

// Runs a plain map; returns false if the plan is none.
bool compute_plain(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch) {
    if (!is_plain(plan, run)) return false;
    PlainMap map(plan, run, scratch);
    const int64_t row = plan.space.dims[plan.space.rank - 1], rows = plan.space.size / row;
    const auto share = [&](int64_t units, size_t t) { return static_cast<int64_t>(static_cast<double>(units) * static_cast<double>(t) / static_cast<double>(tasks)); };
    const auto run_share = [&](int64_t units, auto&& compute) { compute(share(units, task), task + 1 == tasks ? units : share(units, task + 1)); };
    if (is_line(plan)) {
        const int64_t last = plan.space.size;
        run_share(last / kLine, [&](int64_t begin, int64_t end) { map.compute_line(begin * kLine, end == last / kLine ? last : end * kLine); });
    } else if (plan.tile_axis >= 0 && plan.coordinates == 0) {
        run_share(static_cast<int64_t>(tiles(plan)), [&](int64_t begin, int64_t end) {
            for (int64_t tile = begin; tile < end; ++tile) map.compute_tile(tile);
        });
    } else if (cuts_rows(plan)) {
        const int64_t pieces = blocks_of_row(plan);
        run_share(rows * pieces, [&](int64_t begin, int64_t end) { map.compute_rows(begin, end, pieces); });
    } else {
        run_share(rows, [&](int64_t begin, int64_t end) { map.compute_short_rows(begin, end); });
    }
    return true;
}

}  // namespace

size_t element_tasks(const Plan& plan, size_t threads) {
    const size_t wanted = threads > 1 ? threads * kTasksPerThread : 1;
    return wanted < blocks(plan) ? wanted : blocks(plan);
}

size_t element_scratch(const Plan& plan) { return register_bytes(plan) + lanes_bytes(plan.forms) + kMaxLanes * sizeof(uint32_t); }

void compute_elements(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch) {
    if (compute_plain(plan, run, task, tasks, scratch)) return;
    Engine engine(plan, run, scratch);
    const size_t count = blocks(plan);
    if (plan.keyed) {
        const int64_t width = keyed_width(plan);
        for (size_t group = count * task / tasks; group < count * (task + 1) / tasks; ++group) {
            const int64_t at = static_cast<int64_t>(group) % plan.space.dims[plan.key_axis];
            const uint32_t key = static_cast<uint32_t>(run.bases[plan.key_form] + plan.form[plan.key_form].out[plan.key_axis] * at);
            const int64_t from = first_key(run, key), to = first_key(run, uint64_t{key} + 1);
            for (int64_t done = 0; done < width; done += plan.lanes) {
                const int64_t left = width - done;
                engine.compute_keyed_block(static_cast<int64_t>(group) * width + done, left < plan.lanes ? static_cast<int>(left) : plan.lanes, from, to);
            }
        }
        return;
    }
    const size_t begin = count * task / tasks, end = count * (task + 1) / tasks;
    const int64_t row = plan.space.dims[plan.space.rank - 1], pieces = cuts_rows(plan) ? blocks_of_row(plan) : 0;
    const auto span = [&](int64_t block) -> LaneSpan {
        if (pieces > 0) {
            const int64_t piece = block % pieces, from = row * piece / pieces;
            return {block / pieces * row + from, static_cast<int>(row * (piece + 1) / pieces - from)};
        }
        const int64_t first = block * plan.lanes, left = plan.space.size - first;
        return {first, left < plan.lanes ? static_cast<int>(left) : plan.lanes};
    };
    for (size_t block = begin; block < end;) {
        LaneSpan spans[kColumnBlocks];
        int some = 0;
        for (; some < (engine.columns ? kColumnBlocks : 1) && block < end; ++some, ++block) spans[some] = span(static_cast<int64_t>(block));
        if (engine.columns && engine.join_columns(spans, some)) continue;
        for (int i = 0; i < some; ++i) engine.compute_block(spans[i].first, spans[i].count);
    }
}

void program_values(const PlannedInstruction* instructions, int count, uint32_t* const* registers, size_t lanes) {
    constexpr size_t kChunk = 1 << 16;
    for (size_t first = 0; first < lanes; first += kChunk) {
        const int n = static_cast<int>(lanes - first < kChunk ? lanes - first : kChunk);
        for (int i = 0; i < count; ++i) {
            const PlannedInstruction& in = instructions[i];
            apply(in.op, registers[in.result] + first, registers[in.a] + first, registers[in.b] + first, registers[in.c] + first, n);
        }
    }
}

}  // namespace pol::POL_ISA
