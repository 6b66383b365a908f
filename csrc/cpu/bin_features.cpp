// Quantizes X into bins. The definition is core.binning.bin_column.
#include "cpu/kernels.h"
#include "cpu/thread_pool.h"

#include <algorithm>
#include <array>

namespace torchgbdt {
namespace {

constexpr std::int64_t kBlockRows = 256;  // a block of one feature as float64: 2 KB of stack

// Thresholds of one feature.
struct Cuts {
    const double* values;
    std::int64_t n_cuts;
    std::uint8_t missing_code;

    // The number of thresholds below x. The number of steps depends on n_cuts alone, so that no
    // branch depends on x.
    std::uint8_t value_bin(double x) const {
        const double* first = values;
        std::int64_t left = n_cuts;
        while (left > 1) {
            const std::int64_t half = left / 2;
            first += half * static_cast<std::int64_t>(first[half - 1] < x);
            left -= half;
        }
        const std::int64_t last = left == 1 && *first < x ? 1 : 0;
        return static_cast<std::uint8_t>(first - values + last);
    }

    std::uint8_t code(double x) const { return x != x ? missing_code : value_bin(x); }
};

}  // namespace

// Layout: X as it lies; bins row-major, (n_kept, n_features).
// Grid:   one task per kTaskRows rows; in it, blocks of kBlockRows rows, feature by feature.
// Writes: each task the bins of its own rows.
void bin_features(const MatrixView& matrix, const std::int64_t* kept_rows, std::int64_t n_kept,
                  const Thresholds& thresholds, std::uint8_t* bins, int n_threads) {
    const std::int64_t n_features = matrix.n_features;
    const Blocks tasks = row_tasks(n_kept);
    parallel_for(tasks.count(), n_threads, [&](std::int64_t task, int) {
        std::array<double, kBlockRows> values;
        for (std::int64_t begin = tasks.begin(task); begin < tasks.end(task); begin += kBlockRows) {
            const std::int64_t count = std::min(kBlockRows, tasks.end(task) - begin);
            std::uint8_t* codes = bins + begin * n_features;
            for (std::int64_t feature = 0; feature < n_features; ++feature) {
                const std::int64_t first = thresholds.offsets[feature];
                const Cuts cuts{thresholds.values + first, thresholds.offsets[feature + 1] - first,
                                static_cast<std::uint8_t>(thresholds.n_value_bins[feature])};
                load_feature(matrix, feature, kept_rows, begin, count, values.data(), 1);
                for (std::int64_t i = 0; i < count; ++i) {
                    codes[i * n_features + feature] = cuts.code(values[i]);
                }
            }
        }
    });
}

}  // namespace torchgbdt
