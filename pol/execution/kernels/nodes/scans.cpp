// Running sums and the like (plan/find/scan.cpp): one pass over each line of words, some lines side by side.
#include "maps/column_joins.h"
#include "nodes/lanes.h"
#include "nodes/nodes.h"

namespace pol::POL_ISA {
namespace {

constexpr size_t kTasksPerThread = 4;
constexpr int kLinesAtOnce = 4;  // whose joins wait for each other

// The lines: positions of the output without the dimension that they run along.
Space lines_of(const Plan& plan) {
    Space space = empty_space();
    for (int d = 0; d < plan.space.rank; ++d)
        if (d != plan.scan.axis) add_axis(space, plan.space, d);
    return space;
}

struct Line {
    const uint32_t* from;  // at the first term
    uint32_t* to;
    int low, high;         // the terms that are read; the others have the fill
};

struct Scan {
    const Plan& plan;
    const Run& run;
    const Space lines;
    int64_t strides[kMaxRank];  // of the output
    int64_t step, stride;       // from term to term, from element to element
    int count;

    Scan(const Plan& plan_, const Run& run_) : plan(plan_), run(run_), lines(lines_of(plan)) {
        output_strides(plan, strides);
        step = plan.form[plan.operand[0].address].fold[0];
        stride = strides[plan.scan.axis];
        count = static_cast<int>(plan.terms);
    }

    Line line(int64_t position) const {
        const PlannedOperand& operand = plan.operand[0];
        const auto start = [&](int f) { return run.bases[f] + offset_at(lines, plan.form[f].out, position); };
        Line line{run.sources[0], run.out + offset_at(lines, strides, position), 0, count};
        for (int f = operand.address; f <= operand.address + operand.bounds; ++f)
            if (f != plan.scan.bound)
                clip(start(f), plan.form[f].fold[0], f == operand.address ? operand.numel : operand.limits[f - operand.address - 1], line.low, line.high);
        // A line without terms has no address in range.
        if (line.low < line.high) line.from += start(operand.address);
        return line;
    }

    template <uint8_t op, int some>
    void join_lines(const Line* line) const {
        const uint32_t* from[some];
        uint32_t* to[some];
        uint32_t acc[some];
        for (int l = 0; l < some; ++l) from[l] = line[l].from, to[l] = line[l].to, acc[l] = plan.init;
        for (int64_t k = 0; k < count; ++k)
            _Pragma("GCC unroll 4") for (int l = 0; l < some; ++l) to[l][k * stride] = acc[l] = join_word<op>(acc[l], from[l][k * step], 0);
        for (int l = 0; l < some; ++l) settle(to[l]);
    }

    // A line of which only some terms are read.
    template <uint8_t op>
    void join_part(const Line& line) const {
        uint32_t acc = plan.init;
        for (int64_t k = 0; k < count; ++k) {
            if (k >= line.low && k < line.high) acc = join_word<op>(acc, line.from[k * step], 0);
            line.to[k * stride] = acc;
        }
        settle(line.to);
    }

    void settle(uint32_t* to) const {
        if (!plan.join.of_numbers()) return;
        if (stride == 1) return make_nans_canonical(to, count);
        for (int64_t k = 0; k < count; ++k) to[k * stride] = is_nan(to[k * stride]) ? kNan : to[k * stride];
    }

    template <uint8_t op>
    void compute(int64_t first, int64_t end) const {
        while (first < end) {
            Line some[kLinesAtOnce];
            const int most = end - first < kLinesAtOnce ? static_cast<int>(end - first) : kLinesAtOnce;
            bool whole = most == kLinesAtOnce;
            for (int l = 0; l < most; ++l) {
                some[l] = line(first + l);
                whole = whole && some[l].low == 0 && some[l].high == count;
            }
            if (whole)
                join_lines<op, kLinesAtOnce>(some);
            else
                for (int l = 0; l < most; ++l) join_part<op>(some[l]);
            first += most;
        }
    }
};

}  // namespace

size_t scan_tasks(const Plan& plan, size_t threads) {
    const size_t wanted = threads > 1 ? threads * kTasksPerThread : 1, most = static_cast<size_t>(lines_of(plan).size);
    return wanted < most ? wanted : most;
}

size_t scan_scratch(const Plan&) { return 0; }

void compute_scan(const Plan& plan, const Run& run, size_t task, size_t tasks, void*) {
    const Scan scan(plan, run);
    const auto part = [&](size_t i) { return scan.lines.size * static_cast<int64_t>(i) / static_cast<int64_t>(tasks); };
    const int64_t first = part(task), end = part(task + 1);
    switch (plan.join.op) {
        case FADD: return scan.compute<FADD>(first, end);
        case FMUL: return scan.compute<FMUL>(first, end);
        case FMAX: return scan.compute<FMAX>(first, end);
        case FMIN: return scan.compute<FMIN>(first, end);
        case ADD: return scan.compute<ADD>(first, end);
        case MUL: return scan.compute<MUL>(first, end);
        case AND: return scan.compute<AND>(first, end);
        case OR: return scan.compute<OR>(first, end);
        case kGreatest: return scan.compute<kGreatest>(first, end);
        default: return scan.compute<kLeast>(first, end);
    }
}

}  // namespace pol::POL_ISA
