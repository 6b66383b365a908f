// Adds a finished tree to the predictions of a data set that is binned.
#include "cpu/kernels.h"
#include "cpu/leaf_values.h"
#include "cpu/thread_pool.h"
#include "cpu/traversal.h"

#include <algorithm>
#include <array>

namespace torchgbdt {
namespace {

constexpr std::int64_t kBlockRows = 256;  // rows that go down the tree together

}  // namespace

// Layout: bins row-major; predictions (n_rows, n_columns).
// Grid:   one task per kTaskRows rows, in row order whatever the tree's row order is.
// Writes: each task the predictions of its rows.
void update_predictions(const BinMatrix& bins, const std::int32_t* n_value_bins,
                        const TreeView& tree, std::int64_t output, std::int64_t n_columns,
                        float* predictions, int n_threads) {
    const PackedTree<BinStep> packed = pack_for_bins(tree, bins.n_features, n_value_bins);
    const Blocks tasks = row_tasks(bins.n_rows);
    parallel_for(tasks.count(), n_threads, [&](std::int64_t task, int) {
        std::array<std::int32_t, kBlockRows> leaves;
        for (std::int64_t begin = tasks.begin(task); begin < tasks.end(task); begin += kBlockRows) {
            const std::int64_t count = std::min(kBlockRows, tasks.end(task) - begin);
            find_leaves(packed, bins.codes + begin * bins.n_features, bins.n_features, count,
                        leaves.data());
            add_leaf_values(tree, leaves.data(), count, output, n_columns,
                            predictions + begin * n_columns);
        }
    });
}

}  // namespace torchgbdt
