// Members of a row group in the form in which nodes/fused_rows.cpp runs them: a few rows of every member, which stay in
// the first caches from one member to the next.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/plan.h"
#include "plan/row_groups.h"

namespace pol {

// The word of row r, column c and leading index b lies at base + r * row + c * column + b * before of its tensor.
struct FusedOperand {
    int64_t base, row, column, before;
};

enum class FusedKind {
    scalars,   // a map with one word per row and leading index
    wide,      // a map with a row of words per row
    lanes,     // a fold in 32 lanes along a row, perhaps in pieces
    sequence,  // a fold along a row, one word after the other
    pieces,    // a fold that may join the pieces of the one before, and is computed by that
};

constexpr int kFoldLanes = 32, kJoinedLanes = 4;

struct FusedStage {
    FusedKind kind;
    const Plan* plan;
    int64_t width;     // columns
    int64_t before;    // leading indices
    int64_t capacity;  // rows of a chunk, the last one perhaps excepted
    FusedOperand operand[kMaxOperands];
    int64_t rounds, pieces;  // of lanes
    bool padded;             // lanes beyond the width read the fills
    // Members after this one that it computes too: the pieces joined, and the lanes joined to four. None: 0.
    int joined;
};

// What may become a stage; whether it does depends on its group.
bool may_be_fused(const Descriptor& node, const Plan& plan);

// `part` is the node over the rows of a chunk as it is planned there; bit o of `in_chunk`: operand o exists for a chunk.
// Nothing if the node reads in another way than the stages do.
std::optional<FusedStage> fused_stage(const Descriptor& node, const Descriptor& part, const RowAxes& axes, const PlannedNode& planned, unsigned in_chunk, int64_t capacity);

// Whether the stage joins the pieces of a fold in lanes, or its lanes to four.
bool joins_pieces(const Descriptor& part, const FusedStage& stage, const FusedStage& fold);
bool joins_lanes(const FusedStage& stage, const FusedStage& fold);

}  // namespace pol
