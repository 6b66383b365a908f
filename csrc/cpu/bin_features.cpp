// Quantizes X into bins. The definition is core.binning.bin_column.
#include "cpu/feature_codes.h"
#include "cpu/kernels.h"
#include "cpu/own_stretches.h"

#include <algorithm>
#include <array>
#include <vector>

namespace torchgbdt {

// Layout: X as it lies; bins row-major, (n_kept, n_features).
// Grid:   one task per kTaskRows rows; in it, blocks of kSearchedValues rows, feature by feature.
// Writes: each task the bins of its own rows.
void bin_features(const MatrixView& matrix, const std::int64_t* kept_rows, std::int64_t n_kept,
                  const Thresholds& thresholds, std::uint8_t* bins, int n_threads) {
    const std::int64_t n_features = matrix.n_features;
    std::vector<FeatureCodes> features;
    features.reserve(static_cast<std::size_t>(n_features));
    for (std::int64_t feature = 0; feature < n_features; ++feature) {
        const std::int64_t first = thresholds.offsets[feature];
        features.emplace_back(matrix, feature, thresholds.values + first,
                              thresholds.offsets[feature + 1] - first,
                              static_cast<std::uint8_t>(thresholds.n_value_bins[feature]));
    }
    const Blocks tasks = row_tasks(n_kept);
    parallel_for_stretches(tasks.count(), n_threads, [&](std::int64_t task, int) {
        std::array<std::uint8_t, kSearchedValues> codes;
        for (std::int64_t begin = tasks.begin(task); begin < tasks.end(task);
             begin += kSearchedValues) {
            const std::int64_t count = std::min(kSearchedValues, tasks.end(task) - begin);
            std::uint8_t* of_block = bins + begin * n_features;
            for (std::int64_t feature = 0; feature < n_features; ++feature) {
                features[static_cast<std::size_t>(feature)].find(kept_rows, begin, count,
                                                                 codes.data());
                for (std::int64_t i = 0; i < count; ++i) {
                    of_block[i * n_features + feature] = codes[static_cast<std::size_t>(i)];
                }
            }
        }
    });
}

}  // namespace torchgbdt
