// One pool of threads for the process: a step is one call of `run`, with barriers inside.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace plait {

constexpr int kSpins = 2000;  // about 50 us: a decode step waits for its peers less than that

// The core that this thread runs on, or -1.
inline int current_cpu() {
#if defined(__linux__)
    return sched_getcpu();
#else
    return -1;
#endif
}

inline void relax(int spins) {
    if (spins > kSpins) {
        std::this_thread::yield();
        return;
    }
#if defined(__x86_64__)
    _mm_pause();
#endif
}

// All threads of a step meet here; the last one to come lets the others go on.
class Barrier {
  public:
    void reset(int num_threads) {
        num_threads_ = num_threads;
        cpus_ = std::vector<std::atomic<int>>(num_threads);
    }

    void wait(int id) {
        const int round = round_.load(std::memory_order_relaxed);
        const int cpu = current_cpu();
        cpus_[id].store(cpu, std::memory_order_relaxed);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_threads_) {
            arrived_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            return;
        }
        const bool is_shared = num_threads_ > 1 && shares(id, cpu);
        for (int spins = is_shared ? kSpins : 0; round_.load(std::memory_order_acquire) == round; ++spins) relax(spins);
    }

  private:
    // Says if another thread was last seen on this thread's core: it needs that core to go on.
    bool shares(int id, int cpu) const {
        for (int i = 0; i < num_threads_; ++i)
            if (i != id && cpu >= 0 && cpus_[i].load(std::memory_order_relaxed) == cpu) return true;
        return false;
    }

    int num_threads_ = 1;
    std::vector<std::atomic<int>> cpus_ = std::vector<std::atomic<int>>(1);
    std::atomic<int> arrived_{0};
    std::atomic<int> round_{0};
};

// Threads that wait for work. Callers take turns by `turn`, which they hold from their first question
// for the number of threads on; a caller works as thread 0.
class Pool {
  public:
    ~Pool() { stop(); }

    void resize(int num_threads) {
        stop();
        num_threads_ = num_threads;
        barrier.reset(num_threads);
        is_closing_ = false;
        for (int i = 1; i < num_threads; ++i) threads_.emplace_back([this, i] { loop(i); });
    }

    int num_threads() const { return num_threads_; }

    void run(const std::function<void(int)>& work) {
        if (num_threads_ == 1) return work(0);
        {
            std::lock_guard<std::mutex> lock(mutex_);
            work_ = &work;
            num_running_.store(num_threads_ - 1, std::memory_order_relaxed);
            round_.fetch_add(1, std::memory_order_release);
        }
        wake_.notify_all();
        work(0);
        for (int spins = 0; num_running_.load(std::memory_order_acquire) > 0; ++spins) relax(spins);
    }

    std::mutex turn;
    Barrier barrier;

  private:
    void loop(int id) {
        int seen = 0;
        while (true) {
            for (int i = 0; i < kSpins && round_.load(std::memory_order_acquire) == seen; ++i) relax(i);
            {
                std::unique_lock<std::mutex> lock(mutex_);
                wake_.wait(lock, [&] { return round_.load() != seen || is_closing_; });
                if (is_closing_) return;
                seen = round_.load();
            }
            (*work_)(id);
            num_running_.fetch_sub(1, std::memory_order_release);
        }
    }

    void stop() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            is_closing_ = true;
            round_.store(0);
        }
        wake_.notify_all();
        for (auto& thread : threads_) thread.join();
        threads_.clear();
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<std::thread> threads_;
    const std::function<void(int)>* work_ = nullptr;
    std::atomic<int> num_running_{0};
    std::atomic<int> round_{0};
    bool is_closing_ = false;
    int num_threads_ = 1;
};

}  // namespace plait
