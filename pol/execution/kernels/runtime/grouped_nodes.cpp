#include "runtime/grouped_nodes.h"

#include <algorithm>
#include <utility>

#include "native/threads.h"
#include "nodes/kernels.h"
#include "runtime/arena.h"
#include "runtime/floating_point_mode.h"
#include "runtime/thread_memory.h"

namespace pol {
namespace {

constexpr int64_t kAligned = 16;  // words of a cache line
constexpr size_t kMostJoined = 2;  // members after a fold that it may compute too

int64_t aligned(int64_t words) { return (words + kAligned - 1) / kAligned * kAligned; }

}  // namespace

GroupedNodes::GroupedNodes(RowGroup group, const std::vector<StepNode>& nodes, bool fused) : group_(std::move(group)), members_(group_.nodes.size()), fused_(fused) {
    const std::vector<int64_t>& rows = group_.rows;
    per_row_ = (rows[group_.cut] + group_.length - 1) / group_.length;
    chunks_ = per_row_;
    for (size_t r = 0; r < group_.cut; ++r) chunks_ *= rows[r];
    place(nodes);
    plan_members(nodes);
}

void GroupedNodes::plan_members(const std::vector<StepNode>& nodes) {
    const std::vector<int64_t>& rows = group_.rows;
    const int64_t rest = rows[group_.cut] - group_.length * (per_row_ - 1);
    std::vector<Descriptor> parts;
    for (size_t m = 0; m < members_.size(); ++m) {
        const Descriptor& definition = *nodes[group_.nodes[m]].descriptor;
        std::vector<std::optional<RowAddress>> addresses;
        std::vector<RowAxes> sources(definition.operands.size());
        for (size_t o = 0; o < definition.operands.size(); ++o) {
            addresses.emplace_back();
            if (!(members_[m].in_chunk >> o & 1)) continue;
            sources[o] = group_.axes[group_.place_of(definition.operands[o].index)];
            addresses[o] = address_in_row(definition, group_.axes[m], definition.operands[o], sources[o], rows);
        }
        const auto part = [&](int64_t count) { return rows_of(definition, group_.axes[m], group_, count, addresses, sources); };
        parts.push_back(part(group_.length));
        members_[m].whole = std::make_unique<PlannedNode>(parts.back());
        if (rest != group_.length && !fused_) members_[m].last = std::make_unique<PlannedNode>(part(rest));
        for (PlannedNode* node : {members_[m].whole.get(), members_[m].last.get()})
            if (node != nullptr) node->forget_key();
        work_ += members_[m].whole->work() * static_cast<double>(chunks_);
        if (!fused_) continue;
        members_[m].stage = fused_stage(definition, parts[m], group_.axes[m], *members_[m].whole, members_[m].in_chunk, rows_of_chunk(group_.length));
        if (!members_[m].stage) {
            misfit_ = m;
            return;
        }
        scratch_ = std::max(scratch_, kernels().fused_scratch(*members_[m].stage));
    }
    if (fused_) join_folds(nodes, parts);
}

void GroupedNodes::join_folds(const std::vector<StepNode>& nodes, const std::vector<Descriptor>& parts) {
    // Whether a member is all that reads the one before it, which nobody else sees.
    const auto follows = [&](size_t m) {
        if (m >= members_.size() || members_[m - 1].offset < 0 || nodes[group_.nodes[m - 1]].last_reader != group_.nodes[m]) return false;
        const std::vector<Operand>& operands = nodes[group_.nodes[m]].descriptor->operands;
        return std::all_of(operands.begin(), operands.end(), [&](const Operand& operand) { return operand.source == kNode && operand.index == group_.nodes[m - 1]; });
    };
    for (size_t m = 0; m < members_.size(); ++m) {
        FusedStage& fold = *members_[m].stage;
        if (fold.kind == FusedKind::pieces) misfit_ = m;
        if (fold.kind != FusedKind::lanes) continue;
        const size_t last = fold.pieces > 1 ? m + 2 : m + 1;
        if (!follows(last) || !joins_lanes(*members_[last].stage, fold)) continue;
        if (fold.pieces > 1 && !(follows(m + 1) && joins_pieces(parts[m + 1], *members_[m + 1].stage, fold))) continue;
        fold.joined = static_cast<int>(last - m);
        m = last;
    }
}

int64_t GroupedNodes::rows_of_chunk(int64_t length) const {
    for (size_t r = group_.cut + 1; r < group_.rows.size(); ++r) length *= group_.rows[r];
    return length;
}

// Finds out what is stored, and where the rest lies in the memory of a chunk.
void GroupedNodes::place(const std::vector<StepNode>& nodes) {
    const int64_t rows = rows_of_chunk(group_.length);
    const auto words = [&](size_t m) { return aligned(rows * group_.axes[m].before * group_.axes[m].after); };
    ArenaPlan plan;
    // By member, what can be given back after it. A fold that computes members after it writes their output while it
    // reads its own operands.
    std::vector<std::vector<size_t>> ended(members_.size() + kMostJoined);
    for (size_t m = 0; m < members_.size(); ++m) {
        const StepNode& node = nodes[group_.nodes[m]];
        if (!node.kept && node.last_reader <= group_.nodes.back()) members_[m].offset = plan.take(words(m));
        std::vector<size_t>& ends = ended[m + (fused_ && !node.descriptor->fold.empty() ? kMostJoined : 0)];
        for (size_t o = 0; o < node.descriptor->operands.size(); ++o) {
            const Operand& operand = node.descriptor->operands[o];
            if (operand.source != kNode || !group_.has(operand.index)) continue;
            const size_t source = group_.place_of(operand.index);
            if (members_[source].offset < 0) continue;
            members_[m].in_chunk |= 1u << o;
            members_[m].sources[o] = members_[source].offset;
            if (nodes[operand.index].last_reader == group_.nodes[m] && std::find(ends.begin(), ends.end(), source) == ends.end()) ends.push_back(source);
        }
        for (const size_t source : ended[m]) plan.give(members_[source].offset, words(source));
        if (members_[m].offset >= 0 && node.last_reader == group_.nodes[m]) plan.give(members_[m].offset, words(m));
    }
    memory_ = plan.size();
}

bool GroupedNodes::may_write_over(size_t member, size_t operand, const std::vector<StepNode>& nodes) const {
    const Operand& over = nodes[group_.nodes[member]].descriptor->operands[operand];
    for (size_t m = 0; m < members_.size(); ++m) {
        const Descriptor& node = *nodes[group_.nodes[m]].descriptor;
        for (const Operand& other : node.operands) {
            if (other.source != over.source || other.index != over.index) continue;
            if (m > member || !address_in_row(node, group_.axes[m], other, group_.axes[member], group_.rows)) return false;
        }
    }
    return true;
}

void GroupedNodes::run(uint32_t step, const std::vector<Places>& places, size_t threads) const {
    parallel_workers(static_cast<size_t>(chunks_), threads_for(work_, threads), [&](TaskQueue& queue) {
        const FloatingPointMode mode;
        for (size_t chunk; queue.take(&chunk);) compute(step, places, static_cast<int64_t>(chunk));
    });
}

void GroupedNodes::compute(uint32_t step, const std::vector<Places>& places, int64_t chunk) const {
    thread_local ThreadMemory memory;
    uint32_t* const own = static_cast<uint32_t*>(memory.at_least(static_cast<size_t>(memory_) * sizeof(uint32_t)));
    std::array<int64_t, kMaxRank> at{};  // of the chunk's first row
    at[group_.cut] = chunk % per_row_ * group_.length;
    int64_t left = chunk / per_row_, row = 0;
    for (size_t r = group_.cut; r-- > 0; left /= group_.rows[r]) at[r] = left % group_.rows[r];
    for (size_t r = 0; r < group_.rows.size(); ++r) row = row * group_.rows[r] + at[r];
    const bool is_last = chunk % per_row_ == per_row_ - 1;
    if (fused_) {
        const int64_t rest = group_.rows[group_.cut] - group_.length * (per_row_ - 1);
        return compute_fused(places, row, rows_of_chunk(is_last ? rest : group_.length), own);
    }
    for (size_t m = 0; m < members_.size(); ++m) {
        const Member& member = members_[m];
        const RowAxes& axes = group_.axes[m];
        const PlannedNode& planned = is_last && member.last ? *member.last : *member.whole;
        std::array<const uint32_t*, kMaxOperands> sources = places[m].sources;
        for (int o = 0; o < planned.plan().operands; ++o)
            if (member.in_chunk >> o & 1) sources[o] = own + member.sources[o];
        std::array<int64_t, kMaxCoordinates> origin{};
        for (size_t r = 0; r < axes.axes.size(); ++r) origin[1 + axes.axes[r]] = at[r];
        uint32_t* const out = member.offset < 0 ? places[m].output + row * axes.after : own + member.offset;
        StepForms forms;
        planned.compute(planned.at(step, origin.data(), member.in_chunk, sources.data(), out, forms));
    }
}

void GroupedNodes::compute_fused(const std::vector<Places>& places, int64_t row, int64_t count, uint32_t* own) const {
    thread_local ThreadMemory memory;
    void* const scratch = memory.at_least(scratch_);
    for (size_t m = 0; m < members_.size(); ++m) {
        const Member& member = members_[m];
        const FusedStage& stage = *member.stage;
        std::array<const uint32_t*, kMaxOperands> sources;
        for (int o = 0; o < stage.plan->operands; ++o)
            sources[o] = member.in_chunk >> o & 1 ? own + member.sources[o] : places[m].sources[o] + row * stage.operand[o].row;
        m += static_cast<size_t>(stage.joined);
        uint32_t* const out = members_[m].offset < 0 ? places[m].output + row * group_.axes[m].after : own + members_[m].offset;
        kernels().compute_fused(stage, {sources.data(), out, count}, scratch);
    }
}

}  // namespace pol
