// One block of memory for values that live at different times.
#pragma once
#include <cstdint>
#include <map>

namespace pol {

// Gives out ranges of words that do not overlap, and takes them back. Only plans: it touches no memory.
class ArenaPlan {
   public:
    int64_t take(int64_t words);
    void give(int64_t offset, int64_t words);
    int64_t size() const { return size_; }  // words that the block must have

   private:
    std::map<int64_t, int64_t> free_;  // size by offset
    int64_t size_ = 0;
};

class Arena {
   public:
    explicit Arena(int64_t words);
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    uint32_t* data() const { return data_; }

   private:
    uint32_t* data_;
};

}  // namespace pol
