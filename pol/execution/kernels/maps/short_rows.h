// Words of many short rows, side by side: of rows that differ in one dimension alone, so that a row costs no call.
#pragma once
#include "nodes/lanes.h"

namespace pol::POL_ISA {
namespace {

// to[r * length + j] = from[row * r + word * j].
inline void copy_rows(uint32_t* __restrict to, const uint32_t* __restrict from, int64_t row, int64_t word, int rows, int length) {
    if (length == 2 && row == 1 && word == 0)
        for (int r = 0; r < rows; ++r) to[2 * r] = to[2 * r + 1] = from[r];
    else if (length == 2)
        for (int r = 0; r < rows; ++r) {
            to[2 * r] = from[row * r];
            to[2 * r + 1] = from[row * r + word];
        }
    else if (length < rows)
        for (int j = 0; j < length; ++j)
            for (int r = 0; r < rows; ++r) to[r * length + j] = from[row * r + word * j];
    else
        for (int r = 0; r < rows; ++r) copy(to + r * length, from + row * r, word, length);
}

// to[r * length + j] = first + row * r + word * j.
inline void count_rows(uint32_t* to, uint32_t first, uint32_t row, uint32_t word, int rows, int length) {
    if (row == 0 && word == 0)
        fill(to, first, rows * length);
    else if (length == 2)
        for (uint32_t e = 0; e < 2 * static_cast<uint32_t>(rows); ++e) to[e] = first + row * (e >> 1) + word * (e & 1);
    else
        for (int r = 0; r < rows; ++r)
            for (int j = 0; j < length; ++j) to[r * length + j] = first + row * static_cast<uint32_t>(r) + word * static_cast<uint32_t>(j);
}

}  // namespace
}  // namespace pol::POL_ISA
