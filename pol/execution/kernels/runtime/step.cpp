#include "runtime/step.h"

#include <algorithm>
#include <functional>
#include <numeric>

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

void Step::keep(const std::vector<uint32_t>& nodes, bool all) {
    places_.assign(nodes_.size(), {});
    for (const uint32_t node : nodes) {
        if (node >= nodes_.size() || places_[node].needed) throw Malformed("node " + std::to_string(node) + " cannot be kept: it does not exist or is kept already");
        places_[node].needed = true;
        places_[node].result = static_cast<int>(result_sizes_.size());
        result_sizes_.push_back(output_sizes_[node]);
    }
    if (all)
        for (Place& place : places_) place.needed = true;
    place_outputs();
}

void Step::place_outputs() {
    const size_t count = nodes_.size();
    std::vector<size_t> last_reader(count);
    std::iota(last_reader.begin(), last_reader.end(), size_t{0});  // what nobody reads ends where it is computed
    for (size_t i = count; i-- > 0;)
        if (places_[i].needed)
            for (const auto& [source, index] : nodes_[i].sources)
                if (source == kNode) {
                    places_[index].needed = true;
                    last_reader[index] = std::max(last_reader[index], i);
                }
    for (size_t i = 0; i < count; ++i) {
        Place& place = places_[i];
        if (!place.needed) continue;
        const auto& sources = nodes_[i].sources;
        const auto ends_here = [&](size_t o) {
            return sources[o].first == kNode && places_[sources[o].second].offset >= 0 && last_reader[sources[o].second] == i;
        };
        size_t over = sources.size();  // the operand that the output is written over
        if (place.result < 0) {
            for (size_t o = 0; o < sources.size() && over == sources.size(); ++o) {
                const bool alone = std::count(sources.begin(), sources.end(), sources[o]) == 1;
                if (alone && ends_here(o) && nodes_[i].planned.may_write_over(o)) over = o;
            }
            place.offset = over < sources.size() ? places_[sources[over].second].offset : arena_plan_.take(output_sizes_[i]);
        }
        for (size_t o = 0; o < sources.size(); ++o) {
            const bool again = std::find(sources.begin(), sources.begin() + o, sources[o]) != sources.begin() + o;
            if (o != over && !again && ends_here(o)) arena_plan_.give(places_[sources[o].second].offset, output_sizes_[sources[o].second]);
        }
        if (place.result < 0 && last_reader[i] == i) arena_plan_.give(place.offset, output_sizes_[i]);
    }
}

void Step::advance(uint32_t step, const std::vector<Words>& state, const std::vector<Words>& constants, const std::vector<Words>& results, size_t threads) const {
    advance(step, state, constants, results, threads, [](size_t, const Words&) {});
}

void Step::advance(uint32_t step, const std::vector<Words>& state, const std::vector<Words>& constants, const std::vector<Words>& results, size_t threads, const Show& show) const {
    check_sizes("state", state, state_sizes_);
    check_sizes("constant", constants, constant_sizes_);
    check_sizes("result", results, result_sizes_);
    std::vector<Words> inputs = state;
    inputs.insert(inputs.end(), constants.begin(), constants.end());
    check_disjoint(results, inputs);
    const std::lock_guard<std::mutex> turn(advancing_);
    if (arena_ == nullptr) arena_ = std::make_unique<Arena>(arena_plan_.size());
    const auto output = [&](size_t node) {
        const Place& place = places_[node];
        return place.result >= 0 ? results[place.result].data : arena_->data() + place.offset;
    };
    for (size_t i = 0; i < places_.size(); ++i) {
        if (!places_[i].needed) continue;
        const uint32_t* sources[kMaxOperands];
        for (size_t o = 0; o < nodes_[i].sources.size(); ++o) {
            const auto [source, index] = nodes_[i].sources[o];
            sources[o] = source == kState ? state[index].data : source == kConstant ? constants[index].data : output(index);
        }
        nodes_[i].planned.run(step, sources, output(i), threads);
        show(i, {output(i), output_sizes_[i]});
    }
}

}  // namespace pol
