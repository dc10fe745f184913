// Runs the nodes of a row group: a chunk of rows through all of them, then the next chunk. Outputs that are needed in the
// group only exist for one chunk at a time.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "plan/fused_rows.h"
#include "plan/plan.h"
#include "plan/row_groups.h"

namespace pol {

class GroupedNodes {
   public:
    GroupedNodes(RowGroup group, const std::vector<StepNode>& nodes, bool fused = false);
    // The member that cannot be fused, if the group was to be.
    std::optional<size_t> misfit() const { return misfit_; }
    const RowGroup& group() const { return group_; }
    // Whether the output of a member has to be stored.
    bool is_stored(size_t member) const { return members_[member].offset < 0; }
    // Whether the output of the member may be written over the operand, which nobody else reads after it. Members before
    // it may.
    bool may_write_over(size_t member, size_t operand, const std::vector<StepNode>& nodes) const;

    struct Places {
        std::array<const uint32_t*, kMaxOperands> sources;  // of operands that are stored
        uint32_t* output;                                   // of what is stored
    };
    // The result does not depend on `threads`.
    void run(uint32_t step, const std::vector<Places>& places, size_t threads) const;

   private:
    struct Member {
        std::unique_ptr<PlannedNode> whole, last;  // for a chunk, and for the last, shorter one
        unsigned in_chunk = 0;                     // operands that exist for a chunk at a time ...
        std::array<int64_t, kMaxOperands> sources{};  // ... and where they are in its memory
        std::optional<FusedStage> stage;           // of a fused group
        int64_t offset = -1;                       // of the output there; -1: it is stored
    };
    void place(const std::vector<StepNode>& nodes);
    int64_t rows_of_chunk(int64_t length) const;
    void plan_members(const std::vector<StepNode>& nodes);
    void join_folds(const std::vector<StepNode>& nodes, const std::vector<Descriptor>& parts);
    void compute(uint32_t step, const std::vector<Places>& places, int64_t chunk) const;
    void compute_fused(const std::vector<Places>& places, int64_t row, int64_t count, uint32_t* own) const;
    RowGroup group_;
    std::vector<Member> members_;
    int64_t chunks_, per_row_;  // in all; in the dimension that is cut
    int64_t memory_ = 0;        // words of a chunk's outputs that are not stored
    double work_ = 0;
    bool fused_;
    std::optional<size_t> misfit_;
    size_t scratch_ = 0;  // bytes, if fused
};

}  // namespace pol
