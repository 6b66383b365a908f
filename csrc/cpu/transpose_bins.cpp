// The column-major copy of the bins, which routing reads: one byte per row instead of a cache line.
#include "cpu/kernels.h"
#include "cpu/thread_pool.h"

#include <algorithm>
#include <stdexcept>

namespace torchgbdt {
namespace {

constexpr std::int64_t kTileRows = 64;  // of one feature: one cache line of the copy

}  // namespace

// Layout: bins (n_rows, n_features) -> columns (n_features, n_rows).
// Grid:   one task per kTaskRows rows; in it, tiles of kTileRows rows.
// Writes: each task its own rows of every column.
void transpose_bins(const BinMatrix& bins, const std::int32_t* n_value_bins, std::uint8_t* columns,
                    int n_threads) {
    const Blocks tasks = row_tasks(bins.n_rows);
    parallel_for(tasks.count(), n_threads, [&](std::int64_t task, int) {
        for (std::int64_t begin = tasks.begin(task); begin < tasks.end(task); begin += kTileRows) {
            const std::int64_t end = std::min(begin + kTileRows, tasks.end(task));
            for (std::int64_t feature = 0; feature < bins.n_features; ++feature) {
                std::uint8_t* column = columns + feature * bins.n_rows;
                std::uint8_t largest = 0;
                for (std::int64_t row = begin; row < end; ++row) {
                    column[row] = bins.codes[row * bins.n_features + feature];
                    largest = std::max(largest, column[row]);
                }
                if (largest > n_value_bins[feature]) {
                    throw std::invalid_argument("bins hold a code beyond the missing code");
                }
            }
        }
    });
}

}  // namespace torchgbdt
