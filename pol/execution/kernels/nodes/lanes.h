// A block of lanes and the words its operands read. Included by the files compiled once per instruction set
// (native/isa.h).
#pragma once
#include "plan/plan.h"

namespace pol::POL_ISA {
namespace {

// Lanes first .. first+count-1 of a space, cut where the innermost dimension wraps: within a cut all forms are linear.
struct Lanes {
    int count;
    int cuts;
    int32_t* begin;   // cuts + 1 lane numbers
    int64_t* start;   // start[form * kMaxLanes + cut]: value of the form at the first lane of the cut, fold index 0
};

constexpr size_t lanes_bytes(int forms) { return (kMaxLanes + 16) * sizeof(int32_t) + size_t(forms) * kMaxLanes * sizeof(int64_t); }

inline Lanes lanes_in(void* memory) {
    Lanes lanes{};
    lanes.begin = static_cast<int32_t*>(memory);
    lanes.start = reinterpret_cast<int64_t*>(lanes.begin + kMaxLanes + 16);
    return lanes;
}

// Value of a form at position `index` of a space.
inline int64_t offset_at(const Space& space, const int64_t* out_strides, int64_t index) {
    if (space.rank == 0) return 0;
    int64_t offset = 0;
    for (int d = space.rank - 1; d > 0; --d) {
        offset += out_strides[space.axis[d]] * (index % space.dims[d]);
        index /= space.dims[d];
    }
    return offset + out_strides[space.axis[0]] * index;
}

// Distance in words of the output between neighbors along each merged dimension.
inline void output_strides(const Plan& plan, int64_t* strides) {
    int64_t stride = 1;
    for (int d = plan.space.rank - 1; d >= 0; --d) {
        strides[d] = stride;
        stride *= plan.space.dims[d];
    }
}

// Fills in the lanes first .. first+count-1 for the forms [from, to), whose values at lane 0 of the space are `bases`.
inline void locate(const Plan& plan, const Space& space, const int64_t* bases, int from, int to, int64_t first, int count, Lanes& lanes) {
    const int inner = space.rank - 1;
    int64_t at[kMaxRank];
    int64_t row[kMaxForms];
    for (int d = inner; d >= 0; --d) {
        at[d] = first % space.dims[d];
        first /= space.dims[d];
    }
    for (int f = from; f < to; ++f) {
        row[f] = bases[f];
        for (int d = 0; d < inner; ++d) row[f] += plan.form[f].out[space.axis[d]] * at[d];
    }
    lanes.count = count;
    lanes.cuts = 0;
    for (int done = 0; done < count;) {
        for (int f = from; f < to; ++f)
            lanes.start[f * kMaxLanes + lanes.cuts] = row[f] + plan.form[f].out[space.axis[inner]] * at[inner];
        lanes.begin[lanes.cuts++] = done;
        const int64_t left = space.dims[inner] - at[inner];
        done = left < count - done ? done + static_cast<int>(left) : count;
        at[inner] = 0;
        for (int d = inner - 1; d >= 0; --d) {
            const bool wraps = ++at[d] == space.dims[d];
            for (int f = from; f < to; ++f) row[f] += plan.form[f].out[space.axis[d]] * (wraps ? 1 - space.dims[d] : 1);
            if (!wraps) break;
            at[d] = 0;
        }
    }
    lanes.begin[lanes.cuts] = count;
}

// Whether an operand's forms are linear in the lane number over a whole space, so that cuts can be ignored.
inline bool is_linear(const Plan& plan, const PlannedOperand& operand, const Space& space) {
    for (int f = operand.address; f <= operand.address + operand.bounds; ++f) {
        int64_t stride = plan.form[f].out[space.axis[space.rank - 1]];
        for (int d = space.rank - 1; d > 0; --d)
            if (__builtin_mul_overflow(stride, space.dims[d], &stride) || plan.form[f].out[space.axis[d - 1]] != stride) return false;
    }
    return operand.gather < 0;
}

// The value of every form's fold part, as the fold index runs in row-major order.
struct FoldIndex {
    int64_t at[kMaxFoldRank];
    int64_t offset[kMaxForms];
};

inline void seek(const Plan& plan, int64_t k, FoldIndex& index) {
    for (int d = plan.fold_rank - 1; d >= 0; --d) {
        index.at[d] = k % plan.fold[d];
        k /= plan.fold[d];
    }
    for (int f = 0; f < plan.forms; ++f) {
        index.offset[f] = 0;
        for (int d = 0; d < plan.fold_rank; ++d) index.offset[f] += plan.form[f].fold[d] * index.at[d];
    }
}

inline void advance(const Plan& plan, FoldIndex& index) {
    for (int d = plan.fold_rank - 1; d >= 0; --d) {
        const bool wraps = ++index.at[d] == plan.fold[d];
        for (int f = 0; f < plan.forms; ++f) index.offset[f] += plan.form[f].fold[d] * (wraps ? 1 - plan.fold[d] : 1);
        if (!wraps) return;
        index.at[d] = 0;
    }
}

inline void fill(uint32_t* to, uint32_t word, int count) {
    for (int j = 0; j < count; ++j) to[j] = word;
}

inline void copy(uint32_t* __restrict to, const uint32_t* __restrict from, int64_t stride, int count) {
    if (stride == 1)
        __builtin_memcpy(to, from, size_t(count) * sizeof(uint32_t));
    else if (stride == 0)
        fill(to, *from, count);
    else
        for (int j = 0; j < count; ++j) to[j] = from[j * stride];
}

// Narrows [low, high) to the lanes j with 0 <= x + stride * j < limit. Those lanes always form an interval.
inline void clip(int64_t x, int64_t stride, int64_t limit, int& low, int& high) {
    if (low >= high) return;
    const int64_t first = x + stride * low, last = x + stride * (high - 1);
    if (first >= 0 && first < limit && last >= 0 && last < limit) return;
    if (limit <= 0 || stride == 0) {
        high = low;
        return;
    }
    // How far the line may go down to 0 and up to limit - 1, from x; unsigned, so that no difference overflows.
    const uint64_t slope = stride < 0 ? -static_cast<uint64_t>(stride) : static_cast<uint64_t>(stride);
    const bool below = x < 0, above = x >= limit;
    if (stride > 0 ? above : below) {
        high = low;
        return;
    }
    const uint64_t lead = stride > 0 ? (below ? -static_cast<uint64_t>(x) : 0) : (above ? static_cast<uint64_t>(x) - static_cast<uint64_t>(limit - 1) : 0);
    const uint64_t reach = stride > 0 ? static_cast<uint64_t>(limit - 1) - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
    const uint64_t enter = slope == 1 ? lead : lead / slope + (lead % slope != 0);
    const uint64_t leave = slope == 1 ? reach : reach / slope;
    if (enter > static_cast<uint64_t>(low)) low = enter < static_cast<uint64_t>(high) ? static_cast<int>(enter) : high;
    if (leave < static_cast<uint64_t>(high - 1)) high = static_cast<int>(leave) + 1;
}

// A run of lanes.
struct LaneRange {
    int low, high;
};

// The lanes of a cut in which the word of an operand that gathers nothing is read; the others have its fill word.
inline LaneRange read_range(const Plan& plan, const PlannedOperand& operand, int inner, const Lanes& lanes, int cut) {
    const int address = operand.address;
    LaneRange range{0, lanes.begin[cut + 1] - lanes.begin[cut]};
    for (int f = address; f <= address + operand.bounds; ++f) {
        const int64_t limit = f == address ? operand.numel : operand.limits[f - address - 1];
        clip(lanes.start[f * kMaxLanes + cut], plan.form[f].out[inner], limit, range.low, range.high);
    }
    return range;
}

// What a block's operand is read with.
struct Access {
    const PlannedOperand* operand;
    const uint32_t* source;
    int inner;            // merged output dimension of the innermost lane coordinate
    bool safe, linear;
    bool uniform_index;   // a gathering operand whose index is one word per cut
};

// The words of an operand for all lanes; either `buffer`, filled, or a place in the source. `index` are the words of
// the operand that it gathers through.
inline const uint32_t* fetch(const Plan& plan, const Access& access, const Lanes& lanes, const FoldIndex& at, const uint32_t* index, uint32_t* buffer) {
    const PlannedOperand& operand = *access.operand;
    const int address = operand.address;
    const int64_t stride = plan.form[address].out[access.inner];
    const int cuts = access.linear ? 1 : lanes.cuts;
    for (int cut = 0; cut < cuts; ++cut) {
        const int begin = lanes.begin[cut];
        const int count = (access.linear ? lanes.count : lanes.begin[cut + 1]) - begin;
        uint32_t* to = buffer + begin;
        int64_t a = lanes.start[address * kMaxLanes + cut] + at.offset[address];
        int low = 0, high = count;
        if (!access.safe)
            for (int i = 0; i < operand.bounds; ++i) {
                const int f = address + 1 + i;
                clip(lanes.start[f * kMaxLanes + cut] + at.offset[f], plan.form[f].out[access.inner], operand.limits[i], low, high);
            }
        if (operand.gather >= 0 && !access.uniform_index) {
            for (int j = 0; j < count; ++j) {
                const int64_t v = static_cast<int32_t>(index[begin + j]);
                bool valid = j >= low && j < high && v >= 0 && v < operand.gather_limit;
                const int64_t word = valid ? a + stride * j + operand.gather_stride * v : 0;
                valid = valid && word >= 0 && word < operand.numel;
                to[j] = valid ? access.source[word] : operand.fill;
            }
            continue;
        }
        if (operand.gather >= 0) {
            const int64_t v = static_cast<int32_t>(index[begin]);
            if (v < 0 || v >= operand.gather_limit)
                high = low;
            else
                a += operand.gather_stride * v;
        }
        if (!access.safe || operand.gather >= 0) clip(a, stride, operand.numel, low, high);
        if (low >= high) {
            fill(to, operand.fill, count);
            continue;
        }
        if (stride == 1 && high - low == lanes.count) return access.source + a;
        fill(to, operand.fill, low);
        copy(to + low, access.source + a + stride * low, stride, high - low);
        fill(to + high, operand.fill, count - high);
    }
    return buffer;
}

inline Access access_to(const Plan& plan, const Run& run, int o, const Space& space) {
    const PlannedOperand& operand = plan.operand[o];
    Access access{};
    access.operand = &operand;
    access.source = run.sources[o];
    access.inner = space.axis[space.rank - 1];
    access.safe = run.safe[o];
    access.linear = is_linear(plan, operand, space);
    if (operand.gather >= 0) access.uniform_index = !(plan.operand[operand.gather].axes >> access.inner & 1);
    return access;
}

}  // namespace
}  // namespace pol::POL_ISA
