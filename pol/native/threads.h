// Independent tasks on several threads. Which thread runs a task never affects a result.
#pragma once
#include <atomic>
#include <cstddef>
#include <thread>

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

// Runs work(context) on the calling thread and on up to `helpers` threads of a pool, those that wake up in time;
// returns when all of them have returned. The pool has one job at a time: a second caller meanwhile works alone.
void run_with_helpers(size_t helpers, void (*work)(void*), void* context);

// Runs worker(queue) on up to `threads` threads, the calling one included, until all tasks are done. It must not throw.
template <class Worker>
void parallel_workers(size_t tasks, size_t threads, const Worker& worker) {
    TaskQueue queue(tasks);
    if (threads > tasks) threads = tasks;
    if (threads <= 1) return worker(queue);
    struct Context {
        const Worker& worker;
        TaskQueue& queue;
    } context{worker, queue};
    run_with_helpers(threads - 1, [](void* c) { static_cast<Context*>(c)->worker(static_cast<Context*>(c)->queue); }, &context);
}

inline size_t hardware_threads() {
    const size_t n = std::thread::hardware_concurrency();
    return n == 0 ? 1 : n;
}

}  // namespace pol
