// Recognizes the folds of sorting (pol/graph/lowering/rules/sorting.py) that nodes/ranks.cpp can run.
#include <algorithm>
#include <vector>

#include "plan/plan.h"

namespace pol {
namespace {

constexpr int64_t kShortest = 24;
constexpr int64_t kLongest = int64_t{1} << 16;

// ADD(accumulator, whether `other` comes before `own`), of inputs (accumulator, own, other, place, place of other).
constexpr Instruction kNumbersDescending[] = {{FEQ, 2, 2, 0}, {FEQ, 1, 1, 0}, {LTU, 6, 7, 0}, {FLT, 1, 2, 0}, {OR, 9, 8, 0}, {OR, 7, 6, 0}, {FEQ, 1, 2, 0},
                                              {EQ, 11, 5, 0}, {OR, 12, 13, 0}, {LTS, 4, 3, 0}, {AND, 14, 15, 0}, {OR, 10, 16, 0}, {ADD, 0, 17, 0}};
constexpr Instruction kNumbersAscending[] = {{FEQ, 1, 1, 0}, {FEQ, 2, 2, 0}, {LTU, 6, 7, 0}, {FLT, 2, 1, 0}, {OR, 9, 8, 0}, {OR, 6, 7, 0}, {FEQ, 1, 2, 0},
                                             {EQ, 11, 5, 0}, {OR, 12, 13, 0}, {LTS, 4, 3, 0}, {AND, 14, 15, 0}, {OR, 10, 16, 0}, {ADD, 0, 17, 0}};
constexpr Instruction kIntegersDescending[] = {{LTS, 1, 2, 0}, {EQ, 1, 2, 0}, {LTS, 4, 3, 0}, {AND, 6, 7, 0}, {OR, 5, 8, 0}, {ADD, 0, 9, 0}};
constexpr Instruction kIntegersAscending[] = {{LTS, 2, 1, 0}, {EQ, 1, 2, 0}, {LTS, 4, 3, 0}, {AND, 6, 7, 0}, {OR, 5, 8, 0}, {ADD, 0, 9, 0}};

template <size_t count>
bool is_body(const ScalarProgram& body, const Instruction (&instructions)[count]) {
    return std::equal(body.instructions.begin(), body.instructions.end(), instructions, instructions + count,
                      [](const Instruction& x, const Instruction& y) { return x.op == y.op && x.a == y.a && x.b == y.b; });
}

}  // namespace

bool PlannedNode::find_ranks(const Descriptor& node) {
    if (plan_.fold_rank != 1 || node.fold.size() != 1 || plan_.init != 0 || node.operands.size() != 2 || plan_.terms < kShortest || plan_.terms > kLongest) return false;
    const std::vector<Input>& inputs = node.inputs;
    constexpr uint8_t kinds[] = {kAccumulator, kOperand, kOperand, kCoordinate, kCoordinate};
    if (!std::equal(inputs.begin(), inputs.end(), std::begin(kinds), std::end(kinds), [](const Input& input, uint8_t kind) { return input.kind == kind; })) return false;
    const bool numbers = node.body.constants == std::vector<uint32_t>{0};
    if (!numbers && !node.body.constants.empty()) return false;
    const bool descending = numbers ? is_body(node.body, kNumbersDescending) : is_body(node.body, kIntegersDescending);
    if (!descending && !(numbers ? is_body(node.body, kNumbersAscending) : is_body(node.body, kIntegersAscending))) return false;
    const int own = inputs[1].index, other = inputs[2].index;
    const Operand &mine = node.operands[own], &theirs = node.operands[other];
    if (own == other || mine.source != theirs.source || mine.index != theirs.index || mine.numel != theirs.numel || mine.fill != theirs.fill) return false;
    if (operands_[own].bounds + operands_[other].bounds > 0 || mine.gather >= 0 || theirs.gather >= 0 || inputs[3].index == inputs[4].index) return false;
    if (static_cast<size_t>(inputs[4].index) != 1 + node.dims.size() || inputs[3].index == 0) return false;
    // The coordinates are planned in the order of their numbers: that of the output comes first.
    const Form& place = forms_[coordinates_[0].form];
    const int axis = static_cast<int>(std::find_if(place.out, place.out + plan_.space.rank, [](int64_t s) { return s != 0; }) - place.out);
    if (axis == plan_.space.rank || place.out[axis] != 1 || plan_.space.dims[axis] != plan_.terms) return false;
    for (const PlannedCoordinate& coordinate : coordinates_)
        if (affines_[coordinate.form].base != 0) return false;
    const int x = operands_[own].address, y = operands_[other].address;
    if (affines_[x].base != affines_[y].base || affines_[x].strides[0] != affines_[y].strides[0] || forms_[x].fold[0] != 0 || forms_[x].out[axis] != forms_[y].fold[0]) return false;
    for (int d = 0; d < plan_.space.rank; ++d) {
        if (d != axis && (forms_[x].out[d] != forms_[y].out[d] || place.out[d] != 0)) return false;
        if (d == axis && forms_[y].out[d] != 0) return false;
    }
    plan_.ranks = {own, other, axis, numbers, descending};
    return true;
}

}  // namespace pol
