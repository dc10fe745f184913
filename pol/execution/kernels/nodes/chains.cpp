// One element's fold, term by term. The terms are the lanes of a map (Descriptor::terms_of): what the accumulator does not
// reach is computed for a block of terms at once, the rest for one term after another.
#include "nodes/blocks.h"
#include "nodes/nodes.h"

namespace pol::POL_ISA {
namespace {

struct Link : Block {
    uint32_t* accumulator;  // before each term of the block, and after the last

    Link(const Plan& plan_, const Run& run_, void* scratch) : Block(plan_, run_, plan_.space, scratch) {
        accumulator = rest + lanes_bytes(plan.forms) / sizeof(uint32_t);
        seek(plan, 0, fold);
        value[plan.accumulator] = accumulator;
        buffer[plan.each[plan.each_count - 1].result] = accumulator + 1;
    }

    void read(int64_t first, int count) {
        locate_lanes(first, count);
        read_operands(false);
    }

    // The terms [first, first + count), the accumulator before them being in its place.
    void compute(int64_t first, int count) {
        read(first, count);
        compute_coordinates(false);
        execute(plan.once, plan.once_count, nullptr, count);
        if (plan.each_count == 1 && compute_joins(plan.each[0], count)) return;
        for (int j = 0; j < count; ++j)
            for (int i = 0; i < plan.each_count; ++i) compute_lane(plan.each[i], j);
    }

    void compute_lane(const PlannedInstruction& in, int j) {
        uint32_t* const result = buffer[in.result] + j;
        if (in.op < kFunction) {
            apply(in.op, result, value[in.a] + j, value[in.b] + j, value[in.c] + j, 1);
        } else {
            const uint32_t* inputs[] = {value[in.a] + j, value[in.b] + j, value[in.c] + j, value[in.d] + j, value[in.e] + j};
            apply_function(in.op - kFunction, result, inputs, 1);
        }
    }

    // Most folds join the accumulator to a term by one instruction. Returns false if it is none of the usual ones.
    bool compute_joins(const PlannedInstruction& in, int count) {
        const int acc = plan.accumulator;
        if (in.op == FFMA) {
            if (in.c != acc || in.a == acc || in.b == acc) return false;
            const uint32_t *const x = value[in.a], *const y = value[in.b];
            return join(count, [&](uint32_t before, int j) { return ffma<false>(x[j], y[j], before); });
        }
        if ((in.a == acc) == (in.b == acc)) return false;
        const uint32_t* const x = value[in.a == acc ? in.b : in.a];
        switch (in.op) {
            case FADD: return join(count, [&](uint32_t before, int j) { return fadd<false>(before, x[j]); });
            case FMAX: return join(count, [&](uint32_t before, int j) { return fmax(before, x[j]); });
            case FMIN: return join(count, [&](uint32_t before, int j) { return fmin<false>(before, x[j]); });
            default: return false;
        }
    }

    template <class Join>
    bool join(int count, const Join& after) {
        uint32_t word = accumulator[0];
        for (int j = 0; j < count; ++j) accumulator[j + 1] = word = after(word, j);
        return true;
    }
};

}  // namespace

size_t chain_scratch(const Plan& plan) {
    return register_bytes(plan) + lanes_bytes(plan.forms) + size_t(plan.lanes + 1) * sizeof(uint32_t);
}

void follow_chain(const Plan& plan, const Run& run, const Chain& chain, void* scratch) {
    Link link(plan, run, scratch);
    int64_t at = chain.begin;
    link.accumulator[0] = chain.accumulator;
    for (size_t next = 0; next < chain.count;) {
        const int64_t left = chain.ends[chain.count - 1] - at;
        const int count = left < plan.lanes ? static_cast<int>(left) : plan.lanes;
        if (count > 0) link.compute(at, count);
        for (; next < chain.count && chain.ends[next] <= at + count; ++next) chain.out[next] = link.accumulator[chain.ends[next] - at];
        at += count;
        link.accumulator[0] = link.accumulator[count];
    }
}

void read_term(const Plan& plan, const Run& run, int64_t term, uint32_t* words, void* scratch) {
    Link link(plan, run, scratch);
    link.read(term, 1);
    for (int o = 0; o < plan.operands; ++o) words[o] = *link.value[o];
}

}  // namespace pol::POL_ISA
