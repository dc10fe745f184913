// A loop over independent tasks on several threads. Which thread runs a task never affects a result.
#pragma once
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace pol {

// Calls body(task, worker) for task = 0 .. tasks-1; worker < threads numbers the calling thread. body must not throw.
template <class Body>
void parallel_for(size_t tasks, size_t threads, const Body& body) {
    std::atomic<size_t> next{0};
    const auto work = [&](size_t worker) {
        for (size_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) body(task, worker);
    };
    if (threads > tasks) threads = tasks;
    std::vector<std::thread> others;
    for (size_t worker = 1; worker < threads; ++worker) {
        try {
            others.emplace_back(work, worker);
        } catch (const std::system_error&) {
            break;  // no more threads to be had: the ones that run take all tasks
        }
    }
    work(0);
    for (std::thread& other : others) other.join();
}

inline size_t hardware_threads() {
    const size_t n = std::thread::hardware_concurrency();
    return n == 0 ? 1 : n;
}

}  // namespace pol
