#include "contraction/taps.h"

#include "contraction/tap_product.h"

namespace pol::POL_ISA {

bool has_taps(const Plan& plan, const Run& run) {
    if (!plan.contraction.has_taps) return false;
    const TapPlan& taps = plan.contraction.taps;
    for (const int o : {taps.x, taps.y})
        if (!is_moderate(plan, plan.operand[o], run.bases) || !stays_inside(plan, plan.operand[o], run.bases)) return false;
    return packed_words(taps, sizes_of(plan), 1, kTileColumns) <= kPackedWords;
}

// A piece is a batch element, a panel of lanes, and a range of positions or, where these are few, of rows.
int64_t tap_pieces(const Plan& plan, int64_t threads) {
    const TapPlan& taps = plan.contraction.taps;
    const int64_t pieces = taps.batch.size * ((taps.lanes.size + kTileColumns - 1) / kTileColumns);
    return pieces % threads == 0 || pieces >= 4 * threads ? pieces : pieces * threads;
}

size_t tap_scratch() { return sizeof(Scratch); }

void multiply_taps(const Plan& plan, const Run& run, int64_t piece, int64_t pieces, void* scratch) {
    const TapPlan& taps = plan.contraction.taps;
    const int64_t panels = (taps.lanes.size + kTileColumns - 1) / kTileColumns, splits = pieces / (taps.batch.size * panels);
    const int64_t split = piece % splits, panel = piece / splits % panels, batch = piece / splits / panels;
    TapProduct product(plan, run, scratch, batch, panel * kTileColumns);
    const auto part = [&](int64_t size, int64_t i) { return size * i / splits; };
    if (taps.positions.size >= 32 * splits)
        product.compute(0, taps.rows.size, part(taps.positions.size, split), part(taps.positions.size, split + 1));
    else
        product.compute(part(taps.rows.size, split), part(taps.rows.size, split + 1), 0, taps.positions.size);
}

}  // namespace pol::POL_ISA
