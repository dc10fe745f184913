// Numbers the registers of a node's body, separates the instructions that run once per block from those that run for
// every term, and gives registers their buffers.
#include <algorithm>
#include <vector>

#include "plan/plan.h"

namespace pol {
namespace {

constexpr int64_t kBlockBytes = 24 << 10;  // the buffers of a block should stay in the first-level cache

}  // namespace

void PlannedNode::schedule(const Descriptor& descriptor) {
    const ScalarProgram& body = descriptor.body;
    const int first_coordinate = plan_.operands;
    plan_.accumulator = first_coordinate + plan_.coordinates;
    const int first_constant = plan_.accumulator + 1;
    const int first_result = first_constant + static_cast<int>(body.constants.size());
    plan_.registers = first_result + static_cast<int>(body.instructions.size());
    constants_ = body.constants;
    plan_.constants = static_cast<int>(constants_.size());
    plan_.constant = constants_.data();

    // New numbers of the program's registers, and which of them change within a fold.
    std::vector<int> number;
    std::vector<bool> varies(plan_.registers, false);
    std::vector<int> coordinate_number(kMaxCoordinates, -1);
    int next = first_coordinate;
    for (int i = 0; i < kMaxCoordinates; ++i)
        if (std::any_of(descriptor.inputs.begin(), descriptor.inputs.end(),
                        [&](const Input& input) { return input.kind == kCoordinate && input.index == i; }))
            coordinate_number[i] = next++;
    for (const Input& input : descriptor.inputs)
        number.push_back(input.kind == kOperand ? input.index : input.kind == kAccumulator ? plan_.accumulator : coordinate_number[input.index]);
    for (size_t i = 0; i < body.constants.size(); ++i) number.push_back(first_constant + static_cast<int>(i));
    for (int i = 0; i < plan_.operands; ++i) varies[i] = operands_[i].varies;
    for (int i = 0; i < plan_.coordinates; ++i) varies[first_coordinate + i] = coordinates_[i].varies;
    varies[plan_.accumulator] = true;
    number.resize(body.inputs + body.constants.size() + body.instructions.size(), -1);  // inputs may repeat
    const std::vector<BodyInstruction> instructions = recognize_functions(body);
    for (const BodyInstruction& in : instructions) {
        const int result = first_result + in.result - body.inputs - static_cast<int>(body.constants.size());
        const auto reg = [&](int i) { return static_cast<uint16_t>(number[in.operands[i]]); };
        const PlannedInstruction planned{in.op, static_cast<uint16_t>(result), reg(0), reg(1), reg(2), reg(3), reg(4)};
        number[in.result] = result;
        for (const int r : {planned.a, planned.b, planned.c, planned.d, planned.e}) varies[result] = varies[result] || varies[r];
        (varies[result] || in.result == instructions.back().result ? each_ : once_).push_back(planned);
    }

    // A result takes the buffer of one that is not read any more. What a fold reads in every term keeps its buffer.
    std::vector<PlannedInstruction> order = once_;
    order.insert(order.end(), each_.begin(), each_.end());
    const int forever = static_cast<int>(order.size());
    std::vector<int> last_use(plan_.registers, -1);
    for (int i = 0; i < forever; ++i)
        for (const int r : {order[i].a, order[i].b, order[i].c, order[i].d, order[i].e}) {
            const bool repeated = plan_.folds && i >= static_cast<int>(once_.size()) && !varies[r];
            last_use[r] = std::max(last_use[r], repeated ? forever : i);
        }
    buffers_.assign(plan_.registers, kOutputBuffer);
    for (int r = 0; r < first_result; ++r)
        if (r != plan_.accumulator) buffers_[r] = plan_.buffers++;
    std::vector<int> idle;
    for (int i = 0; i < forever; ++i) {
        for (const int r : {order[i].a, order[i].b, order[i].c, order[i].d, order[i].e})
            if (r >= first_result && last_use[r] == i) {
                idle.push_back(buffers_[r]);
                last_use[r] = -1;
            }
        if (i + 1 == forever) break;  // the result goes to the output
        if (idle.empty()) idle.push_back(plan_.buffers++);
        buffers_[order[i].result] = idle.back();
        idle.pop_back();
        if (last_use[order[i].result] < 0) idle.push_back(buffers_[order[i].result]);  // nobody reads it
    }
    plan_.buffer = buffers_.data();
    plan_.once = once_.data();
    plan_.once_count = static_cast<int>(once_.size());
    plan_.each = each_.data();
    plan_.each_count = static_cast<int>(each_.size());
    plan_.lanes = kMaxLanes;
    while (plan_.lanes > 128 && plan_.lanes * 4 * static_cast<int64_t>(plan_.buffers) > kBlockBytes) plan_.lanes /= 2;
}

std::vector<PlannedInstruction> plan_program(const ScalarProgram& program) {
    std::vector<PlannedInstruction> planned;
    auto result = static_cast<uint16_t>(program.inputs + program.constants.size());
    for (const Instruction& in : program.instructions) {
        const int operands = arity(in.op);
        planned.push_back({in.op, result++, in.a, operands > 1 ? in.b : in.a, operands > 2 ? in.c : in.a, in.a, in.a});
    }
    return planned;
}

}  // namespace pol
