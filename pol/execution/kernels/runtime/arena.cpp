#include "runtime/arena.h"

#include <cstdlib>
#include <iterator>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace pol {
namespace {

constexpr int64_t kLine = 16;                   // words; ranges begin at cache lines
constexpr size_t kPage = size_t{2} << 20;       // of the large kind, where there are such

int64_t rounded(int64_t words) { return (words + kLine - 1) / kLine * kLine; }

}  // namespace

int64_t ArenaPlan::take(int64_t words) {
    words = rounded(words);
    auto best = free_.end();
    for (auto range = free_.begin(); range != free_.end(); ++range)
        if (range->second >= words && (best == free_.end() || range->second < best->second)) best = range;
    if (best == free_.end()) {
        // The end grows; a free range there is used too.
        const auto last = free_.empty() ? free_.end() : std::prev(free_.end());
        if (last == free_.end() || last->first + last->second != size_) {
            size_ += words;
            return size_ - words;
        }
        const int64_t offset = last->first;
        free_.erase(last);
        size_ = offset + words;
        return offset;
    }
    const auto [offset, size] = *best;
    free_.erase(best);
    if (size > words) free_[offset + words] = size - words;
    return offset;
}

void ArenaPlan::give(int64_t offset, int64_t words) {
    auto range = free_.emplace(offset, rounded(words)).first;
    if (const auto next = std::next(range); next != free_.end() && range->first + range->second == next->first) {
        range->second += next->second;
        free_.erase(next);
    }
    if (range == free_.begin()) return;
    if (const auto previous = std::prev(range); previous->first + previous->second == range->first) {
        previous->second += range->second;
        free_.erase(range);
    }
}

Arena::Arena(int64_t words) {
    const size_t bytes = (static_cast<size_t>(words) * sizeof(uint32_t) + kPage) / kPage * kPage;
    data_ = static_cast<uint32_t*>(std::aligned_alloc(kPage, bytes));
    if (data_ == nullptr) throw std::bad_alloc();
#if defined(__linux__)
    madvise(data_, bytes, MADV_HUGEPAGE);  // advice only: fewer page faults
#endif
}

Arena::~Arena() { std::free(data_); }

}  // namespace pol
