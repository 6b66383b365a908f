// parallel_for in which each worker goes through neighbouring tasks, as long as there are some.
#pragma once

#include "cpu/thread_pool.h"

#include <atomic>
#include <vector>

namespace torchgbdt {

// The tasks of one call: a stretch for each worker. Processors fetch memory beyond where they
// write; if that is where another one writes, both wait for each other. In stretches their places
// lie far apart, and those of one call are mostly those of the next, so that much is still in the
// cache of the processor that wants it.
class OwnStretches {
  public:
    OwnStretches(std::int64_t n_tasks, int n_threads)
        : stretches_(worker_count(n_tasks, n_threads)) {
        const auto n_stretches = static_cast<std::int64_t>(stretches_.size());
        for (std::int64_t i = 0; i < n_stretches; ++i) {
            stretches_[static_cast<std::size_t>(i)].next = n_tasks * i / n_stretches;
            stretches_[static_cast<std::size_t>(i)].end = n_tasks * (i + 1) / n_stretches;
        }
    }

    // The next task of this worker, or of the first one after it that has some left. At most as
    // many calls as there are tasks: another would look for one without end.
    std::int64_t take(int worker) {
        for (auto i = static_cast<std::size_t>(worker);;
             i = i + 1 < stretches_.size() ? i + 1 : 0) {
            const std::int64_t task = stretches_[i].next.fetch_add(1, std::memory_order_relaxed);
            if (task < stretches_[i].end) {
                return task;
            }
        }
    }

  private:
    struct alignas(64) Stretch {  // a cache line each
        std::atomic<std::int64_t> next{0};
        std::int64_t end = 0;
    };
    std::vector<Stretch> stretches_;
};

// As parallel_for; only which worker gets which task, and in which order, is another.
template <typename Run>
void parallel_for_stretches(std::int64_t n_tasks, int n_threads, const Run& run) {
    OwnStretches stretches(n_tasks, n_threads);
    parallel_for(n_tasks, n_threads,
                 [&](std::int64_t, int worker) { run(stretches.take(worker), worker); });
}

}  // namespace torchgbdt
