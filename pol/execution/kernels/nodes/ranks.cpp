// Folds that count the words before each word of a line (plan/find/ranks.cpp): the line is sorted by digits, which keeps
// equal words in the order of their places.
#include "arithmetic/primitives.h"
#include "nodes/lanes.h"
#include "nodes/nodes.h"

namespace pol::POL_ISA {
namespace {

constexpr size_t kTasksPerThread = 4;
constexpr int kDigits = 3, kDigitBits = 11, kValues = 1 << kDigitBits;

// A word and its place.
struct Entry {
    uint32_t key, place;
};

// Unsigned integers in the order of the words. Zeros are equal, and so are NaNs, which are greater than all numbers.
uint32_t key_of(uint32_t word, const RankPlan& ranks) {
    uint32_t key = word ^ kSign;
    if (ranks.numbers) {
        const uint32_t magnitude = word & kMagnitude;
        key = magnitude == 0 ? kSign : word & kSign ? ~word : word | kSign;
        if (magnitude > kInfinity) key = 0xffffffff;
    }
    return ranks.descending ? ~key : key;
}

struct Sorting {
    uint32_t counts[kDigits][kValues];
    Entry* from;
    Entry* to;

    Sorting(void* memory, int64_t length) : from(static_cast<Entry*>(memory)), to(from + length) {}

    void sort(const uint32_t* words, int64_t stride, int count, const RankPlan& ranks) {
        __builtin_memset(counts, 0, sizeof counts);
        for (int j = 0; j < count; ++j) {
            const uint32_t key = key_of(words[j * stride], ranks);
            from[j] = {key, static_cast<uint32_t>(j)};
            for (int d = 0; d < kDigits; ++d) ++counts[d][key >> (d * kDigitBits) & (kValues - 1)];
        }
        for (int d = 0; d < kDigits; ++d) {
            const int shift = d * kDigitBits;
            if (counts[d][from[0].key >> shift & (kValues - 1)] == static_cast<uint32_t>(count)) continue;
            uint32_t before = 0;
            for (int v = 0; v < kValues; ++v) {
                const uint32_t here = counts[d][v];
                counts[d][v] = before;
                before += here;
            }
            for (int j = 0; j < count; ++j) to[counts[d][from[j].key >> shift & (kValues - 1)]++] = from[j];
            Entry* const sorted = to;
            to = from;
            from = sorted;
        }
    }
};

Space lines_of(const Plan& plan) {
    Space space = empty_space();
    for (int d = 0; d < plan.space.rank; ++d)
        if (d != plan.ranks.axis) add_axis(space, plan.space, d);
    return space;
}

}  // namespace

size_t rank_tasks(const Plan& plan, size_t threads) {
    const size_t wanted = threads > 1 ? threads * kTasksPerThread : 1, most = static_cast<size_t>(lines_of(plan).size);
    return wanted < most ? wanted : most;
}

size_t rank_scratch(const Plan& plan) {
    const size_t sorted = 2 * static_cast<size_t>(plan.terms) * sizeof(Entry), any = element_scratch(plan);
    return sorted < any ? any : sorted;
}

void compute_ranks(const Plan& plan, const Run& run, size_t task, size_t tasks, void* scratch) {
    const RankPlan& ranks = plan.ranks;
    if (!run.safe[ranks.own] || !run.safe[ranks.other]) {
        if (task == 0)
            for (size_t part = 0, parts = element_tasks(plan, 1); part < parts; ++part) compute_elements(plan, run, part, parts, scratch);
        return;
    }
    const Space lines = lines_of(plan);
    const int form = plan.operand[ranks.own].address;
    int64_t strides[kMaxRank];
    output_strides(plan, strides);
    Sorting sorting(scratch, plan.terms);
    const auto part = [&](size_t i) { return lines.size * static_cast<int64_t>(i) / static_cast<int64_t>(tasks); };
    for (int64_t line = part(task); line < part(task + 1); ++line) {
        const uint32_t* words = run.sources[ranks.own] + run.bases[form] + offset_at(lines, plan.form[form].out, line);
        sorting.sort(words, plan.form[form].out[ranks.axis], static_cast<int>(plan.terms), ranks);
        uint32_t* const out = run.out + offset_at(lines, strides, line);
        for (int64_t rank = 0; rank < plan.terms; ++rank) out[sorting.from[rank].place * strides[ranks.axis]] = static_cast<uint32_t>(rank);
    }
}

}  // namespace pol::POL_ISA
