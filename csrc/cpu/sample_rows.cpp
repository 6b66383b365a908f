// The rows that a tree uses: all of them, so far.
#include "cpu/kernels.h"
#include "cpu/own_stretches.h"

#include <numeric>

namespace torchgbdt {

// Layout: row_order (n_rows,).
// Grid:   one task per kTaskRows rows.
// Writes: each task its stretch of row_order.
void sample_rows(RowId* row_order, std::int64_t n_rows, int n_threads) {
    constexpr std::int64_t kWorthwhileRows = 16 * kTaskRows;
    const Blocks tasks = row_tasks(n_rows);
    n_threads = threads_worth(n_rows, kWorthwhileRows, n_threads);
    parallel_for_stretches(tasks.count(), n_threads, [&](std::int64_t task, int) {
        std::iota(row_order + tasks.begin(task), row_order + tasks.end(task),
                  static_cast<RowId>(tasks.begin(task)));
    });
}

}  // namespace torchgbdt
