// Any node: its scalar program is interpreted over blocks of output elements, one instruction at a time over all lanes.
// A fold runs its terms in order, for all lanes of a block side by side.
#include "lanes.h"
#include "nodes.h"
#include "primitives.h"

namespace pol::POL_ISA {
namespace {

constexpr size_t kTasksPerThread = 4;
constexpr int64_t kLongRow = 128;  // a row of at least so many words is cut into blocks of its own
constexpr int kTileRows = 16;           // a cache line of words
constexpr int64_t kLine = 16;
constexpr int64_t kLongest = int64_t{1} << 30;  // lanes at once, where no buffer is needed
constexpr int kMaxRegisterCount = kMaxOperands + kMaxCoordinates + 1 + 256;

// One worker's view of a node.
struct Engine {
    const Plan& plan;
    const Run& run;
    Lanes lanes;
    FoldIndex fold;
    uint32_t* buffers;
    uint32_t* tile_result;
    Access access[kMaxOperands];
    uint32_t* buffer[kMaxRegisterCount];       // where a register is written
    const uint32_t* value[kMaxRegisterCount];  // where it is read

    Engine(const Plan& plan_, const Run& run_, void* scratch) : plan(plan_), run(run_) {
        buffers = static_cast<uint32_t*>(scratch);
        tile_result = buffers + size_t(plan.buffers) * plan.lanes;
        lanes = lanes_in(tile_result + plan.lanes);
        for (int r = 0; r < plan.registers; ++r) {
            buffer[r] = plan.buffer[r] == kOutputBuffer ? nullptr : buffers + size_t(plan.buffer[r]) * plan.lanes;
            value[r] = buffer[r];
        }
        const int width = plan.space.size < plan.lanes ? static_cast<int>(plan.space.size) : plan.lanes;
        for (int i = 0; i < plan.constants; ++i) fill(buffer[plan.accumulator + 1 + i], plan.constant[i], width);
        for (int o = 0; o < plan.operands; ++o) access[o] = access_to(plan, run, o, plan.space);
    }

    void read_operands(bool varying) {
        for (int o = 0; o < plan.operands; ++o) {
            const PlannedOperand& operand = plan.operand[o];
            if (operand.varies != varying) continue;
            value[o] = fetch(plan, access[o], lanes, fold, operand.gather < 0 ? nullptr : value[operand.gather], buffer[o]);
        }
    }

    void compute_coordinates(bool varying) {
        const int inner = plan.space.rank - 1;
        for (int i = 0; i < plan.coordinates; ++i) {
            const PlannedCoordinate& coordinate = plan.coordinate[i];
            if (coordinate.varies != varying) continue;
            uint32_t* to = buffer[plan.operands + i];
            const uint32_t stride = static_cast<uint32_t>(plan.form[coordinate.form].out[inner]);
            for (int cut = 0; cut < lanes.cuts; ++cut) {
                const int begin = lanes.begin[cut], count = lanes.begin[cut + 1] - begin;
                const uint32_t first = static_cast<uint32_t>(lanes.start[coordinate.form * kMaxLanes + cut] + fold.offset[coordinate.form]);
                for (int j = 0; j < count; ++j) to[begin + j] = first + stride * static_cast<uint32_t>(j);
            }
        }
    }

    // A map that only moves words reads an operand that has no other place straight into the output.
    bool moves() const { return !plan.folds && plan.each_count == 1 && plan.each->op == MOV && plan.each->a < plan.operands; }

    void execute(const PlannedInstruction* instructions, int count, uint32_t* out) {
        for (int i = 0; i < count; ++i) {
            const PlannedInstruction& in = instructions[i];
            uint32_t* result = buffer[in.result] == nullptr ? out : buffer[in.result];
            if (in.op == MOV && value[in.a] == result) continue;
            if (in.op < kFunction) {
                apply(in.op, result, value[in.a], value[in.b], value[in.c], lanes.count);
            } else {
                const uint32_t* inputs[] = {value[in.a], value[in.b], value[in.c], value[in.d], value[in.e]};
                apply_function(in.op - kFunction, result, inputs, lanes.count);
            }
        }
    }

    // What no fold index changes.
    void begin_block(int64_t first, int count) {
        uint32_t* out = run.out + first;
        locate(plan, plan.space, run.bases, 0, plan.forms, first, count, lanes);
        seek(plan, 0, fold);
        value[plan.accumulator] = out;
        if (moves()) {
            // Of what may be an index and what it gathers, only the latter.
            uint32_t*& to = buffer[plan.each->a];
            uint32_t* const own = to;
            to = out;
            read_operands(false);
            to = own;
            return;
        }
        read_operands(false);
        compute_coordinates(false);
        execute(plan.once, plan.once_count, out);
        if (plan.folds) fill(out, plan.init, count);
    }

    // Maps whose operands are lines through the whole output: nothing to locate, and words in place are read there.
    void compute_line(int64_t first, int64_t end) {
        const int inner = plan.space.axis[plan.space.rank - 1];
        bool in_place = plan.each_count == 1 && plan.once_count == 0 && plan.constants == 0;
        for (int o = 0; o < plan.operands; ++o) in_place = in_place && plan.form[plan.operand[o].address].out[inner] == 1;
        const int64_t step = in_place ? kLongest : plan.lanes;
        for (bool begins = true; first < end; first += step, begins = false) {
            lanes.count = end - first < step ? static_cast<int>(end - first) : static_cast<int>(step);
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
                    copy(buffer[o], from, stride, lanes.count);
                }
            }
            uint32_t* out = run.out + first;
            execute(plan.once, plan.once_count, out);
            execute(plan.each, plan.each_count, out);
        }
    }

    // Plain maps with long rows, whatever the operands do from row to row: the blocks [block, end) in pieces of rows.
    void compute_rows(int64_t block, int64_t end, int64_t pieces) {
        const int inner = plan.space.rank - 1;
        const int64_t length = plan.space.dims[inner];
        int64_t at[kMaxRank], row = block / pieces, piece = block % pieces;
        const uint32_t* start[kMaxOperands];
        const uint32_t* filled[kMaxOperands] = {};
        for (int64_t d = inner - 1, rest = row; d >= 0; rest /= plan.space.dims[d--]) at[d] = rest % plan.space.dims[d];
        for (int o = 0; o < plan.operands; ++o) {
            const int form = plan.operand[o].address;
            start[o] = run.sources[o] + run.bases[form];
            for (int d = 0; d < inner; ++d) start[o] += plan.form[form].out[d] * at[d];
        }
        for (; block < end; ++block) {
            const int64_t from = length * piece / pieces;
            lanes.count = static_cast<int>(length * (piece + 1) / pieces - from);
            for (int o = 0; o < plan.operands; ++o) {
                const int64_t stride = plan.form[plan.operand[o].address].out[inner];
                const uint32_t* words = start[o] + stride * from;
                if (stride == 1) {
                    value[o] = words;
                } else if (stride != 0) {
                    copy(buffer[o], words, stride, lanes.count);
                } else if (filled[o] != words) {
                    fill(buffer[o], *words, plan.lanes);
                    filled[o] = words;
                }
            }
            uint32_t* out = run.out + row * length + from;
            execute(plan.once, plan.once_count, out);
            execute(plan.each, plan.each_count, out);
            if (++piece < pieces) continue;
            piece = 0;
            ++row;
            for (int d = inner - 1; d >= 0; --d) {
                const bool wraps = ++at[d] == plan.space.dims[d];
                for (int o = 0; o < plan.operands; ++o) start[o] += plan.form[plan.operand[o].address].out[d] * (wraps ? 1 - plan.space.dims[d] : 1);
                if (!wraps) break;
                at[d] = 0;
            }
        }
    }

    // Maps with an operand that is contiguous along another output dimension than the innermost: tiles over these two, so
    // that whole cache lines are read and written.
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
        lanes.count = height * width;
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
        if (last.op != MOV || plan.each_count > 1) {
            // The result goes where the tile's own lines are written from.
            execute(plan.once, plan.once_count, tile_result);
            execute(plan.each, plan.each_count, tile_result);
            result = tile_result;
        }
        for (int r = 0; r < height; ++r) copy(run.out + offset + r * strides[other], result + r * width, 1, width);
    }

    void compute_term(uint32_t* out) {
        if (plan.folds) {
            read_operands(true);
            compute_coordinates(true);
        }
        execute(plan.each, plan.each_count, out);
    }

    void compute_block(int64_t first, int count) {
        begin_block(first, count);
        for (int64_t k = 0; k < plan.terms; ++k, advance(plan, fold)) compute_term(run.out + first);
    }

    // A block of a keyed plan in which the coordinate has one value: the terms [from, to) in the order of keys.
    void compute_keyed_block(int64_t first, int count, int64_t from, int64_t to) {
        if (from == to) {
            fill(run.out + first, plan.init, count);
            return;
        }
        begin_block(first, count);
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

// Number of neighbouring elements that share the coordinate of a keyed plan.
int64_t keyed_width(const Plan& plan) {
    int64_t width = 1;
    for (int d = plan.key_axis + 1; d < plan.space.rank; ++d) width *= plan.space.dims[d];
    return width;
}

// Whether every operand is read at in-range addresses that are linear in the element; `lines`: over the whole output.
bool is_plain(const Plan& plan, const Run& run, bool lines) {
    if (plan.folds || plan.coordinates > 0) return false;
    for (int o = 0; o < plan.operands; ++o)
        if (!run.safe[o] || plan.operand[o].gather >= 0 || (lines && !is_linear(plan, plan.operand[o], plan.space))) return false;
    return true;
}

// Blocks of a map end where long rows do, so that its operands are lines within them.
bool cuts_rows(const Plan& plan) { return !plan.folds && plan.space.dims[plan.space.rank - 1] >= kLongRow; }

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

}  // namespace

size_t element_tasks(const Plan& plan, size_t threads) {
    const size_t wanted = threads > 1 ? threads * kTasksPerThread : 1;
    return wanted < blocks(plan) ? wanted : blocks(plan);
}

size_t element_scratch(const Plan& plan) { return (size_t(plan.buffers) + 1) * plan.lanes * sizeof(uint32_t) + lanes_bytes(plan.forms); }

void compute_elements(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch) {
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
    if (is_plain(plan, run, true)) {
        const auto place = [&](size_t t) { return static_cast<int64_t>(static_cast<double>(plan.space.size) / kLine * t / tasks) * kLine; };
        engine.compute_line(place(task), task + 1 == tasks ? plan.space.size : place(task + 1));
        return;
    }
    if (plan.tile_axis >= 0 && is_plain(plan, run, false)) {
        const size_t all = tiles(plan);
        for (size_t tile = all * task / tasks; tile < all * (task + 1) / tasks; ++tile) engine.compute_tile(static_cast<int64_t>(tile));
        return;
    }
    if (cuts_rows(plan)) {
        const int64_t row = plan.space.dims[plan.space.rank - 1], pieces = blocks_of_row(plan);
        if (is_plain(plan, run, false)) {
            engine.compute_rows(static_cast<int64_t>(begin), static_cast<int64_t>(end), pieces);
            return;
        }
        for (size_t block = begin; block < end; ++block) {
            const int64_t piece = static_cast<int64_t>(block) % pieces, from = row * piece / pieces;
            engine.compute_block(static_cast<int64_t>(block) / pieces * row + from, static_cast<int>(row * (piece + 1) / pieces - from));
        }
        return;
    }
    for (size_t block = begin; block < end; ++block) {
        const int64_t first = static_cast<int64_t>(block) * plan.lanes;
        const int64_t left = plan.space.size - first;
        engine.compute_block(first, left < plan.lanes ? static_cast<int>(left) : plan.lanes);
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
