#include "step.h"

#include <algorithm>
#include <functional>

namespace pol {
namespace {

void check_sizes(const char* what, const std::vector<Words>& given, const std::vector<int64_t>& expected) {
    if (given.size() != expected.size())
        throw Malformed(std::to_string(given.size()) + " " + what + " arrays were given, " + std::to_string(expected.size()) + " are needed");
    for (size_t i = 0; i < given.size(); ++i)
        if (given[i].size != expected[i])
            throw Malformed(std::string(what) + " array " + std::to_string(i) + " has " + std::to_string(given[i].size) + " words, not " + std::to_string(expected[i]));
}

}  // namespace

void check_disjoint(const std::vector<Words>& outputs, const std::vector<Words>& inputs) {
    struct Range {
        const uint32_t* begin;
        const uint32_t* end;
        bool written;
    };
    std::vector<Range> ranges;
    for (const Words& words : outputs) ranges.push_back({words.data, words.data + words.size, true});
    for (const Words& words : inputs) ranges.push_back({words.data, words.data + words.size, false});
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return std::less<>{}(a.begin, b.begin); });
    // How far the ranges passed so far reach, and how far those of them that are written.
    const uint32_t* reach = nullptr;
    const uint32_t* written = nullptr;
    for (const Range& range : ranges) {
        if (std::less<>{}(range.begin, range.written ? reach : written)) throw Malformed("an output overlaps another array");
        reach = std::max(reach, range.end, std::less<>{});
        if (range.written) written = std::max(written, range.end, std::less<>{});
    }
}

Step::Step(const std::vector<std::string>& descriptors, std::vector<int64_t> state_sizes, std::vector<int64_t> constant_sizes)
    : state_sizes_(std::move(state_sizes)), constant_sizes_(std::move(constant_sizes)) {
    for (size_t i = 0; i < descriptors.size(); ++i) {
        const Descriptor descriptor = Descriptor::parse(reinterpret_cast<const uint8_t*>(descriptors[i].data()), descriptors[i].size());
        for (const Operand& operand : descriptor.operands) {
            const std::vector<int64_t>& sizes = operand.source == kState ? state_sizes_ : operand.source == kConstant ? constant_sizes_ : output_sizes_;
            if (operand.index >= sizes.size() || sizes[operand.index] != operand.numel)
                throw Malformed("node " + std::to_string(i) + " reads a tensor that does not exist or has another size");
        }
        output_sizes_.push_back(descriptor.numel);
        nodes_.emplace_back(descriptor);
    }
}

void Step::run(uint32_t step, const std::vector<Words>& state, const std::vector<Words>& constants, const std::vector<Words>& outputs, size_t threads) const {
    check_sizes("state", state, state_sizes_);
    check_sizes("constant", constants, constant_sizes_);
    check_sizes("output", outputs, output_sizes_);
    std::vector<Words> inputs = state;
    inputs.insert(inputs.end(), constants.begin(), constants.end());
    check_disjoint(outputs, inputs);
    for (size_t i = 0; i < nodes_.size(); ++i) {
        const uint32_t* sources[kMaxOperands];
        for (size_t o = 0; o < nodes_[i].sources.size(); ++o) {
            const auto [source, index] = nodes_[i].sources[o];
            sources[o] = (source == kState ? state : source == kConstant ? constants : outputs)[index].data;
        }
        nodes_[i].planned.run(step, sources, outputs[i].data, threads);
    }
}

}  // namespace pol
