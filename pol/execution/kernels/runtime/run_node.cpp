// Runs a planned node on the kernels of the instruction set in use.
#include <algorithm>
#include <vector>

#include "native/threads.h"
#include "nodes/kernels.h"
#include "plan/plan.h"
#include "runtime/floating_point_mode.h"

namespace pol {
namespace {

constexpr int64_t kWorkPerThread = int64_t{1} << 18;  // word operations; below this a thread costs more than it saves

}  // namespace

Run PlannedNode::at(uint32_t step, const uint32_t* const* sources, uint32_t* out, StepForms& own) const {
    if (fixed_) return {bases_.data(), safe_, sources, out, 0, nullptr, nullptr};
    for (int f = 0; f < plan_.forms; ++f) own.bases[f] = affines_[f].base + affines_[f].strides[0] * static_cast<int64_t>(step);
    for (int o = 0; o < plan_.operands; ++o) own.safe[o] = is_safe(operands_[o], own.bases);
    return {own.bases, own.safe, sources, out, 0, nullptr, nullptr};
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

    // Work in doubles: it may exceed 64 bits.
    const double terms_per_element = plan_.keyed ? 1.0 : static_cast<double>(plan_.terms);
    const double work = static_cast<double>(plan_.space.size) * terms_per_element * (plan_.operands + plan_.each_count);
    threads = static_cast<size_t>(std::clamp(work / kWorkPerThread, 1.0, static_cast<double>(std::max<size_t>(threads, 1))));
    const Kernel& kernel = kernels().of[plan_.kind];
    const size_t tasks = kernel.tasks(plan_, threads);
    const size_t scratch = kernel.scratch(plan_);
    parallel_workers(tasks, threads, [&](TaskQueue& queue) {
        const FloatingPointMode mode;
        // Scratch stays with a thread from node to node.
        thread_local std::vector<uint64_t> memory;
        const size_t words = scratch / sizeof(uint64_t) + 9;
        if (memory.size() < words) memory.resize(words);
        void* aligned = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
        for (size_t task; queue.take(&task);) kernel.compute(plan_, run, task, tasks, aligned);
    });
}

}  // namespace pol
