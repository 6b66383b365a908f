#include "cpu/own_stretches.h"
#include "tests/check.h"

#include <atomic>
#include <vector>

using namespace torchgbdt;

TEST(each_task_is_run_once) {
    for (const int n_threads : {1, 2, 3, 7}) {
        for (const std::int64_t n_tasks : {0, 1, 2, 5, 1000}) {
            std::vector<std::atomic<int>> runs(static_cast<std::size_t>(n_tasks));
            parallel_for_stretches(n_tasks, n_threads, [&](std::int64_t task, int) {
                ++runs[static_cast<std::size_t>(task)];
            });
            for (const std::atomic<int>& count : runs) {
                CHECK(count == 1);
            }
        }
    }
}

TEST(workers_begin_with_their_own_stretches) {
    OwnStretches stretches(10, 3);
    CHECK(stretches.take(2) == 6);
    CHECK(stretches.take(0) == 0);
    CHECK(stretches.take(2) == 7);
    CHECK(stretches.take(1) == 3);
}

TEST(a_worker_that_is_done_takes_the_tasks_of_others) {
    OwnStretches stretches(5, 2);
    std::vector<std::int64_t> taken;
    for (int i = 0; i < 5; ++i) {
        taken.push_back(stretches.take(1));
    }
    CHECK((taken == std::vector<std::int64_t>{2, 3, 4, 0, 1}));
}

TEST_MAIN()
