// Recognizes maps that end in one of the expressions of maps/endings.h.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace pol {
namespace {

// In the order of Ending; leaves are numbered as they come.
constexpr const char* kEndings[] = {
    "FFMA(FMUL(FSUB(0,1),2),3,4)",
    "FMUL(0,FSUB(FMUL(1,2),FFMA(FSUB(3,4),5,6)))",
    "FMUL(0,FSUB(1,FFMA(FSUB(2,3),4,5)))",
    "FMUL(0,FSUB(1,2))",
    "FSUB(FSUB(0,1),2)",
    "FSUB(0,FMUL(1,2))",
    "FDIV(0,1)",
    "SELECT(EQ(0,1),2,3)",
    "EXP(FSUB(0,1))",
    "FSUB(0,FMUL(EXP(1),2))",
};
constexpr size_t kLongest = 64;

const char* name_of_operation(uint8_t op) {
    switch (op) {
        case FSUB: return "FSUB";
        case FMUL: return "FMUL";
        case FDIV: return "FDIV";
        case FFMA: return "FFMA";
        case EQ: return "EQ";
        case SELECT: return "SELECT";
        case kExp: return "EXP";
        default: return nullptr;
    }
}

int operands_of(uint8_t op) { return op == kExp ? 1 : arity(op); }

// The instructions of a map.
struct Body {
    std::vector<PlannedInstruction> instructions;
    std::vector<int> leaves;

    const PlannedInstruction* origin(int reg) const {
        const auto found = std::find_if(instructions.begin(), instructions.end(), [&](const PlannedInstruction& in) { return in.result == reg; });
        return found == instructions.end() ? nullptr : &*found;
    }

    // Writes the expression that a register is, and lists its leaves.
    void write(int reg, std::string& text) {
        const PlannedInstruction* in = origin(reg);
        const char* name = in == nullptr ? nullptr : name_of_operation(in->op);
        if (text.size() > kLongest) return;
        if (name == nullptr) {
            const auto place = std::find(leaves.begin(), leaves.end(), reg);
            text += std::to_string(place - leaves.begin());
            if (place == leaves.end()) leaves.push_back(reg);
            return;
        }
        text += name;
        text += '(';
        const int operands[] = {in->a, in->b, in->c};
        for (int i = 0; i < operands_of(in->op); ++i) {
            if (i > 0) text += ',';
            write(operands[i], text);
        }
        text += ')';
    }
};

}  // namespace

void PlannedNode::find_ending() {
    plan_.ending = Ending::none;
    if (plan_.folds || each_.empty()) return;
    Body body{once_, {}};
    body.instructions.insert(body.instructions.end(), each_.begin(), each_.end());
    std::string text;
    body.write(each_.back().result, text);
    const auto found = std::find(std::begin(kEndings), std::end(kEndings), text);
    if (found == std::end(kEndings)) return;
    // Two results might have one buffer, if the body needs them one after the other.
    const auto is_result = [&](int reg) { return body.origin(reg) != nullptr; };
    if (std::count_if(body.leaves.begin(), body.leaves.end(), is_result) > 1) return;
    plan_.ending = static_cast<Ending>(1 + (found - std::begin(kEndings)));
    plan_.leaves = static_cast<int>(body.leaves.size());
    std::copy(body.leaves.begin(), body.leaves.end(), plan_.leaf);
    // What the leaves that are computed need.
    std::vector<int> wanted = body.leaves;
    for (auto in = body.instructions.rbegin(); in != body.instructions.rend(); ++in) {
        if (std::find(wanted.begin(), wanted.end(), in->result) == wanted.end()) continue;
        before_.insert(before_.begin(), *in);
        for (const int r : {in->a, in->b, in->c, in->d, in->e}) wanted.push_back(r);
    }
    plan_.before = before_.data();
    plan_.before_count = static_cast<int>(before_.size());
}

}  // namespace pol
