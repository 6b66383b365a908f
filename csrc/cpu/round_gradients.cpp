// Rounds gradients to fixed point, once per tree. The definition is core.fixed_point.
#include "cpu/kernels.h"
#include "cpu/thread_pool.h"

#include <vector>

namespace torchgbdt {
namespace {

constexpr std::int64_t kTaskRows = 4096;

// Rounds numbers[0], numbers[stride], ... to words[0], words[n_words], ...; returns their sum.
template <std::int32_t (*round)(float, float)>
std::int64_t round_column(const float* numbers, std::int64_t stride, std::int64_t count,
                          std::int64_t scale, std::int32_t* words, std::int64_t n_words) {
    const float power = power_of_two(static_cast<std::int32_t>(scale));
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int32_t rounded = round(numbers[i * stride], power);
        words[i * n_words] = rounded;
        sum += rounded;
    }
    return sum;
}

}  // namespace

// Layout: gradients, hessians (n_rows, n_outputs); fixed_point (n_rows, words.count()).
// Grid:   one task per 4,096 rows.
// Writes: each task the fixed point of its rows, each worker its own totals; the caller joins them.
void round_gradients(const float* gradients, const float* hessians, std::int64_t n_rows,
                     const Words& words, const std::int64_t* scales, std::int32_t* fixed_point,
                     std::int64_t* totals, int n_threads) {
    const int n_outputs = words.n_outputs;
    const Blocks tasks{n_rows, kTaskRows};
    std::vector<std::vector<std::int64_t>> worker_totals(
        static_cast<std::size_t>(n_threads),
        std::vector<std::int64_t>(static_cast<std::size_t>(2 * n_outputs)));
    parallel_for(tasks.count(), n_threads, [&](std::int64_t task, int worker) {
        const std::int64_t begin = tasks.begin(task), count = tasks.end(task) - begin;
        std::int32_t* fixed = fixed_point + begin * words.count();
        std::int64_t* sums = worker_totals[worker].data();
        for (int output = 0; output < n_outputs; ++output) {
            const std::int64_t* scale = scales + 2 * output;
            const std::int64_t first = begin * n_outputs + output;
            sums[2 * output] +=
                round_column<round_gradient>(gradients + first, n_outputs, count, scale[0],
                                             fixed + words.gradient(output), words.count());
            sums[2 * output + 1] +=
                words.constant_hessian
                    ? count * words.hessian_unit(scale[1])
                    : round_column<round_hessian>(hessians + first, n_outputs, count, scale[1],
                                                  fixed + words.hessian(output), words.count());
        }
    });
    for (int i = 0; i < 2 * n_outputs; ++i) {
        totals[i] = 0;
        for (const std::vector<std::int64_t>& sums : worker_totals) {
            totals[i] += sums[i];
        }
    }
}

}  // namespace torchgbdt
