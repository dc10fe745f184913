#include "arithmetic/functions.h"

#include <algorithm>

namespace pol {
namespace {

#include "arithmetic/functions_programs.inc"

template <typename... F>
std::vector<ScalarProgram> programs_of(Functions<F...>) {
    return {{F::inputs,
             {std::begin(F::constants), std::end(F::constants)},
             {std::begin(F::instructions), std::end(F::instructions)}}...};
}

constexpr size_t kShortest = 3;  // instructions; a function of fewer gains little

struct Function {
    ScalarProgram program;
    uint8_t op;
};

// Compares a pattern with the part of a body that computes one register, and finds the operands of the pattern.
class Match {
   public:
    Match(const ScalarProgram& body, const ScalarProgram& pattern)
        : body_(body), pattern_(pattern), bound_(first(pattern) + pattern.instructions.size(), -1) {}
    bool find(int result) { return matches(static_cast<int>(bound_.size()) - 1, result); }
    int operand(int input) const { return bound_[input] < 0 ? bound_[0] : bound_[input]; }

   private:
    static int first(const ScalarProgram& p) { return p.inputs + static_cast<int>(p.constants.size()); }

    bool matches(int wanted, int found) {
        if (bound_[wanted] >= 0) return bound_[wanted] == found;
        if (wanted >= pattern_.inputs) {
            if (found < body_.inputs) return false;
            const bool constant = wanted < first(pattern_);
            if (constant != (found < first(body_))) return false;
            if (constant) {
                if (pattern_.constants[wanted - pattern_.inputs] != body_.constants[found - body_.inputs]) return false;
            } else {
                const Instruction& p = pattern_.instructions[wanted - first(pattern_)];
                const Instruction& b = body_.instructions[found - first(body_)];
                const int operands = arity(p.op);
                if (p.op != b.op || !matches(p.a, b.a) || (operands > 1 && !matches(p.b, b.b)) || (operands > 2 && !matches(p.c, b.c)))
                    return false;
            }
        }
        bound_[wanted] = found;
        return true;
    }

    const ScalarProgram& body_;
    const ScalarProgram& pattern_;
    std::vector<int> bound_;
};

const std::vector<Function>& longest_first() {
    static const std::vector<Function> sorted = [] {
        std::vector<Function> all;
        for (const ScalarProgram& program : functions())
            all.push_back({program, static_cast<uint8_t>(kFunction + all.size())});
        std::stable_sort(all.begin(), all.end(), [](const Function& a, const Function& b) {
            return a.program.instructions.size() > b.program.instructions.size();
        });
        return all;
    }();
    return sorted;
}

}  // namespace

const std::vector<ScalarProgram>& functions() {
    static const std::vector<ScalarProgram> programs = programs_of(Catalogue());
    return programs;
}

std::vector<BodyInstruction> recognize_functions(const ScalarProgram& body) {
    const int first = body.inputs + static_cast<int>(body.constants.size());
    const int count = static_cast<int>(body.instructions.size());
    std::vector<bool> live(first + count, false);
    live.back() = true;
    std::vector<BodyInstruction> left;
    for (int i = count - 1; i >= 0; --i) {
        if (!live[first + i]) continue;
        const Instruction& in = body.instructions[i];
        BodyInstruction kept{in.op, first + i, {in.a, in.b, in.c}};
        int operands = arity(in.op);
        for (const Function& function : longest_first()) {
            const ScalarProgram& pattern = function.program;
            if (pattern.instructions.size() < kShortest || static_cast<int>(pattern.instructions.size()) > i + 1) continue;
            Match match(body, pattern);
            if (!match.find(first + i)) continue;
            kept.op = function.op;
            operands = pattern.inputs;
            for (int k = 0; k < operands; ++k) kept.operands[k] = match.operand(k);
            break;
        }
        for (int k = 0; k < kMaxFunctionInputs; ++k)
            if (k < operands)
                live[kept.operands[k]] = true;
            else
                kept.operands[k] = kept.operands[0];
        left.push_back(kept);
    }
    std::reverse(left.begin(), left.end());
    return left;
}

}  // namespace pol
