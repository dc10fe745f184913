// The registers of one worker with the block of lanes that they hold: operands are read and coordinates computed for all
// lanes at once. Included by the files compiled once per instruction set.
#pragma once
#include "nodes/registers.h"

namespace pol::POL_ISA {
namespace {

struct Block : Registers {
    const Space& space;  // that the lanes run over
    Lanes lanes;
    FoldIndex fold;
    Access access[kMaxOperands];

    Block(const Plan& plan_, const Run& run_, const Space& space_, void* scratch)
        : Registers(plan_, run_, scratch, block_width(plan_)), space(space_), lanes(lanes_in(rest)) {
        for (int o = 0; o < plan.operands; ++o) access[o] = access_to(plan, run, o, space);
    }

    void locate_lanes(int64_t first, int count) { locate(plan, space, run.bases, 0, plan.forms, first, count, lanes); }

    void read_operands(bool varying) {
        for (int o = 0; o < plan.operands; ++o) {
            const PlannedOperand& operand = plan.operand[o];
            if (operand.varies != varying) continue;
            value[o] = fetch(plan, access[o], lanes, fold, operand.gather < 0 ? nullptr : value[operand.gather], buffer[o]);
        }
    }

    void compute_coordinates(bool varying) {
        const int inner = space.axis[space.rank - 1];
        for (int i = 0; i < plan.coordinates; ++i) {
            const PlannedCoordinate& coordinate = plan.coordinate[i];
            if (coordinate.varies != varying) continue;
            uint32_t* to = buffer[plan.operands + i];
            const uint32_t stride = static_cast<uint32_t>(plan.form[coordinate.form].out[inner]);
            for (int cut = 0; cut < lanes.cuts; ++cut) {
                const int begin = lanes.begin[cut], count = lanes.begin[cut + 1] - begin;
                const uint32_t first = static_cast<uint32_t>(lanes.start[coordinate.form * kMaxLanes + cut] + fold.offset[coordinate.form]);
                for (int j = 0; j < count; ++j) to[begin + j] = first + stride * static_cast<uint32_t>(j);
            }
        }
    }
};

}  // namespace
}  // namespace pol::POL_ISA
