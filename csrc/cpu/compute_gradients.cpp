// Gradients and Hessians in float32. The definition is core.objectives.
#include "cpu/kernels.h"
#include "cpu/thread_pool.h"

#include <algorithm>
#include <vector>

namespace torchgbdt {
namespace {

constexpr std::int64_t kTaskRows = 16384;

// Extremes of some rows; joined in any order they give the same result.
class Collector {
  public:
    void add(float gradient, float hessian) {
        if (!is_finite(gradient) || !is_finite(hessian)) {
            extremes_.finite = false;
            return;
        }
        add_finite(magnitude(gradient), hessian, hessian);
    }

    void join(const Collector& other) {
        extremes_.finite &= other.extremes_.finite;
        if (!other.is_empty_) {
            add_finite(other.extremes_.largest_gradient, other.extremes_.largest_hessian,
                       other.extremes_.smallest_hessian);
        }
    }

    const GradientExtremes& extremes() const { return extremes_; }

  private:
    void add_finite(float largest_gradient, float largest_hessian, float smallest_hessian) {
        GradientExtremes& e = extremes_;
        e.largest_gradient = std::max(e.largest_gradient, largest_gradient);
        e.largest_hessian = std::max(e.largest_hessian, largest_hessian);
        e.smallest_hessian =
            is_empty_ ? smallest_hessian : std::min(e.smallest_hessian, smallest_hessian);
        is_empty_ = false;
    }

    GradientExtremes extremes_;
    bool is_empty_ = true;
};

}  // namespace

// Layout: predictions (n_rows, n_columns), everything else (n_rows,).
// Grid:   one task per 16,384 rows.
// Writes: each task the gradients and Hessians of its rows, each worker its own extremes.
GradientExtremes compute_gradients(ObjectiveKind objective, const ObjectiveRows& rows,
                                   float* gradients, float* hessians, int n_threads) {
    (void)objective;  // one so far: squared error
    const Blocks tasks{rows.n_rows, kTaskRows};
    std::vector<Collector> collectors(static_cast<std::size_t>(n_threads));
    parallel_for(tasks.count(), n_threads, [&](std::int64_t task, int worker) {
        Collector collector;
        for (std::int64_t row = tasks.begin(task); row < tasks.end(task); ++row) {
            const float prediction = rows.predictions[row * rows.n_columns];
            const float residual = squared_error_residual(prediction, rows.labels[row]);
            const float weight = rows.weights == nullptr ? 1.0f : rows.weights[row];
            gradients[row] = squared_error_gradient(residual, weight);
            if (hessians != nullptr) {
                hessians[row] = weight;
            }
            collector.add(gradients[row], weight);
        }
        collectors[worker].join(collector);
    });
    for (const Collector& collector : collectors) {
        collectors[0].join(collector);
    }
    return collectors[0].extremes();
}

// Layout: all arrays (n_rows, n_outputs); extremes (n_outputs,).
// Grid:   one task per 16,384 rows.
// Writes: each task the gradients and Hessians of its rows, each worker its own extremes.
void load_gradients(const float* given_gradients, const float* given_hessians, std::int64_t n_rows,
                    int n_outputs, float* gradients, float* hessians, GradientExtremes* extremes,
                    int n_threads) {
    const Blocks tasks{n_rows, kTaskRows};
    std::vector<std::vector<Collector>> collectors(
        static_cast<std::size_t>(n_threads),
        std::vector<Collector>(static_cast<std::size_t>(n_outputs)));
    parallel_for(tasks.count(), n_threads, [&](std::int64_t task, int worker) {
        for (std::int64_t row = tasks.begin(task); row < tasks.end(task); ++row) {
            for (int output = 0; output < n_outputs; ++output) {
                const std::int64_t i = row * n_outputs + output;
                const float hessian = flush_subnormals(given_hessians[i]);
                gradients[i] = flush_subnormals(given_gradients[i]);
                if (hessians != nullptr) {
                    hessians[i] = hessian;
                }
                collectors[worker][output].add(gradients[i], hessian);
            }
        }
    });
    for (int output = 0; output < n_outputs; ++output) {
        Collector all;
        for (const std::vector<Collector>& of_worker : collectors) {
            all.join(of_worker[output]);
        }
        extremes[output] = all.extremes();
    }
}

}  // namespace torchgbdt
