#include "cpu/thread_pool.h"
#include "tests/check.h"

#include <atomic>
#include <chrono>
#include <ctime>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace torchgbdt;

namespace {

// Whether parallel_for runs each of n_tasks tasks exactly once.
bool runs_each_task_once(std::int64_t n_tasks, int n_threads) {
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(n_tasks));
    parallel_for(n_tasks, n_threads,
                 [&](std::int64_t task, int) { ++runs[static_cast<std::size_t>(task)]; });
    for (const std::atomic<int>& count : runs) {
        if (count != 1) {
            return false;
        }
    }
    return true;
}

std::string message_of_failing_tasks(int n_threads) {
    try {
        parallel_for(1000, n_threads, [](std::int64_t task, int) {
            if (task % 10 == 7) {
                throw std::runtime_error("task failed");
            }
        });
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST(each_task_runs_once_with_any_number_of_threads) {
    for (const int n_threads : {1, 2, 3, 7, 40}) {
        for (const int n_tasks : {0, 1, 2, 5, 1000}) {
            CHECK(runs_each_task_once(n_tasks, n_threads));
        }
    }
}

TEST(the_pool_grows_to_the_threads_that_are_asked_for) {
    parallel_for(100, 9, [](std::int64_t, int) {});
    CHECK(pool_size() >= 8);
    const int before = pool_size();
    parallel_for(100, 2, [](std::int64_t, int) {});
    CHECK_EQUAL(pool_size(), before);
}

TEST(no_two_threads_share_a_worker_number) {
    const int n_threads = 7;
    std::vector<std::atomic<int>> busy(n_threads);
    std::atomic<int> collisions{0};
    parallel_for(2000, n_threads, [&](std::int64_t, int worker) {
        collisions += busy[static_cast<std::size_t>(worker)].exchange(1);
        std::this_thread::yield();
        busy[static_cast<std::size_t>(worker)] = 0;
    });
    CHECK_EQUAL(collisions.load(), 0);
}

TEST(an_exception_reaches_the_caller_and_the_pool_works_on) {
    for (const int n_threads : {1, 2, 7}) {
        CHECK_EQUAL(message_of_failing_tasks(n_threads) == "task failed", true);
        CHECK(runs_each_task_once(100, n_threads));
    }
}

TEST(tasks_may_start_tasks) {
    std::atomic<std::int64_t> sum{0};
    parallel_for(8, 3, [&](std::int64_t outer, int) {
        parallel_for(8, 3, [&](std::int64_t inner, int) { sum += 8 * outer + inner; });
    });
    CHECK_EQUAL(sum.load(), 63 * 64 / 2);
}

TEST(idle_helpers_sleep) {
    const auto pause = [](std::int64_t, int) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));  // so that helpers take part
    };
    parallel_for(8, 4, pause);
    const std::clock_t before = std::clock();  // of all threads
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    CHECK(std::clock() - before < CLOCKS_PER_SEC / 20);
}

TEST(several_threads_may_call_at_once) {
    std::atomic<int> failures{0};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 4; ++caller) {
        callers.emplace_back([&, caller] {
            for (int i = 0; i < 200; ++i) {
                failures += runs_each_task_once(20, 1 + (caller + i) % 4) ? 0 : 1;
            }
        });
    }
    for (std::thread& caller : callers) {
        caller.join();
    }
    CHECK_EQUAL(failures.load(), 0);
}

TEST(helpers_are_woken_although_more_of_them_are_idle) {
    parallel_for(100, 9, [](std::int64_t, int) {});
    for (const int n_threads : {2, 4, 9}) {
        std::atomic<int> n_there{0}, n_alone{0};
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        parallel_for(n_threads, n_threads, [&](std::int64_t, int) {
            ++n_there;  // each task waits until all of them are under way
            while (n_there < n_threads && std::chrono::steady_clock::now() < end) {
                std::this_thread::yield();
            }
            n_alone += n_there < n_threads ? 1 : 0;
        });
        CHECK_EQUAL(n_alone.load(), 0);
    }
}

// Only Linux counts for a single thread; a machine with one processor has no helper that spins.
#if defined(RUSAGE_THREAD)

namespace {

// How often this thread has gone to sleep so far, and how often it was made to pause by others.
rusage usage_of_this_thread() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage;
}

}  // namespace

TEST(a_helper_that_looks_out_for_work_begins_the_next_job_without_sleeping) {
    if (std::thread::hardware_concurrency() < 2) {
        return;
    }
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end = Clock::now() + std::chrono::seconds(10);
    const long pauses = usage_of_this_thread().ru_nivcsw;
    std::atomic<int> n_awake{0};  // jobs in a row
    int n_jobs = 0;
    for (; (n_jobs < 200 || n_awake < 10) && Clock::now() < end; ++n_jobs) {
        std::atomic<int> n_there{0};
        parallel_for(2, 2, [&](std::int64_t, int worker) {
            thread_local long sleeps_until_last_job = -1;
            if (worker > 0) {
                const bool slept = usage_of_this_thread().ru_nvcsw != sleeps_until_last_job;
                n_awake = slept ? 0 : n_awake + 1;
            }
            ++n_there;  // both tasks wait for each other: the helper must come, and unwoken
            while (n_there < 2 && Clock::now() < end) {
                std::this_thread::yield();
            }
            sleeps_until_last_job = usage_of_this_thread().ru_nvcsw;
        });
        // long enough for a helper to fall asleep that does not look out
        const Clock::time_point last = Clock::now();
        while (Clock::now() - last < std::chrono::microseconds(30)) {
        }
    }
    // Where others want the processors, helpers give way: there this says nothing.
    const bool is_busy = usage_of_this_thread().ru_nivcsw - pauses > n_jobs / 10;
    CHECK(n_awake >= 10 || is_busy);
}

#endif

TEST(there_are_no_more_workers_than_threads_or_tasks) {
    const int most = std::numeric_limits<int>::max();
    CHECK_EQUAL(worker_count(0, 4), 1u);
    CHECK_EQUAL(worker_count(3, 4), 3u);
    CHECK_EQUAL(worker_count(5, 4), 4u);
    CHECK_EQUAL(worker_count(std::int64_t{1} << 40, most), static_cast<std::size_t>(most));
}

TEST(a_thread_is_worth_a_share_of_the_work) {
    CHECK_EQUAL(threads_worth(0, 100, 8), 1);
    CHECK_EQUAL(threads_worth(99, 100, 8), 1);
    CHECK_EQUAL(threads_worth(250, 100, 8), 3);
    CHECK_EQUAL(threads_worth(std::int64_t{1} << 40, 100, 8), 8);
}

TEST(blocks_cover_the_range_without_overlap) {
    for (const std::int64_t n_items : {0, 1, 9, 10, 11, 100}) {
        const Blocks blocks{n_items, 10};
        std::int64_t next = 0;
        for (std::int64_t block = 0; block < blocks.count(); ++block) {
            CHECK_EQUAL(blocks.begin(block), next);
            CHECK(blocks.end(block) > next && blocks.end(block) <= next + 10);
            next = blocks.end(block);
        }
        CHECK_EQUAL(next, n_items);
    }
}

// ThreadSanitizer cannot follow a child that starts threads after a fork.
#if !defined(__SANITIZE_THREAD__)

TEST(a_forked_child_has_threads_of_its_own) {
    CHECK(runs_each_task_once(100, 3));  // the parent's pool has threads
    for (int i = 0; i < 5; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(pool_size() == 0 && runs_each_task_once(100, 3) && pool_size() == 2 ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        CHECK_EQUAL(status, 0);
        CHECK(runs_each_task_once(100, 3));
    }
}

TEST(a_fork_in_the_middle_of_another_threads_work_does_no_harm) {
    std::atomic<bool> stop{false};
    std::thread other([&] {
        while (!stop) {
            runs_each_task_once(50, 3);
        }
    });
    for (int i = 0; i < 20; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(runs_each_task_once(100, 3) ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        CHECK_EQUAL(status, 0);
    }
    stop = true;
    other.join();
}

#endif

TEST_MAIN()
