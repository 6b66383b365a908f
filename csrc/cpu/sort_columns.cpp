// Sorts chosen rows of some features. The definition is core.columns.sort_columns.
#include "cpu/kernels.h"
#include "cpu/radix_sort.h"
#include "cpu/thread_pool.h"

#include <algorithm>
#include <vector>

namespace torchgbdt {
namespace {

constexpr std::int64_t kBlockRows = 256;  // whose cache lines serve several features

// Sorts columns one after another; memory that stays with a worker is not mapped anew for each.
template <typename Number>
class ColumnSorter {
  public:
    void sort(double* column, std::int64_t n_rows) {
        keys_.resize(static_cast<std::size_t>(n_rows));
        for (std::int64_t i = 0; i < n_rows; ++i) {
            keys_[static_cast<std::size_t>(i)] = Ordered::from(static_cast<Number>(column[i]));
        }
        radix_sort(keys_, scratch_);
        for (std::int64_t i = 0; i < n_rows; ++i) {
            column[i] = static_cast<double>(Ordered::number(keys_[static_cast<std::size_t>(i)]));
        }
    }

  private:
    using Ordered = OrderedKey<Number>;

    std::vector<typename Ordered::Key> keys_;
    std::vector<typename Ordered::Key> scratch_;
};

template <typename Number>
void sort_each(std::int64_t n_columns, std::int64_t n_rows, double* columns, int n_threads) {
    std::vector<ColumnSorter<Number>> sorters(worker_count(n_columns, n_threads));
    parallel_for(n_columns, n_threads, [&](std::int64_t i, int worker) {
        sorters[static_cast<std::size_t>(worker)].sort(columns + i * n_rows, n_rows);
    });
}

}  // namespace

// Layout: X as it lies; columns (n_features, n_chosen).
// Grid:   one task per kTaskRows rows, which reads them; then one per feature, which sorts it.
// Writes: each task its rows of all columns; then each its column.
void sort_columns(const MatrixView& matrix, const std::int64_t* rows, std::int64_t n_chosen,
                  std::int64_t first_feature, std::int64_t n_features, double* columns,
                  int n_threads) {
    const Blocks tasks = row_tasks(n_chosen);
    parallel_for(tasks.count(), n_threads, [&](std::int64_t task, int) {
        for (std::int64_t begin = tasks.begin(task); begin < tasks.end(task); begin += kBlockRows) {
            const std::int64_t count = std::min(kBlockRows, tasks.end(task) - begin);
            for (std::int64_t i = 0; i < n_features; ++i) {
                load_feature(matrix, first_feature + i, rows, begin, count,
                             columns + i * n_chosen + begin, 1);
            }
        }
    });
    // What float32 holds sorts in half as many passes.
    const auto sort = fits_float32(matrix.type) ? sort_each<float> : sort_each<double>;
    sort(n_features, n_chosen, columns, n_threads);
}

}  // namespace torchgbdt
