// exp, log and log1p of many numbers, so that Python can compare them with their twins.
#include "shared/portable_math.h"

#include "cpu/kernels.h"
#include "cpu/thread_pool.h"

namespace torchgbdt {
namespace {

template <float (*kFunction)(float)>
void apply(const float* x, std::int64_t begin, std::int64_t end, float* results) {
    for (std::int64_t i = begin; i < end; ++i) {
        results[i] = kFunction(x[i]);
    }
}

}  // namespace

// Layout: x, results (count,).
// Grid:   one task per kTaskRows numbers.
// Writes: each task the results of its numbers.
void portable_math(PortableFunction function, const float* x, std::int64_t count, float* results,
                   int n_threads) {
    const Blocks tasks = row_tasks(count);
    parallel_for(tasks.count(), n_threads, [&](std::int64_t task, int) {
        const std::int64_t begin = tasks.begin(task), end = tasks.end(task);
        switch (function) {
            case PortableFunction::exp:
                return apply<portable_exp>(x, begin, end, results);
            case PortableFunction::log:
                return apply<portable_log>(x, begin, end, results);
            case PortableFunction::log1p:
                return apply<portable_log1p>(x, begin, end, results);
        }
    });
}

}  // namespace torchgbdt
