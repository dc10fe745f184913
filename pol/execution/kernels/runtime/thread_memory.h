// Memory that stays with a thread, and how many threads some work is worth.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pol {

// Aligned to 64 bytes; its words are lost when it grows.
class ThreadMemory {
   public:
    void* at_least(size_t bytes) {
        const size_t words = bytes / sizeof(uint64_t) + 9;
        if (memory_.size() < words) memory_.resize(words);
        return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory_.data()) + 63) / 64 * 64);
    }

   private:
    std::vector<uint64_t> memory_;
};

constexpr int64_t kWorkPerThread = int64_t{1} << 18;  // word operations; below this a thread costs more than it saves

inline size_t threads_for(double work, size_t threads) {
    return static_cast<size_t>(std::clamp(work / kWorkPerThread, 1.0, static_cast<double>(std::max<size_t>(threads, 1))));
}

}  // namespace pol
