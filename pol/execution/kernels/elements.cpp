// Any node: its scalar program is interpreted over blocks of output elements, one instruction at a time over all lanes.
// A fold runs its terms in order, for all lanes of a block side by side.
#include "lanes.h"
#include "nodes.h"
#include "primitives.h"

namespace pol::POL_ISA {
namespace {

constexpr size_t kTasksPerThread = 4;
constexpr int kMaxRegisterCount = kMaxOperands + kMaxCoordinates + 1 + 256;

// One worker's view of a node.
struct Engine {
    const Plan& plan;
    const Run& run;
    Lanes lanes;
    FoldIndex fold;
    uint32_t* buffers;
    Access access[kMaxOperands];
    uint32_t* buffer[kMaxRegisterCount];       // where a register is written
    const uint32_t* value[kMaxRegisterCount];  // where it is read

    Engine(const Plan& plan_, const Run& run_, void* scratch) : plan(plan_), run(run_) {
        buffers = static_cast<uint32_t*>(scratch);
        lanes = lanes_in(buffers + size_t(plan.buffers) * plan.lanes);
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

    void execute(const PlannedInstruction* instructions, int count, uint32_t* out) {
        for (int i = 0; i < count; ++i) {
            const PlannedInstruction& in = instructions[i];
            uint32_t* result = buffer[in.result] == nullptr ? out : buffer[in.result];
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
        read_operands(false);
        compute_coordinates(false);
        execute(plan.once, plan.once_count, out);
        if (plan.folds) fill(out, plan.init, count);
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

// Units of work of about equal cost: groups of elements that share the key, or blocks.
size_t blocks(const Plan& plan) {
    if (plan.keyed) return static_cast<size_t>(plan.space.size / keyed_width(plan));
    return static_cast<size_t>((plan.space.size + plan.lanes - 1) / plan.lanes);
}

}  // namespace

size_t element_tasks(const Plan& plan, size_t threads) {
    const size_t wanted = threads > 1 ? threads * kTasksPerThread : 1;
    return wanted < blocks(plan) ? wanted : blocks(plan);
}

size_t element_scratch(const Plan& plan) { return size_t(plan.buffers) * plan.lanes * sizeof(uint32_t) + lanes_bytes(plan.forms); }

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
    for (size_t block = count * task / tasks; block < count * (task + 1) / tasks; ++block) {
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
