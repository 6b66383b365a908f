// Metrics: per-row losses in float32, and their exact sum in fixed point. See core.metrics.
#include "cpu/extremes.h"
#include "cpu/kernels.h"
#include "cpu/row_blocks.h"
#include "cpu/thread_pool.h"

#include <vector>

namespace torchgbdt {
namespace {

using RowLoss = float (*)(float x, float label);

// Each writes the losses of a block before weights.

template <RowLoss kLoss>
void losses_of_one_column(const RowBlock& block, float* losses) {
    const float* labels = block.rows.labels + block.begin;
    FloatBlock x;
    read_predictions(block, 0, x);
    for (std::int64_t i = 0; i < block.count; ++i) {
        losses[i] = kLoss(x[i], labels[i]);
    }
}

// A label that is no class gives NaN.
void softmax_losses(const RowBlock& block, float* losses) {
    const float* labels = block.rows.labels + block.begin;
    SoftmaxBlock terms;
    FloatBlock x, own;
    read_softmax_terms(block, terms);
    own.fill(not_a_number());
    for (std::int64_t column = 0; column < block.rows.n_columns; ++column) {
        const auto code = static_cast<float>(column);
        read_predictions(block, column, x);
        for (std::int64_t i = 0; i < block.count; ++i) {
            own[i] = labels[i] == code ? x[i] : own[i];
        }
    }
    for (std::int64_t i = 0; i < block.count; ++i) {
        losses[i] = softmax_loss(terms.largest[i], terms.rest[i], own[i]);
    }
}

// The predicted class is the first that has the largest prediction.
void softmax_errors(const RowBlock& block, float* losses) {
    const float* labels = block.rows.labels + block.begin;
    FloatBlock x, nan;
    SoftmaxBlock terms;
    find_largest(block, terms);
    nan.fill(0.0f);
    for (std::int64_t column = 0; column < block.rows.n_columns; ++column) {
        read_predictions(block, column, x);
        for (std::int64_t i = 0; i < block.count; ++i) {
            nan[i] = x[i] == x[i] ? nan[i] : x[i];
        }
    }
    for (std::int64_t i = 0; i < block.count; ++i) {
        losses[i] = softmax_error(terms.column[i], labels[i], nan[i]);
    }
}

void losses_of_block(MetricKind metric, const RowBlock& block, float* losses) {
    switch (metric) {
        case MetricKind::squared_error:
            return losses_of_one_column<squared_error_loss>(block, losses);
        case MetricKind::absolute_error:
            return losses_of_one_column<absolute_error_loss>(block, losses);
        case MetricKind::logistic_loss:
            return losses_of_one_column<logistic_loss>(block, losses);
        case MetricKind::logistic_error:
            return losses_of_one_column<logistic_error>(block, losses);
        case MetricKind::softmax_loss:
            return softmax_losses(block, losses);
        case MetricKind::softmax_error:
            return softmax_errors(block, losses);
    }
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
        for_each_block(rows, begin, end, [&](const RowBlock& block) {
            losses_of_block(metric, block, losses + block.begin);
            multiply_by_weights(block, losses + block.begin);
        });
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
