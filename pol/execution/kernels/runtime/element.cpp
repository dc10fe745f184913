#include "runtime/element.h"

#include "nodes/kernels.h"
#include "runtime/floating_point_mode.h"

namespace pol {
namespace {

// Aligned to 64 bytes.
class Scratch {
   public:
    explicit Scratch(size_t bytes) : memory_(bytes / sizeof(uint64_t) + 9) {}
    void* data() { return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory_.data()) + 63) / 64 * 64); }

   private:
    std::vector<uint64_t> memory_;
};

}  // namespace

void Element::accumulators(uint32_t step, const uint32_t* const* sources, int64_t begin, uint32_t accumulator, const std::vector<int64_t>& ends, uint32_t* out) const {
    StepForms own;
    const Run run = planned_.at(step, sources, nullptr, own);
    Scratch scratch(kernels().chain_scratch(planned_.plan()));
    const FloatingPointMode mode;
    kernels().follow_chain(planned_.plan(), run, {begin, accumulator, ends.data(), ends.size(), out}, scratch.data());
}

void Element::results(uint32_t step, const uint32_t* const* sources, int64_t term, uint32_t accumulator, uint32_t* out) const {
    StepForms own;
    const Run run = planned_.at(step, sources, nullptr, own);
    Scratch scratch(kernels().chain_scratch(planned_.plan()));
    uint32_t operands[kMaxOperands];
    kernels().read_term(planned_.plan(), run, term, operands, scratch.data());
    std::vector<uint32_t> words;
    for (const Input& input : terms_.inputs)
        words.push_back(input.kind == kOperand ? operands[input.index] : input.kind == kAccumulator ? accumulator : coordinate(input.index, step, term));
    words.insert(words.end(), terms_.body.constants.begin(), terms_.body.constants.end());
    std::vector<uint32_t*> registers;
    for (uint32_t& word : words) registers.push_back(&word);
    for (size_t i = 0; i < body_.size(); ++i) registers.push_back(out + i);
    const FloatingPointMode mode;
    kernels().program_values(body_.data(), static_cast<int>(body_.size()), registers.data(), 1);
}

uint32_t Element::coordinate(int index, uint32_t step, int64_t term) const {
    if (index == 0) return step;
    for (int d = static_cast<int>(terms_.dims.size()); d > index; --d) term /= terms_.dims[d - 1];
    return static_cast<uint32_t>(terms_.origin[index] + term % terms_.dims[index - 1]);
}

}  // namespace pol
