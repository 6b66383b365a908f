// Metrics: per-row losses in float32, and their exact sum in fixed point. See core.metrics.
#include "cpu/extremes.h"
#include "cpu/kernels.h"
#include "cpu/thread_pool.h"

#include <vector>

namespace torchgbdt {
namespace {

float row_loss(MetricKind metric, float residual) {
    return metric == MetricKind::squared_error ? squared_error_loss(residual)
                                               : absolute_error_loss(residual);
}

}  // namespace

// Layout: predictions (n_rows, n_columns), everything else (n_rows,).
// Grid:   one task per kTaskRows rows.
// Writes: each task the losses of its rows, each worker the largest it has seen.
LossExtremes compute_losses(MetricKind metric, const ObjectiveRows& rows, float* losses,
                            int n_threads) {
    const Blocks tasks = row_tasks(rows.n_rows);
    std::vector<LargestMagnitude> workers(worker_count(tasks.count(), n_threads));
    parallel_for(tasks.count(), n_threads, [&](std::int64_t task, int worker) {
        const std::int64_t begin = tasks.begin(task), end = tasks.end(task);
        for (std::int64_t row = begin; row < end; ++row) {
            const float prediction = rows.predictions[row * rows.n_columns];
            const float residual = squared_error_residual(prediction, rows.labels[row]);
            const float loss = row_loss(metric, residual);
            losses[row] = rows.weights == nullptr ? loss : weighted_loss(loss, rows.weights[row]);
        }
        workers[static_cast<std::size_t>(worker)].add(losses + begin, end - begin, 1);
    });
    LargestMagnitude largest;
    for (const LargestMagnitude& of_worker : workers) {
        largest.join(of_worker);
    }
    return {largest.value(), largest.all_finite()};
}

// Layout: losses (n_rows,).
// Grid:   one task per kTaskRows rows.
// Writes: each worker its own sum; the caller adds them.
std::int64_t sum_losses(const float* losses, std::int64_t n_rows, std::int32_t scale,
                        int n_threads) {
    const Blocks tasks = row_tasks(n_rows);
    std::vector<std::int64_t> sums(worker_count(tasks.count(), n_threads), 0);
    parallel_for(tasks.count(), n_threads, [&](std::int64_t task, int worker) {
        const float power = power_of_two(scale);
        std::int64_t sum = 0;
        for (std::int64_t row = tasks.begin(task); row < tasks.end(task); ++row) {
            sum += static_cast<std::int64_t>(round_half_even(losses[row] * power));
        }
        sums[static_cast<std::size_t>(worker)] += sum;
    });
    std::int64_t total = 0;
    for (const std::int64_t sum : sums) {
        total += sum;
    }
    return total;
}

}  // namespace torchgbdt
