// Preloaded by test_fenced_torch.py: memory of torch's allocator lies between pages that fault, as all freed ones do.
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

extern "C" void* __libc_memalign(std::size_t, std::size_t);
extern "C" void __libc_free(void*);

namespace {
constexpr std::size_t page = 4096, gap = std::size_t{1} << 24, whole = std::size_t{1} << 42;
char* arena = nullptr;
std::size_t sizes[whole / gap];
std::atomic<std::size_t> used{1};  // slots of `gap` bytes
int place = 0;                     // 0: no fence, 1: memory begins behind one, 2: it ends before one
}  // namespace

extern "C" int fence(int where) {
    if (place == 0) {
        void* found = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (found == MAP_FAILED) return errno;
        arena = static_cast<char*>(found);
    }
    place = where;
    return 0;
}

extern "C" int posix_memalign(void** result, std::size_t alignment, std::size_t size) {
    if (place == 0 || alignment != 64 || size == 0) {
        *result = __libc_memalign(alignment, size);
        return *result == nullptr ? ENOMEM : 0;
    }
    const std::size_t bytes = (size + page - 1) / page * page, slots = 1 + (bytes + page) / gap;
    if (slots > 256) return ENOMEM;
    const std::size_t slot = used.fetch_add(slots);
    char* begin = arena + slot * gap;
    if (slot + slots > whole / gap || mprotect(begin, bytes, PROT_READ | PROT_WRITE) != 0) return ENOMEM;
    sizes[slot] = bytes;
    *result = begin + (place == 2 ? bytes - size : 0);
    return 0;
}

extern "C" void free(void* memory) {
    char* given = static_cast<char*>(memory);
    if (arena == nullptr || given < arena || given >= arena + whole) return __libc_free(memory);
    const std::size_t slot = (given - arena) / gap;
    mmap(arena + slot * gap, sizes[slot], PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
