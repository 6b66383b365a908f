#include "cpu/thread_pool.h"

#include "cpu/float_environment.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace torchgbdt {
namespace {

using Run = std::function<void(std::int64_t task, int worker)>;
constexpr std::size_t kMaxThreads = 1024;  // a limit against absurd settings, not a tuning

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Short waits without sleeping: a woken thread begins tens of microseconds later, as long as the
// tasks of small data take. Where others want the processor, to spin is to take their time, and
// then one's own: it ends when this thread was made to pause, and nobody tries again for a while.
class Spinner {
  public:
    // Waits for what another thread is about to do; false if it was not done in time.
    template <typename Condition>
    bool wait_for(const Condition& condition) {
        const Clock::time_point start = Clock::now();
        if (kMaxSpinners == 0 || start.time_since_epoch().count() < resting_until_) {
            return condition();
        }
        Clock::time_point last = start;
        while (last - start < kLongest) {
            for (int i = 0; i < kPauses; ++i) {
                if (condition()) {
                    return true;
                }
                pause();
            }
            const Clock::time_point now = Clock::now();
            if (now - last > kInterruption) {
                resting_until_ = (now + kRest).time_since_epoch().count();
                break;
            }
            last = now;
        }
        return condition();
    }

    // Idle helpers that spin; further ones would keep the processors from those that work. Callers
    // are not counted: while one waits its helpers work, and the one that is done first would find
    // its own place taken and go to sleep.
    inline static const int kMaxSpinners =
        std::max(0, static_cast<int>(std::thread::hardware_concurrency()) - 1);

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::microseconds kLongest{100};
    static constexpr std::chrono::microseconds kInterruption{20};  // kPauses take less than 1
    static constexpr std::chrono::milliseconds kRest{2};
    static constexpr int kPauses = 16;

    std::atomic<Clock::rep> resting_until_{0};
};

// One call of parallel_for; lives on the stack of its caller.
struct Job {
    Job(std::int64_t n_tasks, int n_helpers, const Run& run)
        : n_tasks(n_tasks), n_helpers(n_helpers), run(run) {}

    const std::int64_t n_tasks;
    const int n_helpers;
    const Run& run;
    std::atomic<std::int64_t> next_task{0};
    std::atomic<int> active{0};  // helpers; changed under the pool's mutex, which guards the rest
    int joined = 0;
    std::exception_ptr error;
};

class ThreadPool {
  public:
    void run(Job& job) {
        open(job);
        work_on(job, 0);
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            close(job);
        }
        const auto all_left = [&] { return job.active == 0; };  // nobody joins a closed job
        if (!spinner_.wait_for(all_left)) {
            std::unique_lock<std::mutex> lock(mutex_);
            ++n_waiting_;
            helper_left_.wait(lock, all_left);
            --n_waiting_;
        }
        if (job.error) {
            std::rethrow_exception(job.error);
        }
    }

    // Joins all threads. Later jobs are done by their callers alone.
    void stop() {
        std::vector<std::thread> threads;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            stopping_ = true;
            threads.swap(threads_);
        }
        ++n_opened_;
        work_available_.notify_all();
        for (std::thread& thread : threads) {
            thread.join();
        }
    }

    int size() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return static_cast<int>(threads_.size());
    }

  private:
    void open(Job& job) {
        int n_asleep = 0, n_woken = 0;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (stopping_) {
                return;
            }
            open_.push_back(&job);
            n_wanted_ += job.n_helpers;
            grow();
            n_asleep = n_idle_ - n_spinning_;
            n_woken = n_wanted_ - n_spinning_;
        }
        ++n_opened_;  // after the mutex is free: helpers that spin will take it at once
        if (n_woken >= n_asleep && n_asleep > 0) {
            work_available_.notify_all();
            return;
        }
        for (int helper = 0; helper < n_woken; ++helper) {
            work_available_.notify_one();
        }
    }

    // Takes the job off the list of those that still accept helpers, if it is there.
    void close(Job& job) {
        const auto place = std::find(open_.begin(), open_.end(), &job);
        if (place != open_.end()) {
            open_.erase(place);
            n_wanted_ -= job.n_helpers - job.joined;
        }
    }

    // Starts threads until every helper that is wanted could be an idle one.
    void grow() {
        while (n_idle_ < n_wanted_ && threads_.size() < kMaxThreads) {
            try {
                threads_.emplace_back([this] { help(); });
            } catch (...) {
                return;  // no thread or no memory to be had: the callers do the work
            }
            ++n_idle_;
        }
    }

    // The life of a helper.
    void help() {
        const DefaultFloatEnvironment environment;
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            if (!stopping_ && open_.empty() && n_spinning_ < Spinner::kMaxSpinners) {
                spin_for_work(lock);
            }
            work_available_.wait(lock, [&] { return stopping_ || !open_.empty(); });
            if (stopping_) {
                return;
            }
            Job& job = *open_.front();
            const int worker = ++job.joined;
            ++job.active;
            --n_wanted_;
            --n_idle_;
            if (job.joined == job.n_helpers) {
                open_.pop_front();
            }
            lock.unlock();
            work_on(job, worker);
            lock.lock();
            ++n_idle_;
            if (--job.active == 0 && n_waiting_ > 0) {  // the job may be gone from here on
                helper_left_.notify_all();
            }
        }
    }

    // Gives the next job the chance to begin without a thread having to be woken.
    void spin_for_work(std::unique_lock<std::mutex>& lock) {
        const std::uint64_t seen = n_opened_;
        ++n_spinning_;
        lock.unlock();
        spinner_.wait_for([&] { return n_opened_ != seen; });
        lock.lock();
        --n_spinning_;
    }

    void work_on(Job& job, int worker) {
        try {
            for (;;) {
                const std::int64_t task = job.next_task.fetch_add(1, std::memory_order_relaxed);
                if (task >= job.n_tasks) {
                    return;
                }
                job.run(task, worker);
            }
        } catch (...) {
            job.next_task.store(job.n_tasks, std::memory_order_relaxed);
            const std::lock_guard<std::mutex> lock(mutex_);
            if (!job.error) {
                job.error = std::current_exception();
            }
        }
    }

    std::mutex mutex_;
    std::condition_variable work_available_;
    std::condition_variable helper_left_;
    Spinner spinner_;
    std::atomic<std::uint64_t> n_opened_{0};  // jobs so far
    std::deque<Job*> open_;                   // jobs that still accept helpers
    std::vector<std::thread> threads_;
    int n_idle_ = 0;
    int n_wanted_ = 0;    // helpers that open jobs still accept
    int n_spinning_ = 0;  // idle helpers that do not sleep yet
    int n_waiting_ = 0;   // callers that sleep until their helpers have left
    bool stopping_ = false;
};

// Never freed: at exit a thread may still be in a job, and a forked child inherits the parent's
// pool in whatever state its lock was in. The child forgets it and starts afresh.
std::atomic<ThreadPool*> the_pool{nullptr};

ThreadPool& pool() {
    ThreadPool* current = the_pool.load(std::memory_order_acquire);
    if (current == nullptr) {
        auto* created = new ThreadPool;
        if (the_pool.compare_exchange_strong(current, created, std::memory_order_acq_rel)) {
            return *created;
        }
        delete created;  // another thread was faster; this one has no threads yet
    }
    return *current;
}

struct ProcessHooks {
    ProcessHooks() {
#if defined(__unix__) || defined(__APPLE__)
        pthread_atfork(nullptr, nullptr, [] { the_pool.store(nullptr); });
#endif
    }
    ~ProcessHooks() {
        if (ThreadPool* current = the_pool.load()) {
            current->stop();
        }
    }
};
const ProcessHooks process_hooks;

}  // namespace

void parallel_for(std::int64_t n_tasks, int n_threads, const Run& run) {
    const std::size_t n_workers = worker_count(n_tasks, n_threads);
    const DefaultFloatEnvironment environment;
    if (n_workers == 1) {
        for (std::int64_t task = 0; task < n_tasks; ++task) {
            run(task, 0);
        }
        return;
    }
    Job job(n_tasks, static_cast<int>(n_workers) - 1, run);
    pool().run(job);
}

int pool_size() {
    return pool().size();
}

}  // namespace torchgbdt
