#include "cpu/thread_pool.h"

#include "cpu/float_environment.h"

#include <algorithm>
#include <atomic>
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

// One call of parallel_for; lives on the stack of its caller.
struct Job {
    Job(std::int64_t n_tasks, int n_helpers, const Run& run)
        : n_tasks(n_tasks), n_helpers(n_helpers), run(run) {}

    const std::int64_t n_tasks;
    const int n_helpers;
    const Run& run;
    std::atomic<std::int64_t> next_task{0};
    // The pool's mutex guards the rest.
    int joined = 0;
    int active = 0;
    std::exception_ptr error;
    std::condition_variable all_left;
};

class ThreadPool {
  public:
    void run(Job& job) {
        open(job);
        work_on(job, 0);
        std::unique_lock<std::mutex> lock(mutex_);
        close(job);
        job.all_left.wait(lock, [&] { return job.active == 0; });
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
        bool wakes_all = false;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (stopping_) {
                return;
            }
            open_.push_back(&job);
            n_wanted_ += job.n_helpers;
            grow();
            wakes_all = job.n_helpers >= n_idle_;
        }
        if (wakes_all) {
            work_available_.notify_all();
            return;
        }
        for (int helper = 0; helper < job.n_helpers; ++helper) {
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
            if (--job.active == 0) {
                job.all_left.notify_one();  // under the lock: the job is gone once it is released
            }
        }
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
    std::deque<Job*> open_;  // jobs that still accept helpers
    std::vector<std::thread> threads_;
    int n_idle_ = 0;
    int n_wanted_ = 0;  // helpers that open jobs still accept
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
