// The best split of each node. The definition is core.splits.find_best_splits.
#include "cpu/feature_search.h"
#include "cpu/float_environment.h"
#include "cpu/kernels.h"
#include "cpu/thread_pool.h"

namespace torchgbdt {
namespace {

constexpr std::int64_t kTaskFeatures = 16;      // 16 features of one node: about 10 microseconds
constexpr std::int64_t kWorthwhileBins = 8192;  // twice as many as such features may have

}  // namespace

// Layout: slots (total_bins, words.per_cell()); sums (n_nodes, n_outputs, 2).
// Grid:   one task per node and kTaskFeatures features; the caller joins them in feature order.
// Writes: each task the best split of its features, the caller that of each node.
void find_splits(const FeatureBins& features, const Words& words, const std::int64_t* histograms,
                 const NodeRecord* nodes, const std::int64_t* sums, std::int64_t n_nodes,
                 const SplitRules& rules, SplitRecord* splits, std::int64_t* left_sums,
                 int n_threads) {
    const DefaultFloatEnvironment environment;  // some is computed outside of tasks
    const SplitSearch search = split_search(features, words, rules);
    const Blocks groups{features.n_features, kTaskFeatures};
    GroupSplits found(n_nodes, groups.count(), words.n_outputs);
    n_threads = threads_worth(n_nodes * features.total_bins(), kWorthwhileBins, n_threads);
    parallel_for(n_nodes * groups.count(), n_threads, [&](std::int64_t task, int) {
        const std::int64_t node = task / groups.count();
        const std::int64_t group = task % groups.count();
        const std::int64_t first = groups.begin(group);
        const std::int64_t cell =
            nodes[node].slot * features.total_bins() + features.bin_offsets[first];
        found.search(search, node, group, {nodes[node].count, sums + node * 2 * words.n_outputs},
                     histograms + cell * words.per_cell(), first, groups.end(group));
    });
    found.join(splits, left_sums);
}

}  // namespace torchgbdt
