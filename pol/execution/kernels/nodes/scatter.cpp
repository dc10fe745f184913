// Folds whose terms name the elements that they join (plan/find/scatter.cpp). An element's terms come in ascending order
// if all terms do, so that one pass over them is enough.
#include "arithmetic/primitives.h"
#include "nodes/lanes.h"
#include "nodes/nodes.h"

namespace pol::POL_ISA {
namespace {

constexpr size_t kTasksPerThread = 4;
constexpr int kChunk = 1024;           // terms that are read at once
constexpr int64_t kShortestRow = 8;
constexpr int kTermBuffer = kMaxScatterKeys, kFactorBuffer = kTermBuffer + 1, kBuffers = kFactorBuffer + 1;

template <uint8_t op>
[[gnu::always_inline]] inline uint32_t joined(uint32_t before, uint32_t term, uint32_t factor) {
    return op == FADD ? fadd<false>(before, term) : op == ADD ? before + term : op == FFMA ? ffma<false>(term, factor, before) : term;
}

bool is_key(const ScatterPlan& scatter, int axis) {
    for (int i = 0; i < scatter.keys; ++i)
        if (scatter.axis[i] == axis) return true;
    return false;
}

// Whether neighboring elements along the innermost dimension have the same keys: then rows are joined at once.
bool joins_rows(const Plan& plan) {
    const ScatterPlan& scatter = plan.scatter;
    const int inner = plan.space.rank - 1;
    if (is_key(scatter, inner) || plan.space.dims[inner] < kShortestRow) return false;
    for (int i = 0; i < scatter.keys; ++i)
        if (plan.operand[scatter.key[i]].axes >> inner & 1) return false;
    return true;
}

// Positions that no key names; each is computed by itself. Rows along the innermost dimension count once.
Space positions_of(const Plan& plan) {
    Space space = empty_space();
    for (int d = 0; d < plan.space.rank - (joins_rows(plan) ? 1 : 0); ++d)
        if (!is_key(plan.scatter, d)) add_axis(space, plan.space, d);
    return space;
}

// The words of something that is read at consecutive terms.
struct Line {
    const uint32_t* words;
    int64_t stride;
};

struct Scatter {
    const Plan& plan;
    const ScatterPlan& scatter;
    const Run& run;
    uint32_t* buffers;
    int64_t low, high;  // of the first key's coordinates, those that this task has
    int64_t strides[kMaxRank];
    int64_t place[kMaxForms];  // at a position
    uint32_t* out;
    int64_t width;             // of a row

    Scatter(const Plan& plan_, const Run& run_, void* scratch, int64_t low_, int64_t high_)
        : plan(plan_), scatter(plan.scatter), run(run_), buffers(static_cast<uint32_t*>(scratch)), low(low_), high(high_) {
        output_strides(plan, strides);
        width = joins_rows(plan) ? plan.space.dims[plan.space.rank - 1] : 1;
    }

    void compute(const Space& positions, int64_t position) {
        for (int f = 0; f < plan.forms; ++f) place[f] = run.bases[f] + offset_at(positions, plan.form[f].out, position);
        out = run.out + offset_at(positions, strides, position);
        begin();
        switch (scatter.join) {
            case FADD: width > 1 ? join_all_rows<FADD>() : join_words<FADD>(); break;
            case ADD: width > 1 ? join_all_rows<ADD>() : join_words<ADD>(); break;
            case FFMA: width > 1 ? join_all_rows<FFMA>() : join_words<FFMA>(); break;
            default: width > 1 ? join_all_rows<MOV>() : join_words<MOV>(); break;
        }
    }

    // The word of an operand, given the values of its forms.
    template <class Value>
    uint32_t word(int o, const Value& value) const {
        const PlannedOperand& operand = plan.operand[o];
        const int64_t address = value(operand.address);
        bool valid = address >= 0 && address < operand.numel;
        for (int i = 0; i < operand.bounds; ++i) {
            const int64_t x = value(operand.address + 1 + i);
            valid = valid && x >= 0 && x < operand.limits[i];
        }
        return valid ? run.sources[o][address] : operand.fill;
    }

    // `count` words along a dimension that moves the forms by `step`, from `at` on.
    template <class Step>
    void read(int o, const int64_t* at, const Step& step, int64_t count, uint32_t* to) const {
        const int f = plan.operand[o].address;
        if (run.safe[o])
            copy(to, run.sources[o] + at[f], step(f), static_cast<int>(count));
        else
            for (int64_t j = 0; j < count; ++j) to[j] = word(o, [&](int form) { return at[form] + step(form) * j; });
    }

    // The elements before the first term.
    void begin() const {
        if (scatter.keys == 1 && width == 1 && strides[scatter.axis[0]] == 1 && high - low <= INT32_MAX) return begin_line();
        Space keys = empty_space();
        for (int i = 0; i < scatter.keys; ++i) add_axis(keys, plan.space, scatter.axis[i]);
        const int64_t lines = keys.size / keys.dims[0], inner = plan.space.rank - 1;
        for (int64_t i = low * lines; i < high * lines; ++i) {
            uint32_t* const to = out + offset_at(keys, strides, i);
            if (scatter.before < 0) {
                fill(to, plan.init, static_cast<int>(width));
                continue;
            }
            int64_t at[kMaxForms];
            const PlannedOperand& operand = plan.operand[scatter.before];
            for (int f = operand.address; f <= operand.address + operand.bounds; ++f) at[f] = place[f] + offset_at(keys, plan.form[f].out, i);
            read(scatter.before, at, [&](int f) { return plan.form[f].out[inner]; }, width, to);
        }
    }

    // The same where they are neighbors.
    void begin_line() const {
        if (scatter.before < 0) {
            fill(out + low, plan.init, static_cast<int>(high - low));
            return;
        }
        int64_t at[kMaxForms];
        const PlannedOperand& operand = plan.operand[scatter.before];
        const auto step = [&](int f) { return plan.form[f].out[scatter.axis[0]]; };
        for (int f = operand.address; f <= operand.address + operand.bounds; ++f) at[f] = place[f] + step(f) * low;
        read(scatter.before, at, step, high - low, out + low);
    }

    // Calls `join(at, count)` for runs of consecutive terms; at: the value of every form at the first of them.
    template <class Join>
    void each_run(const Join& join) const {
        const int64_t length = plan.fold[plan.fold_rank - 1];
        FoldIndex index;
        int64_t at[kMaxForms];
        for (int64_t k = 0; k < plan.terms; k += length) {
            for (int64_t first = 0; first < length; first += kChunk) {
                seek(plan, k + first, index);
                for (int f = 0; f < plan.forms; ++f) at[f] = place[f] + index.offset[f];
                join(at, length - first < kChunk ? static_cast<int>(length - first) : kChunk);
            }
        }
    }

    int64_t term_step(int form) const { return plan.form[form].fold[plan.fold_rank - 1]; }

    Line line(int reg, const int64_t* at, int count, uint32_t* buffer) const {
        const auto step = [&](int f) { return term_step(f); };
        if (reg > plan.accumulator) return {plan.constant + reg - plan.accumulator - 1, 0};
        if (reg >= plan.operands) {
            const int form = plan.coordinate[reg - plan.operands].form;
            for (int j = 0; j < count; ++j) buffer[j] = static_cast<uint32_t>(at[form] + step(form) * j);
            return {buffer, 1};
        }
        const int f = plan.operand[reg].address;
        if (run.safe[reg]) return {run.sources[reg] + at[f], step(f)};
        read(reg, at, step, count, buffer);
        return {buffer, 1};
    }

    // Where the element lies that the term names; nowhere: -1.
    [[gnu::always_inline]] int64_t destination(const Line* keys, int t) const {
        const int64_t first = static_cast<uint32_t>(keys[0].words[keys[0].stride * t] - static_cast<uint32_t>(run.bases[scatter.form[0]]));
        if (first < low || first >= high) return -1;
        int64_t offset = first * strides[scatter.axis[0]];
        for (int i = 1; i < scatter.keys; ++i) {
            const int64_t at = static_cast<uint32_t>(keys[i].words[keys[i].stride * t] - static_cast<uint32_t>(run.bases[scatter.form[i]]));
            if (at >= plan.space.dims[scatter.axis[i]]) return -1;
            offset += at * strides[scatter.axis[i]];
        }
        return offset;
    }

    template <uint8_t op>
    void join_words() const {
        each_run([&](const int64_t* at, int count) {
            Line keys[kMaxScatterKeys];
            for (int i = 0; i < scatter.keys; ++i) keys[i] = line(scatter.key[i], at, count, buffers + i * kChunk);
            const Line terms = line(scatter.term, at, count, buffers + kTermBuffer * kChunk);
            const Line factors = op == FFMA ? line(scatter.factor, at, count, buffers + kFactorBuffer * kChunk) : terms;
            if (scatter.keys == 1) {
                // All in registers: the compiler can't know that no word of the output is one of these.
                const uint32_t first = static_cast<uint32_t>(run.bases[scatter.form[0]] + low), size = static_cast<uint32_t>(high - low);
                const int64_t stride = strides[scatter.axis[0]];
                const Line key = keys[0], term = terms, factor = factors;
                uint32_t* const place_of_first = out + low * stride;
                for (int t = 0; t < count; ++t) {
                    const uint32_t number_of_key = key.words[key.stride * t] - first;
                    if (number_of_key >= size) continue;
                    uint32_t& to = place_of_first[number_of_key * stride];
                    to = joined<op>(to, term.words[term.stride * t], factor.words[factor.stride * t]);
                }
                return;
            }
            for (int t = 0; t < count; ++t) {
                const int64_t to = destination(keys, t);
                if (to >= 0) out[to] = joined<op>(out[to], terms.words[terms.stride * t], factors.words[factors.stride * t]);
            }
        });
    }

    template <uint8_t op>
    void join_all_rows() const {
        const int inner = plan.space.rank - 1;
        each_run([&](const int64_t* at, int count) {
            Line keys[kMaxScatterKeys];
            for (int i = 0; i < scatter.keys; ++i) keys[i] = line(scatter.key[i], at, count, buffers + i * kChunk);
            for (int t = 0; t < count; ++t) {
                const int64_t to = destination(keys, t);
                if (to < 0) continue;
                for (int64_t done = 0; done < width; done += kChunk) {
                    const int n = static_cast<int>(width - done < kChunk ? width - done : kChunk);
                    const uint32_t* const terms = row(scatter.term, at, t, done, n, inner, buffers + kTermBuffer * kChunk);
                    const uint32_t* const factors = op == FFMA ? row(scatter.factor, at, t, done, n, inner, buffers + kFactorBuffer * kChunk) : terms;
                    join_row<op>(out + to + done, terms, factors, n);
                }
            }
        });
    }

    // A part of the row of a register at term t.
    const uint32_t* row(int reg, const int64_t* at, int t, int64_t done, int count, int inner, uint32_t* buffer) const {
        const auto value = [&](int f) { return at[f] + term_step(f) * t + plan.form[f].out[inner] * done; };
        if (reg > plan.accumulator) {
            fill(buffer, plan.constant[reg - plan.accumulator - 1], count);
            return buffer;
        }
        if (reg >= plan.operands) {
            fill(buffer, static_cast<uint32_t>(value(plan.coordinate[reg - plan.operands].form)), count);
            return buffer;
        }
        const PlannedOperand& operand = plan.operand[reg];
        if (run.safe[reg] && plan.form[operand.address].out[inner] == 1) return run.sources[reg] + value(operand.address);
        int64_t here[kMaxForms];
        for (int f = operand.address; f <= operand.address + operand.bounds; ++f) here[f] = value(f);
        read(reg, here, [&](int f) { return plan.form[f].out[inner]; }, count, buffer);
        return buffer;
    }

    template <uint8_t op>
    static void join_row(uint32_t* __restrict to, const uint32_t* __restrict terms, const uint32_t* __restrict factors, int count) {
        for (int j = 0; j < count; ++j) to[j] = joined<op>(to[j], terms[j], factors[j]);
    }
};

}  // namespace

size_t scatter_tasks(const Plan& plan, size_t threads) {
    if (threads <= 1) return 1;
    const size_t positions = static_cast<size_t>(positions_of(plan).size), keys = static_cast<size_t>(plan.space.dims[plan.scatter.axis[0]]);
    const size_t wanted = threads * kTasksPerThread;
    if (positions >= wanted) return wanted;
    return keys < threads ? keys : threads;
}

size_t scatter_scratch(const Plan&) { return kBuffers * kChunk * sizeof(uint32_t); }

// A task has a range of positions or, where these are few, of the first key's coordinates.
void compute_scatter(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch) {
    const Space positions = positions_of(plan);
    const int64_t keys = plan.space.dims[plan.scatter.axis[0]];
    const auto part = [&](int64_t size, size_t i) { return size * static_cast<int64_t>(i) / static_cast<int64_t>(tasks); };
    const bool by_position = positions.size >= static_cast<int64_t>(tasks);
    Scatter scatter(plan, run, scratch, by_position ? 0 : part(keys, task), by_position ? keys : part(keys, task + 1));
    const int64_t first = by_position ? part(positions.size, task) : 0, end = by_position ? part(positions.size, task + 1) : positions.size;
    for (int64_t position = first; position < end; ++position) scatter.compute(positions, position);
}

}  // namespace pol::POL_ISA
