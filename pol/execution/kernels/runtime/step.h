// All nodes of a step program, run in order without going back to Python in between.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/arena.h"
#include "plan/plan.h"

namespace pol {

struct Words {
    uint32_t* data;
    int64_t size;
};

class Step {
   public:
    // Throws Malformed if a descriptor is invalid or an operand's source does not exist with the size that it names.
    Step(const std::vector<std::string>& descriptors, std::vector<int64_t> state_sizes, std::vector<int64_t> constant_sizes);
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    // Computes every node's output. Throws Malformed if a number or size of arrays is wrong or an output overlaps another array.
    void run(uint32_t step, const std::vector<Words>& state, const std::vector<Words>& constants, const std::vector<Words>& outputs, size_t threads) const;
    // Computes the outputs of the nodes that `keep` was called with, in that order; the others share memory that stays here.
    // Throws like run; one call at a time computes.
    void advance(uint32_t step, const std::vector<Words>& state, const std::vector<Words>& constants, const std::vector<Words>& results, size_t threads) const;
    // Says which nodes `advance` yields: each at most once, before the first call. Throws Malformed for a node that does not exist.
    void keep(const std::vector<uint32_t>& nodes);
    // Words of memory that `advance` works in.
    int64_t arena_words() const { return arena_plan_.size(); }

   private:
    struct Entry {
        Entry(const Descriptor& descriptor) : planned(descriptor), numel(descriptor.numel) {
            for (const Operand& operand : descriptor.operands) sources.emplace_back(operand.source, operand.index);
        }
        PlannedNode planned;
        int64_t numel;
        std::vector<std::pair<uint8_t, uint32_t>> sources;
    };
    std::deque<Entry> nodes_;
    // Where `advance` puts a node's output: in a result, at an offset in the arena, or nowhere, since nobody needs it.
    struct Place {
        bool needed = false;
        int result = -1;
        int64_t offset = -1;
    };
    void place_outputs();
    std::vector<int64_t> state_sizes_, constant_sizes_, output_sizes_, result_sizes_;
    std::vector<Place> places_;
    ArenaPlan arena_plan_;
    mutable std::unique_ptr<Arena> arena_;
    mutable std::mutex advancing_;
};

// Throws Malformed if one of `outputs` overlaps another one or an input.
void check_disjoint(const std::vector<Words>& outputs, const std::vector<Words>& inputs);

}  // namespace pol
