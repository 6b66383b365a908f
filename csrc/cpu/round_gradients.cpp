// Rounds gradients to fixed point, once per tree. The definition is core.fixed_point.
#include "cpu/kernels.h"
#include "cpu/thread_pool.h"

#include <vector>

namespace torchgbdt {
namespace {

constexpr std::int64_t kTaskRows = 16384;

}  // namespace

// Layout: gradients, hessians (n_rows, n_outputs); fixed_point (n_rows, words.count()).
// Grid:   one task per 16,384 rows.
// Writes: each task the fixed point of its rows, each worker its own totals; the caller joins them.
void round_gradients(const float* gradients, const float* hessians, std::int64_t n_rows,
                     const Words& words, const std::int64_t* scales, std::int32_t* fixed_point,
                     std::int64_t* totals, int n_threads) {
    const int n_words = words.count();
    const Blocks tasks{n_rows, kTaskRows};
    std::vector<std::vector<std::int64_t>> word_totals(static_cast<std::size_t>(n_threads));
    parallel_for(tasks.count(), n_threads, [&](std::int64_t task, int worker) {
        std::vector<std::int64_t>& sums = word_totals[worker];
        sums.resize(static_cast<std::size_t>(n_words));
        for (int output = 0; output < words.n_outputs; ++output) {
            const float gradient_power = power_of_two(static_cast<int32_t>(scales[2 * output]));
            const float hessian_power = power_of_two(static_cast<int32_t>(scales[2 * output + 1]));
            std::int64_t gradient_sum = 0;
            std::int64_t hessian_sum = 0;
            for (std::int64_t row = tasks.begin(task); row < tasks.end(task); ++row) {
                std::int32_t* fixed = fixed_point + row * n_words;
                const std::int64_t i = row * words.n_outputs + output;
                const std::int32_t gradient = round_gradient(gradients[i], gradient_power);
                fixed[words.gradient(output)] = gradient;
                gradient_sum += gradient;
                if (!words.constant_hessian) {
                    const std::int32_t hessian = round_hessian(hessians[i], hessian_power);
                    fixed[words.hessian(output)] = hessian;
                    hessian_sum += hessian;
                }
            }
            sums[words.gradient(output)] += gradient_sum;
            if (!words.constant_hessian) {
                sums[words.hessian(output)] += hessian_sum;
            }
        }
    });
    for (int output = 0; output < words.n_outputs; ++output) {
        std::int64_t* total = totals + 2 * output;
        total[0] = 0;
        total[1] = words.constant_hessian ? n_rows * words.hessian_unit(scales[2 * output + 1]) : 0;
        for (const std::vector<std::int64_t>& sums : word_totals) {
            if (!sums.empty()) {
                total[0] += sums[words.gradient(output)];
                total[1] += words.constant_hessian ? 0 : sums[words.hessian(output)];
            }
        }
    }
}

}  // namespace torchgbdt
