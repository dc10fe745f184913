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
    slots_.assign(result_sizes_.size(), -1);
    writing_ = nodes_.size();
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
    fuse_nodes();
    for (size_t first = 0; auto group = next_row_group(members_, first, least_bytes, kChunkBytes);) {
        first = group->nodes.back() + 1;
        add_group(GroupedNodes(std::move(*group), members_));
    }
}

// Groups whose members are all fused pay off at any size. Without a member that cannot be, the search goes on where the
// group began: what lies before it is left as it is.
void Step::fuse_nodes() {
    std::vector<StepNode> members = members_;
    for (size_t i = 0; i < nodes_.size(); ++i) members[i].by_rows = members[i].by_rows && may_be_fused(nodes_[i].descriptor, nodes_[i].planned.plan());
    for (size_t first = 0; auto group = next_row_group(members, first, 0, kFusedChunkBytes);) {
        first = group->nodes.front();
        GroupedNodes fused(std::move(*group), members, true);
        const std::vector<size_t>& nodes = fused.group().nodes;
        if (fused.misfit()) {
            members[nodes[*fused.misfit()]].by_rows = false;
            continue;
        }
        first = nodes.back() + 1;
        for (const size_t node : nodes) members_[node].by_rows = false;
        add_group(std::move(fused));
    }
}

void Step::add_group(GroupedNodes group) {
    for (const size_t node : group.group().nodes) places_[node].group = static_cast<int>(groups_.size());
    groups_.push_back(std::move(group));
}

bool Step::is_stored(size_t node) const {
    const Place& place = places_[node];
    if (!place.needed || place.group < 0) return place.needed;
    const GroupedNodes& group = groups_[place.group];
    return group.is_stored(group.group().place_of(node));
}

// Whether the output of a node may be written over a tensor that nobody computed later reads, and as which operand it does.
bool Step::may_write_over(size_t node, uint8_t source, uint32_t index, size_t* operand) const {
    const auto& sources = nodes_[node].sources;
    const std::pair<uint8_t, uint32_t> wanted(source, index);
    const size_t o = static_cast<size_t>(std::find(sources.begin(), sources.end(), wanted) - sources.begin());
    *operand = o;
    if (std::count(sources.begin(), sources.end(), wanted) != 1 || !nodes_[node].planned.may_write_over(o)) return false;
    if (places_[node].group < 0) return true;
    const GroupedNodes& group = groups_[places_[node].group];
    return group.may_write_over(group.group().place_of(node), o, members_);
}

// The operand that the output of a node among [first, last] is written over, or as many as there are.
size_t Step::written_over(size_t node, size_t first, size_t last) const {
    const auto& sources = nodes_[node].sources;
    for (const auto& [source, index] : sources) {
        if (source != kNode || index >= first || places_[index].offset < 0) continue;
        const size_t end = places_[index].last_reader;
        size_t operand;
        if (end >= first && end <= last && may_write_over(node, source, index, &operand)) return operand;
    }
    return sources.size();
}

std::pair<size_t, size_t> Step::together(size_t node) const {
    if (places_[node].group < 0) return {node, node};
    const RowGroup& group = groups_[places_[node].group].group();
    return {group.nodes.front(), group.nodes.back()};
}

bool Step::may_write_over_state(size_t node, uint32_t slot) const {
    const std::pair<uint8_t, uint32_t> read(kState, slot);
    for (size_t later = together(node).second + 1; later < nodes_.size(); ++later)
        if (places_[later].needed && std::count(nodes_[later].sources.begin(), nodes_[later].sources.end(), read) != 0) return false;
    size_t operand;
    return may_write_over(node, kState, slot, &operand);
}

std::vector<bool> Step::write_over(const std::vector<int64_t>& slots) {
    if (slots.size() != result_sizes_.size()) throw Malformed("a tensor of the state, or -1, is needed for each result");
    std::vector<size_t> nodes(slots.size());
    for (size_t i = 0; i < nodes_.size(); ++i)
        if (places_[i].result >= 0) nodes[places_[i].result] = i;
    size_t before = 0;  // nodes up to here are computed before any tensor is written
    for (size_t k = 0; k < slots.size(); ++k) {
        if (slots[k] >= static_cast<int64_t>(state_sizes_.size())) throw Malformed("a result follows a tensor that does not exist");
        if (slots[k] < 0) before = std::max(before, together(nodes[k]).second + 1);
    }
    std::vector<bool> taken(state_sizes_.size()), chosen(slots.size());
    for (size_t k = 0; k < slots.size(); ++k) {
        const size_t first = together(nodes[k]).first;
        if (slots[k] < 0 || taken[slots[k]] || first < before || !may_write_over_state(nodes[k], static_cast<uint32_t>(slots[k]))) continue;
        taken[slots[k]] = chosen[k] = true;
        slots_[k] = slots[k];
        writing_ = std::min(writing_, first);
    }
    return chosen;
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
    compute({step, state, constants, results}, 0, nodes_.size(), threads, show);
}

void Step::begin(uint32_t step, const std::vector<Words>& state, const std::vector<Words>& constants, const std::vector<Words>& results, size_t threads) const {
    compute({step, state, constants, results}, 0, writing_, threads, [](size_t, const Words&) {});
}

void Step::finish(uint32_t step, const std::vector<Words>& state, const std::vector<Words>& constants, const std::vector<Words>& results, size_t threads) const {
    compute({step, state, constants, results}, writing_, nodes_.size(), threads, [](size_t, const Words&) {});
}

void Step::check(const Inputs& given) const {
    check_sizes("state", given.state, state_sizes_);
    check_sizes("constant", given.constants, constant_sizes_);
    check_sizes("result", given.results, result_sizes_);
    std::vector<bool> written(given.state.size());
    for (size_t k = 0; k < slots_.size(); ++k) {
        if (slots_[k] < 0) continue;
        if (given.results[k].data != given.state[slots_[k]].data) throw Malformed("result " + std::to_string(k) + " is not the array of the state that it is written over");
        written[slots_[k]] = true;
    }
    std::vector<Words> inputs = given.constants;
    for (size_t i = 0; i < given.state.size(); ++i)
        if (!written[i]) inputs.push_back(given.state[i]);
    check_disjoint(given.results, inputs);
}

// Nodes that are computed together are all in [from, to), or none of them is.
void Step::compute(const Inputs& given, size_t from, size_t to, size_t threads, const Show& show) const {
    check(given);
    const std::lock_guard<std::mutex> turn(advancing_);
    if (arena_ == nullptr) arena_ = std::make_unique<Arena>(arena_plan_.size());
    for (size_t i = from; i < to; ++i) {
        if (!places_[i].needed) continue;
        if (places_[i].group >= 0) {
            const GroupedNodes& group = groups_[places_[i].group];
            run_group(given, group, threads);
            i = group.group().nodes.back();
            continue;
        }
        const uint32_t* sources[kMaxOperands];
        for (size_t o = 0; o < nodes_[i].sources.size(); ++o) sources[o] = source(given, i, o);
        nodes_[i].planned.run(given.step, sources, output(given, i), threads);
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
