#include "plan.h"

#include <algorithm>
#include <cstdlib>

#include "floating_point_mode.h"
#include "functions.h"
#include "isa.h"
#include "parallel.h"

namespace pol {
namespace {

constexpr int64_t kWorkPerThread = int64_t{1} << 18;  // word operations; below this a thread costs more than it saves
constexpr int64_t kBlockBytes = 24 << 10;              // the buffers of a block should stay in the first-level cache
constexpr int64_t kSmallestTile = 8;
constexpr int64_t kMostKeys = int64_t{1} << 24;

// Whether coordinates i and i + 1 act as the one coordinate i * size + (i + 1) in every form.
bool mergeable(const std::vector<Affine>& affines, int outer, int inner, int64_t size) {
    return std::all_of(affines.begin(), affines.end(), [&](const Affine& affine) {
        int64_t scaled;
        return !__builtin_mul_overflow(affine.strides[inner], size, &scaled) && affine.strides[outer] == scaled;
    });
}

// A run of merged dimensions: its size and the coordinate whose strides it has.
struct Merged {
    int64_t size;
    int coordinate;
};

std::vector<Merged> merge(const std::vector<Affine>& affines, const std::vector<int64_t>& dims, int first) {
    std::vector<Merged> merged;
    for (size_t i = 0; i < dims.size(); ++i) {
        const int coordinate = first + static_cast<int>(i);
        if (dims[i] == 1) continue;
        if (!merged.empty() && mergeable(affines, merged.back().coordinate, coordinate, dims[i]))
            merged.back() = {merged.back().size * dims[i], coordinate};
        else
            merged.push_back({dims[i], coordinate});
    }
    if (merged.empty()) merged.push_back({1, -1});
    return merged;
}

}  // namespace

PlannedNode::PlannedNode(const Descriptor& descriptor) {
    for (const Operand& operand : descriptor.operands) {
        affines_.push_back(operand.address);
        for (const Bound& bound : operand.bounds) affines_.push_back(bound.affine);
    }
    // A coordinate is a form too: its own.
    for (int i = 0; i < 1 + static_cast<int>(descriptor.dims.size() + descriptor.fold.size()); ++i)
        if (std::any_of(descriptor.inputs.begin(), descriptor.inputs.end(),
                        [&](const Input& input) { return input.kind == kCoordinate && input.index == i; })) {
            Affine affine;
            affine.strides[i] = 1;
            affines_.push_back(affine);
        }
    plan_.terms = descriptor.terms;
    plan_.folds = !descriptor.fold.empty();
    plan_.init = descriptor.init;
    merge_dimensions(descriptor);
    plan_operands(descriptor);
    schedule(descriptor);
    // Products of broadcast tensors folded in lanes look like contractions, but rows read them better.
    const bool rows = find_rows();
    plan_.kind = rows && plan_.row.lanes ? kRowFold : find_contraction() ? kContraction : rows ? kRowFold : kElements;
    if (plan_.kind == kElements) find_key();
    find_tiles();
    find_join();
    mark_lazy();
    for (const Affine& affine : affines_) {
        bases_.push_back(affine.base);
        fixed_ = fixed_ && affine.strides[0] == 0;
    }
    for (int o = 0; o < plan_.operands; ++o) safe_[o] = is_safe(operands_[o], bases_.data());
}

void PlannedNode::merge_dimensions(const Descriptor& descriptor) {
    const int first_fold = 1 + static_cast<int>(descriptor.dims.size());
    const std::vector<Merged> out = merge(affines_, descriptor.dims, 1);
    const std::vector<Merged> fold = merge(affines_, descriptor.fold, first_fold);
    plan_.space = empty_space();
    plan_.space.rank = static_cast<int>(out.size());
    for (int d = 0; d < plan_.space.rank; ++d) {
        plan_.space.dims[d] = out[d].size;
        plan_.space.axis[d] = d;
        plan_.space.size *= out[d].size;
    }
    plan_.fold_rank = static_cast<int>(fold.size());
    for (int d = 0; d < plan_.fold_rank; ++d) plan_.fold[d] = fold[d].size;
    for (const Affine& affine : affines_) {
        Form form{};
        for (size_t d = 0; d < out.size(); ++d) form.out[d] = out[d].coordinate < 0 ? 0 : affine.strides[out[d].coordinate];
        for (size_t d = 0; d < fold.size(); ++d) form.fold[d] = fold[d].coordinate < 0 ? 0 : affine.strides[fold[d].coordinate];
        forms_.push_back(form);
    }
    plan_.forms = static_cast<int>(forms_.size());
    plan_.form = forms_.data();
}

void PlannedNode::plan_operands(const Descriptor& descriptor) {
    int form = 0;
    const auto folds = [&](int f) { return std::any_of(forms_[f].fold, forms_[f].fold + plan_.fold_rank, [](int64_t s) { return s != 0; }); };
    for (const Operand& operand : descriptor.operands) {
        PlannedOperand planned{};
        planned.address = form;
        planned.bounds = static_cast<int>(operand.bounds.size());
        for (int i = 0; i < planned.bounds; ++i) planned.limits[i] = operand.bounds[i].limit;
        planned.numel = operand.numel;
        planned.fill = operand.fill;
        planned.gather = operand.gather;
        planned.gather_stride = operand.gather_stride;
        planned.gather_limit = operand.gather_limit;
        if (operand.gather >= 0) {
            planned.varies = operands_[operand.gather].varies;
            planned.axes = operands_[operand.gather].axes;
        }
        for (int f = form; f <= form + planned.bounds; ++f) {
            planned.varies = planned.varies || folds(f);
            for (int d = 0; d < plan_.space.rank; ++d)
                if (forms_[f].out[d] != 0) planned.axes |= 1u << d;
        }
        form += 1 + planned.bounds;
        operands_.push_back(planned);
    }
    for (; form < plan_.forms; ++form) coordinates_.push_back({form, folds(form)});
    plan_.operands = static_cast<int>(operands_.size());
    plan_.operand = operands_.data();
    plan_.coordinates = static_cast<int>(coordinates_.size());
    plan_.coordinate = coordinates_.data();
}

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
    const std::vector<BodyInstruction> instructions = recognise_functions(body);
    for (const BodyInstruction& in : instructions) {
        const int result = first_result + in.result - body.inputs - static_cast<int>(body.constants.size());
        const auto reg = [&](int i) { return static_cast<uint16_t>(number[in.operands[i]]); };
        const PlannedInstruction planned{in.op, static_cast<uint16_t>(result), reg(0), reg(1), reg(2), reg(3), reg(4)};
        number[in.result] = result;
        for (const int r : {planned.a, planned.b, planned.c, planned.d, planned.e}) varies[result] = varies[result] || varies[r];
        (varies[result] || in.result == instructions.back().result ? each_ : once_).push_back(planned);
    }

    // Results share buffers as soon as nobody reads the earlier one any more; what a fold reads again and again stays.
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

// Whether a register equals the accumulator in every term in which the guard is 0. Each register is looked at once, in order:
// a body may select from the same ones over and over.
bool PlannedNode::keeps_accumulator(int reg, const PlannedInstruction& guard) const {
    std::vector<bool> keeps(plan_.registers, false);
    keeps[plan_.accumulator] = true;
    for (const PlannedInstruction& in : each_)
        if (in.op == SELECT) keeps[in.result] = keeps[in.c] && (in.a == guard.result || keeps[in.b]);
    return keeps[reg];
}

void PlannedNode::find_key() {
    if (!plan_.folds || plan_.terms > kMostKeys || each_.empty()) return;
    for (const PlannedInstruction& guard : each_) {
        if (guard.op != EQ) continue;
        const bool swapped = guard.a >= plan_.operands;
        const int key = swapped ? guard.b : guard.a, coordinate = (swapped ? guard.a : guard.b) - plan_.operands;
        if (key >= plan_.operands || coordinate < 0 || coordinate >= plan_.coordinates) continue;
        if (operands_[key].axes != 0 || operands_[key].gather >= 0 || coordinates_[coordinate].varies) continue;
        const Form& form = forms_[coordinates_[coordinate].form];
        const auto axis = std::find_if(form.out, form.out + plan_.space.rank, [](int64_t stride) { return stride != 0; });
        if (axis == form.out + plan_.space.rank || !keeps_accumulator(each_.back().result, guard)) continue;
        plan_.keyed = true;
        plan_.key = key;
        plan_.key_form = coordinates_[coordinate].form;
        plan_.key_axis = static_cast<int>(axis - form.out);
        return;
    }
}

void PlannedNode::find_tiles() {
    plan_.tile_axis = -1;
    const int inner = plan_.space.rank - 1;
    if (plan_.folds || plan_.space.dims[inner] < kSmallestTile) return;
    for (const PlannedOperand& operand : operands_) {
        const int64_t* strides = forms_[operand.address].out;
        if (strides[inner] == 0 || strides[inner] == 1) continue;
        for (int d = 0; d < inner; ++d)
            if (strides[d] == 1 && plan_.space.dims[d] >= kSmallestTile) plan_.tile_axis = d;
    }
}

void PlannedNode::find_join() {
    if (plan_.folds || plan_.operands < 2 || plan_.coordinates > 0) return;
    std::vector<int> used(plan_.registers, 0);
    for (const std::vector<PlannedInstruction>* instructions : {&once_, &each_})
        for (const PlannedInstruction& in : *instructions) {
            if (in.op != OR) return;
            ++used[in.a];
            ++used[in.b];
        }
    for (int o = 0; o < plan_.operands; ++o)
        if (operands_[o].fill != 0 || operands_[o].gather >= 0 || used[o] != 1) return;
    for (int i = 0; i < plan_.constants; ++i)
        if (used[plan_.accumulator + 1 + i] > 0) return;
    // A tree: every result but the last is read, as often as there are results left.
    plan_.joins = plan_.once_count + plan_.each_count == plan_.operands - 1;
}

// (key, fold index) of every term, in order.
std::vector<std::pair<uint32_t, uint32_t>> PlannedNode::keyed_terms(const int64_t* bases, const uint32_t* source) const {
    const PlannedOperand& operand = operands_[plan_.key];
    std::vector<std::pair<uint32_t, uint32_t>> terms;
    for (int64_t k = 0; k < plan_.terms; ++k) {
        const auto value = [&](int f) {
            int64_t result = bases[f], rest = k;
            for (int d = plan_.fold_rank - 1; d >= 0; --d) {
                result += forms_[f].fold[d] * (rest % plan_.fold[d]);
                rest /= plan_.fold[d];
            }
            return result;
        };
        const int64_t address = value(operand.address);
        bool valid = address >= 0 && address < operand.numel;
        for (int i = 0; i < operand.bounds; ++i) {
            const int64_t x = value(operand.address + 1 + i);
            valid = valid && x >= 0 && x < operand.limits[i];
        }
        terms.emplace_back(valid ? source[address] : operand.fill, static_cast<uint32_t>(k));
    }
    std::sort(terms.begin(), terms.end());
    return terms;
}

bool PlannedNode::is_safe(const PlannedOperand& operand, const int64_t* bases) const {
    const auto within = [&](int f, int64_t limit) {
        int64_t low = bases[f], high = bases[f];
        const auto widen = [&](int64_t stride, int64_t size) { (stride < 0 ? low : high) += stride * (size - 1); };
        for (int d = 0; d < plan_.space.rank; ++d) widen(forms_[f].out[d], plan_.space.dims[d]);
        for (int d = 0; d < plan_.fold_rank; ++d) widen(forms_[f].fold[d], plan_.fold[d]);
        return low >= 0 && high < limit;
    };
    if (operand.gather < 0 && !within(operand.address, operand.numel)) return false;
    for (int i = 0; i < operand.bounds; ++i)
        if (!within(operand.address + 1 + i, operand.limits[i])) return false;
    return true;
}

bool PlannedNode::may_write_over(size_t o) const {
    const PlannedOperand& operand = operands_[o];
    if (plan_.kind != kElements || plan_.folds || operand.gather >= 0 || operand.numel != plan_.space.size) return false;
    const Affine& affine = affines_[operand.address];
    if (affine.base != 0 || affine.strides[0] != 0 || !safe_[o]) return false;
    int64_t stride = 1;
    for (int d = plan_.space.rank - 1; d >= 0; stride *= plan_.space.dims[d--])
        if (plan_.space.dims[d] > 1 && forms_[operand.address].out[d] != stride) return false;
    return true;
}

void PlannedNode::run(uint32_t step, const uint32_t* const* sources, uint32_t* out, size_t threads) const {
    int64_t step_bases[kMaxOperands * (1 + kMaxBounds) + kMaxCoordinates];
    bool step_safe[kMaxOperands];
    const int64_t* bases = bases_.data();
    const bool* safe = safe_;
    if (!fixed_) {
        for (int f = 0; f < plan_.forms; ++f) step_bases[f] = affines_[f].base + affines_[f].strides[0] * static_cast<int64_t>(step);
        for (int o = 0; o < plan_.operands; ++o) step_safe[o] = is_safe(operands_[o], step_bases);
        bases = step_bases;
        safe = step_safe;
    }
    std::vector<uint32_t> keys, terms;
    if (plan_.keyed)
        for (const auto& [key, term] : keyed_terms(bases, sources[plan_.key])) {
            keys.push_back(key);
            terms.push_back(term);
        }
    const Run run{bases, safe, sources, out, static_cast<int64_t>(keys.size()), keys.data(), terms.data()};

    // Work in doubles: it may exceed 64 bits.
    const double terms_per_element = plan_.keyed ? 1.0 : static_cast<double>(plan_.terms);
    const double work = static_cast<double>(plan_.space.size) * terms_per_element * (plan_.operands + plan_.each_count);
    threads = static_cast<size_t>(std::clamp(work / kWorkPerThread, 1.0, static_cast<double>(std::max<size_t>(threads, 1))));
    const Kernel& kernel = isa().kernels[plan_.kind];
    const size_t tasks = kernel.tasks(plan_, threads);
    const size_t scratch = kernel.scratch(plan_);
    parallel_workers(tasks, threads, [&](TaskQueue& queue) {
        const FloatingPointMode mode;
        // Scratch stays with a thread from node to node.
        thread_local std::vector<uint64_t> memory;
        const size_t words = scratch / sizeof(uint64_t) + 9;
        if (memory.size() < words) memory.resize(words);
        void* aligned = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
        for (size_t task; queue.take(&task);) kernel.compute(plan_, run, task, tasks, aligned);
    });
}

}  // namespace pol
