// Independent tasks on several threads. Which thread runs a task never affects a result.
#pragma once
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace pol {

// Hands out the tasks 0 .. count-1, each once.
class TaskQueue {
   public:
    explicit TaskQueue(size_t count) : count_(count) {}
    bool take(size_t* task) {
        *task = next_.fetch_add(1, std::memory_order_relaxed);
        return *task < count_;
    }

   private:
    std::atomic<size_t> next_{0};
    const size_t count_;
};

// Runs worker(queue) on up to `threads` threads, the calling one included, until all have returned. It must not throw.
template <class Worker>
void parallel_workers(size_t tasks, size_t threads, const Worker& worker) {
    TaskQueue queue(tasks);
    if (threads > tasks) threads = tasks;
    std::vector<std::thread> others;
    for (size_t i = 1; i < threads; ++i) {
        try {
            others.emplace_back([&] { worker(queue); });
        } catch (const std::system_error&) {
            break;  // no more threads to be had: those that run take all tasks
        }
    }
    worker(queue);
    for (std::thread& other : others) other.join();
}

inline size_t hardware_threads() {
    const size_t n = std::thread::hardware_concurrency();
    return n == 0 ? 1 : n;
}

}  // namespace pol
