// Rounds gradients to fixed point, once per tree. The definition is core.fixed_point.
#include "cpu/kernels.h"
#include "cpu/own_stretches.h"

#include <vector>

namespace torchgbdt {
namespace {

// Of some numbers that were rounded. n_raised: Hessians that are 1 although 0 is nearest.
struct Rounded {
    std::int64_t sum = 0;
    std::int64_t n_raised = 0;

    void add(const Rounded& other) {
        sum += other.sum;
        n_raised += other.n_raised;
    }
};

// Rounds numbers[0], numbers[stride], ... to words[0], words[n_words], ...
template <std::int32_t (*round)(float, float)>
Rounded round_column(const float* numbers, std::int64_t stride, std::int64_t count,
                     std::int64_t scale, std::int32_t* words, std::int64_t n_words) {
    const float power = power_of_two(static_cast<std::int32_t>(scale));
    Rounded result;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int32_t word = round(numbers[i * stride], power);
        words[i * n_words] = word;
        result.sum += word;
        result.n_raised += word - round_gradient(numbers[i * stride], power);
    }
    return result;
}

// The same for Hessians that are all 1 and have no words.
Rounded round_ones(std::int64_t count, std::int64_t scale) {
    const std::int64_t word = Words::hessian_unit(scale);
    const float power = power_of_two(static_cast<std::int32_t>(scale));
    return {count * word, count * (word - round_gradient(1.0f, power))};
}

}  // namespace

// Layout: gradients, hessians (n_rows, n_outputs); fixed_point (n_rows, words.count()).
// Grid:   one task per kTaskRows rows.
// Writes: each task the fixed point of its rows, each worker its own sums; the caller joins them.
std::int64_t round_gradients(const float* gradients, const float* hessians, std::int64_t n_rows,
                             const Words& words, const std::int64_t* scales,
                             std::int32_t* fixed_point, std::int64_t* totals, int n_threads) {
    const int n_outputs = words.n_outputs;
    const Blocks tasks = row_tasks(n_rows);
    const std::vector<Rounded> nothing(static_cast<std::size_t>(2 * n_outputs));  // as totals
    std::vector<std::vector<Rounded>> workers(worker_count(tasks.count(), n_threads), nothing);
    parallel_for_stretches(tasks.count(), n_threads, [&](std::int64_t task, int worker) {
        const std::int64_t begin = tasks.begin(task), count = tasks.end(task) - begin;
        std::int32_t* fixed = fixed_point + begin * words.count();
        Rounded* sums = workers[static_cast<std::size_t>(worker)].data();
        for (int output = 0; output < n_outputs; ++output) {
            const std::int64_t* scale = scales + 2 * output;
            const std::int64_t first = begin * n_outputs + output;
            sums[2 * output].add(
                round_column<round_gradient>(gradients + first, n_outputs, count, scale[0],
                                             fixed + words.gradient(output), words.count()));
            sums[2 * output + 1].add(
                words.constant_hessian
                    ? round_ones(count, scale[1])
                    : round_column<round_hessian>(hessians + first, n_outputs, count, scale[1],
                                                  fixed + words.hessian(output), words.count()));
        }
    });
    std::int64_t n_raised = 0;
    for (int i = 0; i < 2 * n_outputs; ++i) {
        Rounded joined;
        for (const std::vector<Rounded>& sums : workers) {
            joined.add(sums[static_cast<std::size_t>(i)]);
        }
        totals[i] = joined.sum;
        n_raised += joined.n_raised;
    }
    return n_raised;
}

}  // namespace torchgbdt
