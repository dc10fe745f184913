#include "runtime/step.h"

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
        Descriptor descriptor = Descriptor::parse(reinterpret_cast<const uint8_t*>(descriptors[i].data()), descriptors[i].size());
        for (const Operand& operand : descriptor.operands) {
            const std::vector<int64_t>& sizes = operand.source == kState ? state_sizes_ : operand.source == kConstant ? constant_sizes_ : output_sizes_;
            if (operand.index >= sizes.size() || sizes[operand.index] != operand.numel)
                throw Malformed("node " + std::to_string(i) + " reads a tensor that does not exist or has another size");
        }
        output_sizes_.push_back(descriptor.numel);
        nodes_.emplace_back(std::move(descriptor));
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

void Step::keep(const std::vector<uint32_t>& nodes, bool all, int64_t least_group_bytes) {
    places_.assign(nodes_.size(), {});
    for (const uint32_t node : nodes) {
        if (node >= nodes_.size() || places_[node].needed) throw Malformed("node " + std::to_string(node) + " cannot be kept: it does not exist or is kept already");
        places_[node].needed = true;
        places_[node].result = static_cast<int>(result_sizes_.size());
        result_sizes_.push_back(output_sizes_[node]);
    }
    if (all)
        for (Place& place : places_) place.needed = true;
    find_readers();
    // Who looks at all outputs needs them whole.
    if (!all) group_nodes(least_group_bytes);
    place_outputs();
}

void Step::find_readers() {
    for (size_t i = nodes_.size(); i-- > 0;) places_[i].last_reader = i;  // what nobody reads ends where it is computed
    for (size_t i = nodes_.size(); i-- > 0;) {
        if (!places_[i].needed) continue;
        for (const auto& [source, index] : nodes_[i].sources)
            if (source == kNode) {
                places_[index].needed = true;
                places_[index].last_reader = std::max(places_[index].last_reader, i);
            }
    }
}

void Step::group_nodes(int64_t least_bytes) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
        const Plan& plan = nodes_[i].planned.plan();
        members_.push_back({&nodes_[i].descriptor, places_[i].needed, plan.kind != kContraction && !plan.keyed, places_[i].result >= 0, places_[i].last_reader});
    }
    for (RowGroup& group : find_row_groups(members_, least_bytes)) {
        for (const size_t node : group.nodes) places_[node].group = static_cast<int>(groups_.size());
        groups_.emplace_back(std::move(group), members_);
    }
}

bool Step::is_stored(size_t node) const {
    const Place& place = places_[node];
    if (!place.needed || place.group < 0) return place.needed;
    const GroupedNodes& group = groups_[place.group];
    return group.is_stored(group.group().place_of(node));
}

// The operand that the output of a node among [first, last] is written over, or as many as there are.
size_t Step::written_over(size_t node, size_t first, size_t last) const {
    const auto& sources = nodes_[node].sources;
    for (size_t o = 0; o < sources.size(); ++o) {
        const auto [source, index] = sources[o];
        const bool alone = std::count(sources.begin(), sources.end(), sources[o]) == 1;
        if (source != kNode || !alone || index >= first || places_[index].offset < 0) continue;
        const size_t end = places_[index].last_reader;
        if (end < first || end > last || !nodes_[node].planned.may_write_over(o)) continue;
        if (first == last) return o;
        const GroupedNodes& group = groups_[places_[node].group];
        if (group.may_write_over(group.group().place_of(node), o, members_)) return o;
    }
    return sources.size();
}

// Nodes of a group are computed together: what they read may be written over or given back when all are done.
void Step::place_outputs() {
    for (size_t first = 0, last; first < nodes_.size(); first = last + 1) {
        last = first;
        if (!places_[first].needed) continue;
        if (places_[first].group >= 0) last = groups_[places_[first].group].group().nodes.back();
        std::vector<uint32_t> ended;
        std::vector<size_t> written;
        for (size_t i = first; i <= last; ++i) {
            Place& place = places_[i];
            if (!place.needed) continue;
            for (const auto& [source, index] : nodes_[i].sources)
                if (source == kNode && places_[index].offset >= 0 && places_[index].last_reader <= last && std::find(ended.begin(), ended.end(), index) == ended.end())
                    ended.push_back(index);
            if (place.result >= 0 || !is_stored(i)) continue;
            const size_t over = written_over(i, first, last);
            const uint32_t replaced = over < nodes_[i].sources.size() ? nodes_[i].sources[over].second : 0;
            if (over < nodes_[i].sources.size() && std::find(written.begin(), written.end(), replaced) == written.end()) {
                place.offset = places_[replaced].offset;
                written.push_back(replaced);
            } else {
                place.offset = arena_plan_.take(output_sizes_[i]);
            }
            if (place.last_reader == i) ended.push_back(static_cast<uint32_t>(i));
        }
        for (const uint32_t node : ended)
            if (std::find(written.begin(), written.end(), node) == written.end()) arena_plan_.give(places_[node].offset, output_sizes_[node]);
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
    const Inputs given{step, state, constants, results};
    for (size_t i = 0; i < places_.size(); ++i) {
        if (!places_[i].needed) continue;
        if (places_[i].group >= 0) {
            const GroupedNodes& group = groups_[places_[i].group];
            run_group(given, group, threads);
            i = group.group().nodes.back();
            continue;
        }
        const uint32_t* sources[kMaxOperands];
        for (size_t o = 0; o < nodes_[i].sources.size(); ++o) sources[o] = source(given, i, o);
        nodes_[i].planned.run(step, sources, output(given, i), threads);
        show(i, {output(given, i), output_sizes_[i]});
    }
}

uint32_t* Step::output(const Inputs& inputs, size_t node) const {
    const Place& place = places_[node];
    return place.result >= 0 ? inputs.results[place.result].data : arena_->data() + place.offset;
}

const uint32_t* Step::source(const Inputs& inputs, size_t node, size_t operand) const {
    const auto [source, index] = nodes_[node].sources[operand];
    return source == kState ? inputs.state[index].data : source == kConstant ? inputs.constants[index].data : output(inputs, index);
}

void Step::run_group(const Inputs& inputs, const GroupedNodes& group, size_t threads) const {
    std::vector<GroupedNodes::Places> places;
    for (const size_t node : group.group().nodes) {
        GroupedNodes::Places& place = places.emplace_back();
        for (size_t o = 0; o < nodes_[node].sources.size(); ++o) place.sources[o] = source(inputs, node, o);
        place.output = output(inputs, node);
    }
    group.run(inputs.step, places, threads);
}

}  // namespace pol
