// The one pool of threads of this process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace torchgbdt {

// Runs run(task, worker) for every task in 0..n_tasks-1, on at most n_threads threads at a time.
//
// - The caller takes part as worker 0; helpers are workers 1..n_threads-1. No two threads share a
//   worker number within one call, so it may index scratch memory.
// - Tasks are handed out one by one in ascending order; which worker gets one is not determined.
// - It returns when all tasks are done. If one throws, tasks that have not begun are dropped, and
//   the first exception is thrown here.
// - Every task runs in the default floating-point environment.
// - Any thread may call it at any time, also from inside a task, in a forked child, and while other
//   calls are running. Progress never depends on helpers: if the machine is busy, or cannot start
//   threads, the caller does the work.
void parallel_for(std::int64_t n_tasks, int n_threads,
                  const std::function<void(std::int64_t task, int worker)>& run);

// Workers that parallel_for gives such tasks to, at least 1: the size of scratch memory per worker.
// There may be far more threads than tasks.
inline std::size_t worker_count(std::int64_t n_tasks, int n_threads) {
    return static_cast<std::size_t>(
        std::max<std::int64_t>(1, std::min<std::int64_t>(n_tasks, n_threads)));
}

// Threads that the pool has started; for tests.
int pool_size();

// n_threads, but at most one thread for each `share` of the work, whatever its unit is: a share
// that takes less than some 10 microseconds is not worth waking a thread for.
inline int threads_worth(std::int64_t work, std::int64_t share, int n_threads) {
    return static_cast<int>(std::min<std::int64_t>(work / share + 1, n_threads));
}

// [begin, end) of each of the pieces, of at most `size` items, that a range of n items is cut into.
struct Blocks {
    std::int64_t n_items;
    std::int64_t size;

    std::int64_t count() const { return (n_items + size - 1) / size; }
    std::int64_t begin(std::int64_t block) const { return block * size; }
    std::int64_t end(std::int64_t block) const {
        return block * size + size < n_items ? block * size + size : n_items;
    }
};

// Rows of one task in loops over rows: a few to tens of microseconds of work, much more than it
// costs to hand a task out, and few enough that what a task wrote is still in L1 when it reads it
// again.
constexpr std::int64_t kTaskRows = 4096;

inline Blocks row_tasks(std::int64_t n_rows) {
    return {n_rows, kTaskRows};
}

}  // namespace torchgbdt
