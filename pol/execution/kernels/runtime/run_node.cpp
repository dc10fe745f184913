// Runs a planned node on the kernels of the instruction set in use.
#include <algorithm>
#include <vector>

#include "native/threads.h"
#include "nodes/kernels.h"
#include "plan/plan.h"
#include "runtime/floating_point_mode.h"
#include "runtime/thread_memory.h"

namespace pol {
namespace {

constexpr double kSortingWork = 4;  // terms that cost as much as the place of a word

// Of kernels; it stays with a thread from node to node.
void* thread_scratch(size_t bytes) {
    thread_local ThreadMemory memory;
    return memory.at_least(bytes);
}

}  // namespace

Run PlannedNode::at(uint32_t step, const uint32_t* const* sources, uint32_t* out, StepForms& own) const {
    if (fixed_) return {bases_.data(), safe_, sources, out, 0, nullptr, nullptr};
    for (int f = 0; f < plan_.forms; ++f) own.bases[f] = affines_[f].base + affines_[f].strides[0] * static_cast<int64_t>(step);
    for (int o = 0; o < plan_.operands; ++o) own.safe[o] = is_safe(operands_[o], own.bases);
    return {own.bases, own.safe, sources, out, 0, nullptr, nullptr};
}

Run PlannedNode::at(uint32_t step, const int64_t* origin, unsigned fixed, const uint32_t* const* sources, uint32_t* out, StepForms& own) const {
    for (int f = 0; f < plan_.forms; ++f) {
        own.bases[f] = affines_[f].base + affines_[f].strides[0] * static_cast<int64_t>(step);
        for (int i = 1; i < kMaxCoordinates; ++i) own.bases[f] += affines_[f].strides[i] * origin[i];
    }
    for (int o = 0; o < plan_.operands; ++o) {
        const int f = operands_[o].address;
        if (fixed >> o & 1) own.bases[f] = affines_[f].base;
        own.safe[o] = is_safe(operands_[o], own.bases);
    }
    return {own.bases, own.safe, sources, out, 0, nullptr, nullptr};
}

double PlannedNode::work() const {
    // In doubles: it may exceed 64 bits.
    double terms = plan_.keyed ? 1.0 : static_cast<double>(plan_.terms);
    if (plan_.kind == kScatter)
        for (int i = 0; i < plan_.scatter.keys; ++i) terms /= static_cast<double>(plan_.space.dims[plan_.scatter.axis[i]]);
    if (plan_.kind == kRanks) terms = kSortingWork;
    if (plan_.kind == kScan) terms = 1;
    return static_cast<double>(plan_.space.size) * std::max(terms, 1.0) * (plan_.operands + plan_.each_count);
}

void PlannedNode::compute(const Run& run) const {
    const Kernel& kernel = kernels().of[plan_.kind];
    void* const scratch = thread_scratch(kernel.scratch(plan_));
    const size_t tasks = kernel.tasks(plan_, 1);
    for (size_t task = 0; task < tasks; ++task) kernel.compute(plan_, run, task, tasks, scratch);
}

void PlannedNode::run(uint32_t step, const uint32_t* const* sources, uint32_t* out, size_t threads) const {
    StepForms own;
    Run run = at(step, sources, out, own);
    std::vector<uint32_t> keys, terms;
    if (plan_.keyed) {
        for (const auto& [key, term] : keyed_terms(run.bases, sources[plan_.key])) {
            keys.push_back(key);
            terms.push_back(term);
        }
        run.keys = static_cast<int64_t>(keys.size());
        run.key = keys.data();
        run.term = terms.data();
    }

    threads = threads_for(work(), threads);
    const Kernel& kernel = kernels().of[plan_.kind];
    const size_t tasks = kernel.tasks(plan_, threads);
    const size_t scratch = kernel.scratch(plan_);
    parallel_workers(tasks, threads, [&](TaskQueue& queue) {
        const FloatingPointMode mode;
        void* const memory = thread_scratch(scratch);
        for (size_t task; queue.take(&task);) kernel.compute(plan_, run, task, tasks, memory);
    });
}

}  // namespace pol
