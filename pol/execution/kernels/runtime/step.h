// Runs all nodes of a step program in order, without returning to Python in between.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "runtime/arena.h"
#include "runtime/grouped_nodes.h"

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
    // Computes every node's output. Throws Malformed if a number or size of arrays is wrong or an output overlaps
    // another array.
    void run(uint32_t step, const std::vector<Words>& state, const std::vector<Words>& constants, const std::vector<Words>& outputs, size_t threads) const;
    // Computes the outputs of the kept nodes, in the order of `keep`; all others share one block of memory. Throws like
    // run. Calls from several threads run one after another.
    void advance(uint32_t step, const std::vector<Words>& state, const std::vector<Words>& constants, const std::vector<Words>& results, size_t threads) const;
    // The same, and shows each node's output as soon as it is computed, before its memory is used again. Shows nothing
    // of nodes that no kept one needs, unless all are kept track of.
    using Show = std::function<void(size_t node, const Words& output)>;
    void advance(uint32_t step, const std::vector<Words>& state, const std::vector<Words>& constants, const std::vector<Words>& results, size_t threads, const Show& show) const;
    // After `keep`: chooses results that are written over the tensor of the state that they follow. `slots` has that
    // tensor's number for each result, -1 for none: such a result is there before any tensor is written. Returns for each
    // result whether it is written over its tensor. From then on `advance` is left to the two parts below.
    std::vector<bool> write_over(const std::vector<int64_t>& slots);
    // The two parts of `advance`, one after the other with the same arguments: nodes that leave the state as it is, then
    // those from the first one on that writes over it. A result that does is the very array of the state.
    void begin(uint32_t step, const std::vector<Words>& state, const std::vector<Words>& constants, const std::vector<Words>& results, size_t threads) const;
    void finish(uint32_t step, const std::vector<Words>& state, const std::vector<Words>& constants, const std::vector<Words>& results, size_t threads) const;
    // Chooses the nodes whose outputs `advance` yields, before its first call; with `all` it computes the others as
    // well. Throws Malformed for a node that does not exist or is kept already.
    // Nodes are run by rows where their tensors have at least so many bytes (plan/row_groups.h), which changes no bit.
    void keep(const std::vector<uint32_t>& nodes, bool all = false, int64_t least_group_bytes = kLeastGroupBytes);
    // Size of that block in words.
    int64_t arena_words() const { return arena_plan_.size(); }

   private:
    struct Entry {
        Entry(Descriptor node) : descriptor(std::move(node)), planned(descriptor) {
            for (const Operand& operand : descriptor.operands) sources.emplace_back(operand.source, operand.index);
        }
        Descriptor descriptor;
        PlannedNode planned;
        std::vector<std::pair<uint8_t, uint32_t>> sources;
    };
    std::deque<Entry> nodes_;
    // Where `advance` puts a node's output: in a result, at an offset in the arena, or nowhere, since nobody needs it, or
    // nobody outside of its group.
    struct Place {
        bool needed = false;
        int result = -1;
        int64_t offset = -1;
        size_t last_reader = 0;  // itself, if there is none
        int group = -1;
    };
    struct Inputs {
        uint32_t step;
        const std::vector<Words>&state, &constants, &results;
    };
    void find_readers();
    void group_nodes(int64_t least_bytes);
    void fuse_nodes();
    void add_group(GroupedNodes group);
    void place_outputs();
    bool is_stored(size_t node) const;
    // The first and the last of the nodes that are computed together with this one.
    std::pair<size_t, size_t> together(size_t node) const;
    size_t written_over(size_t node, size_t first, size_t last) const;
    bool may_write_over(size_t node, uint8_t source, uint32_t index, size_t* operand) const;
    bool may_write_over_state(size_t node, uint32_t slot) const;
    void check(const Inputs& inputs) const;
    void compute(const Inputs& inputs, size_t from, size_t to, size_t threads, const Show& show) const;
    uint32_t* output(const Inputs& inputs, size_t node) const;
    const uint32_t* source(const Inputs& inputs, size_t node, size_t operand) const;
    void run_group(const Inputs& inputs, const GroupedNodes& group, size_t threads) const;
    std::vector<int64_t> state_sizes_, constant_sizes_, output_sizes_, result_sizes_;
    std::vector<int64_t> slots_;  // by result: the tensor of the state that it is written over, or -1
    size_t writing_ = 0;          // the first node that writes over the state, or as many as there are
    std::vector<Place> places_;
    std::vector<StepNode> members_;  // what groups are made of
    std::deque<GroupedNodes> groups_;
    ArenaPlan arena_plan_;
    mutable std::unique_ptr<Arena> arena_;
    mutable std::mutex advancing_;
};

// Throws Malformed if one of `outputs` overlaps another one or an input.
void check_disjoint(const std::vector<Words>& outputs, const std::vector<Words>& inputs);

}  // namespace pol
