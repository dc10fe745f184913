// A part of a tensor as the forms of an operand's bounds see it, with fill words where they are out of bounds.
#pragma once
#include "nodes/lanes.h"

namespace pol::POL_ISA {
namespace {

struct Planes {
    int bounds;
    uint32_t filled;
    const int64_t* factor;  // of the bounds' forms in the address
    const int64_t* limit;
    int64_t low[kMaxBounds], size[kMaxBounds], stride[kMaxBounds];
    int64_t words;

    // The values of a bound's form that are needed, the last bound first.
    void add(int bound, int64_t least, int64_t count) {
        low[bound] = least;
        size[bound] = count;
        stride[bound] = words;
        words *= count;
    }

    // Copies the words; `from` is where all forms are 0.
    void copy(const float* from, float* to) const {
        const int last = bounds - 1;
        for (int64_t line = 0; line < words / size[last]; ++line, to += size[last]) {
            const float* start = from + factor[last] * low[last];
            bool within = true;
            int64_t left = line;
            for (int i = last - 1; i >= 0; left /= size[i--]) {
                const int64_t at = low[i] + left % size[i];
                within = within && at >= 0 && at < limit[i];
                start += factor[i] * at;
            }
            uint32_t* const words_of_line = reinterpret_cast<uint32_t*>(to);
            const int count = static_cast<int>(size[last]);
            int begin = 0, end = within ? count : 0;
            clip(low[last], 1, limit[last], begin, end);
            if (begin >= end) begin = end = 0;
            fill(words_of_line, filled, begin);
            if (begin < end) ::pol::POL_ISA::copy(words_of_line + begin, reinterpret_cast<const uint32_t*>(start + factor[last] * begin), factor[last], end - begin);
            fill(words_of_line + end, filled, count - end);
        }
    }
};

}  // namespace
}  // namespace pol::POL_ISA
