// Gradients and Hessians in float32. The definition is core.objectives.
#include "cpu/extremes.h"
#include "cpu/float_environment.h"
#include "cpu/kernels.h"
#include "cpu/own_stretches.h"
#include "cpu/row_blocks.h"

#include <algorithm>
#include <vector>

namespace torchgbdt {
namespace {

// What one worker has seen of one output.
struct Seen {
    LargestMagnitude gradients;
    LargestMagnitude hessians;
    Smallest smallest_hessian;

    void add_hessians(const float* numbers, std::int64_t count, std::int64_t stride) {
        hessians.add(numbers, count, stride);
        smallest_hessian.add(numbers, count, stride);
    }

    void join(const Seen& other) {
        gradients.join(other.gradients);
        hessians.join(other.hessians);
        smallest_hessian.join(other.smallest_hessian);
    }
};

GradientExtremes extremes_of(const std::vector<Seen>& workers, std::int64_t n_rows) {
    const DefaultFloatEnvironment environment;
    Seen all;
    for (const Seen& seen : workers) {
        all.join(seen);
    }
    return {all.gradients.value(), all.hessians.value(),
            n_rows == 0 ? 0.0f : all.smallest_hessian.value(),
            all.gradients.all_finite() && all.hessians.all_finite()};
}

// Each writes the gradients and Hessians of a block before weights: g and h, from predictions x.

void squared_error_gradients(const RowBlock& block, const FloatBlock& x, float* g, float* h) {
    const float* labels = block.rows.labels + block.begin;
    for (std::int64_t i = 0; i < block.count; ++i) {
        g[i] = squared_error_residual(x[i], labels[i]);
    }
    if (h != nullptr) {
        std::fill_n(h, block.count, 1.0f);
    }
}

void logistic_gradients(const RowBlock& block, const FloatBlock& x, float* g, float* h) {
    const float* labels = block.rows.labels + block.begin;
    for (std::int64_t i = 0; i < block.count; ++i) {
        const GradientAndHessian both = logistic_gradient(x[i], labels[i]);
        g[i] = both.gradient;
        h[i] = both.hessian;
    }
}

void softmax_gradients(const RowBlock& block, const FloatBlock& x, std::int64_t output,
                       const float* terms, float* g, float* h) {
    const float* labels = block.rows.labels + block.begin;
    const float* largest = terms + block.begin;
    const float* rest = terms + block.rows.n_rows + block.begin;
    const auto code = static_cast<float>(output);
    for (std::int64_t i = 0; i < block.count; ++i) {
        const bool is_label = labels[i] == code;
        const GradientAndHessian both = softmax_gradient(x[i], largest[i], rest[i], is_label);
        g[i] = both.gradient;
        h[i] = both.hessian;
    }
}

}  // namespace

// Layout: predictions (n_rows, n_columns), softmax_terms (2, n_rows), everything else (n_rows,).
// Grid:   one task per kTaskRows rows.
// Writes: each task the gradients and Hessians of its rows, each worker what it has seen.
GradientExtremes compute_gradients(ObjectiveKind objective, const ObjectiveRows& rows,
                                   std::int64_t output, const float* softmax_terms,
                                   float* gradients, float* hessians, int n_threads) {
    const float one = 1.0f;
    const Blocks tasks = row_tasks(rows.n_rows);
    std::vector<Seen> workers(worker_count(tasks.count(), n_threads));
    parallel_for_stretches(tasks.count(), n_threads, [&](std::int64_t task, int worker) {
        const std::int64_t begin = tasks.begin(task), end = tasks.end(task);
        for_each_block(rows, begin, end, [&](const RowBlock& block) {
            FloatBlock x;
            read_predictions(block, output, x);
            float* g = gradients + block.begin;
            float* h = hessians == nullptr ? nullptr : hessians + block.begin;
            switch (objective) {
                case ObjectiveKind::squared_error:
                    squared_error_gradients(block, x, g, h);
                    break;
                case ObjectiveKind::logistic:
                    logistic_gradients(block, x, g, h);
                    break;
                case ObjectiveKind::softmax:
                    softmax_gradients(block, x, output, softmax_terms, g, h);
                    break;
            }
            multiply_by_weights(block, g);
            if (h != nullptr) {
                multiply_by_weights(block, h);
            }
        });
        workers[worker].gradients.add(gradients + begin, end - begin, 1);
        if (hessians == nullptr) {
            workers[worker].add_hessians(&one, 1, 1);
        } else {
            workers[worker].add_hessians(hessians + begin, end - begin, 1);
        }
    });
    return extremes_of(workers, rows.n_rows);
}

// Layout: all arrays (n_rows, n_outputs); extremes (n_outputs,).
// Grid:   one task per kTaskRows rows.
// Writes: each task the gradients and Hessians of its rows, each worker what it has seen.
void load_gradients(const float* given_gradients, const float* given_hessians, std::int64_t n_rows,
                    int n_outputs, float* gradients, float* hessians, GradientExtremes* extremes,
                    int n_threads) {
    const Blocks tasks = row_tasks(n_rows);
    const std::vector<Seen> nothing(worker_count(tasks.count(), n_threads));
    std::vector<std::vector<Seen>> seen(static_cast<std::size_t>(n_outputs), nothing);
    parallel_for_stretches(tasks.count(), n_threads, [&](std::int64_t task, int worker) {
        const std::int64_t first = tasks.begin(task) * n_outputs;
        const std::int64_t end = tasks.end(task) * n_outputs;
        for (std::int64_t i = first; i < end; ++i) {
            gradients[i] = flush_subnormals(given_gradients[i]);
        }
        for (std::int64_t i = first; hessians != nullptr && i < end; ++i) {
            hessians[i] = flush_subnormals(given_hessians[i]);
        }
        const float* measured = hessians != nullptr ? hessians : given_hessians;  // all 1 otherwise
        const std::int64_t count = tasks.end(task) - tasks.begin(task);
        for (int output = 0; output < n_outputs; ++output) {
            Seen& of_output = seen[output][worker];
            of_output.gradients.add(gradients + first + output, count, n_outputs);
            of_output.add_hessians(measured + first + output, count, n_outputs);
        }
    });
    for (int output = 0; output < n_outputs; ++output) {
        extremes[output] = extremes_of(seen[output], n_rows);
    }
}

}  // namespace torchgbdt
