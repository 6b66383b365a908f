// The one pool of threads of this process.
#pragma once

#include <cstdint>
#include <functional>

namespace torchgbdt {

// Runs run(task, worker) for every task in 0..n_tasks-1, on at most n_threads threads at a time.
//
// - The caller takes part as worker 0; helpers are workers 1..n_threads-1. No two threads share a
//   worker number within one call, so it may index scratch memory.
// - Tasks are handed out one by one in ascending order; which worker gets one is not determined.
// - It returns when all tasks are done. If one throws, tasks that have not begun are dropped and
// the
//   first exception is thrown here.
// - Every task runs in the default floating-point environment.
// - Any thread may call it at any time, also from inside a task, in a forked child, and while other
//   calls are running. Progress never depends on helpers: if the machine is busy, or cannot start
//   threads, the caller does the work.
void parallel_for(std::int64_t n_tasks, int n_threads,
                  const std::function<void(std::int64_t task, int worker)>& run);

// Threads that the pool has started; for tests.
int pool_size();

// [begin, end) of each of the pieces that a range of n items is cut into, at most `size` items
// each.
struct Blocks {
    std::int64_t n_items;
    std::int64_t size;

    std::int64_t count() const { return (n_items + size - 1) / size; }
    std::int64_t begin(std::int64_t block) const { return block * size; }
    std::int64_t end(std::int64_t block) const {
        return block * size + size < n_items ? block * size + size : n_items;
    }
};

}  // namespace torchgbdt
