#include "native/threads.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <vector>

namespace pol {
namespace {

// How often an idle thread looks for work before it sleeps: tens of microseconds, about the pause between two nodes.
constexpr int kLooks = 2000;

inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

class Pool {
   public:
    void run(size_t helpers, void (*work)(void*), void* context) {
        const std::unique_lock<std::mutex> turn(turn_, std::try_to_lock);
        if (!turn.owns_lock()) return work(context);
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            start_threads(helpers);
            work_ = work;
            context_ = context;
            places_ = helpers;
            job_.fetch_add(1, std::memory_order_release);
        }
        if (sleepers_ > 0) wake_.notify_all();
        work(context);
        // A thread that has not begun by now would find no task left.
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            places_ = 0;
        }
        for (int i = 0; i < kLooks && working_.load(std::memory_order_acquire) > 0; ++i) pause();
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [&] { return working_ == 0; });
    }

    void stop() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            stopping_ = true;
            job_.fetch_add(1, std::memory_order_release);
        }
        wake_.notify_all();
        for (std::thread& thread : threads_) thread.join();
        threads_.clear();
    }

   private:
    void start_threads(size_t wanted) {
        if (threads_.size() >= wanted || stopping_) return;
        // Signals are for the program's own threads.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        try {
            while (threads_.size() < wanted) threads_.emplace_back([this, seen = job_.load()] { serve(seen); });
        } catch (const std::system_error&) {
            // The system has no more threads: those that run take all tasks.
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    void serve(size_t seen) {
        for (;;) {
            for (int i = 0; i < kLooks && job_.load(std::memory_order_acquire) == seen; ++i) pause();
            std::unique_lock<std::mutex> lock(mutex_);
            ++sleepers_;
            wake_.wait(lock, [&] { return job_.load() != seen; });
            --sleepers_;
            seen = job_.load();
            if (stopping_) return;
            if (places_ == 0) continue;
            --places_;
            ++working_;
            void (*const work)(void*) = work_;
            void* const context = context_;
            lock.unlock();
            work(context);
            lock.lock();
            if (--working_ == 0) done_.notify_one();
        }
    }

    std::mutex turn_;   // held by the caller whose job it is
    std::mutex mutex_;  // guards all below
    std::condition_variable wake_, done_;
    std::vector<std::thread> threads_;
    void (*work_)(void*) = nullptr;
    void* context_ = nullptr;
    size_t places_ = 0;
    bool stopping_ = false;
    std::atomic<size_t> job_{0}, sleepers_{0}, working_{0};
};

// Never destroyed: other threads may still ask for helpers while the process ends, and then get none.
Pool* pool = new Pool;

// A forked process has none of the threads, and its copies of the locks may be in any state.
const int forked = pthread_atfork(nullptr, nullptr, [] { pool = new Pool; });

struct AtExit {
    ~AtExit() { pool->stop(); }
} at_exit;

}  // namespace

void run_with_helpers(size_t helpers, void (*work)(void*), void* context) { pool->run(helpers, work, context); }

}  // namespace pol
