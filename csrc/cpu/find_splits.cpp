// The best split of each node. The definition is core.splits.find_best_splits.
#include "cpu/float_environment.h"
#include "cpu/kernels.h"
#include "cpu/split_candidates.h"
#include "cpu/thread_pool.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace torchgbdt {
namespace {

constexpr std::int64_t kTaskFeatures = 16;      // 16 features of one node: about 10 microseconds
constexpr std::int64_t kWorthwhileBins = 8192;  // twice as many as such features may have

constexpr double kSmallestGain = std::numeric_limits<double>::denorm_min();

// The best split of a node so far, and the sums of its left child, (n_outputs, 2).
struct BestSplit {
    SplitRecord& split;
    std::int64_t* left_sums;
};

// Looks for a better split on one feature, where missing rows go one way. Both ways are tried,
// right first: for equal gains the smaller bin wins, then missing-right. Features ascend.
void search_side(SplitCandidates& candidates, const SplitSearch& search, const NodeTotals& node,
                 const std::int64_t* cells, std::int32_t feature, bool missing_left,
                 const BestSplit& best) {
    SplitRecord& split = best.split;
    const std::int32_t n_value_bins = search.features.n_value_bins[feature];
    candidates.collect(cells, n_value_bins, missing_left);
    const int found = candidates.find_best(std::max(split.gain, kSmallestGain));
    if (found < 0) {
        return;
    }
    const bool is_equal = candidates.gain(found) == split.gain;
    if (is_equal && (split.feature < feature || split.split_bin <= candidates.split_bin(found))) {
        return;
    }
    split.found = true;
    split.gain = candidates.gain(found);
    split.feature = feature;
    split.split_bin = candidates.split_bin(found);
    split.left_count = candidates.left_count(found);
    split.right_count = node.count - split.left_count;
    const bool has_missing = cells[n_value_bins * search.words.per_cell()] > 0;
    split.missing_left = has_missing ? missing_left : split.left_count > split.right_count;
    for (int output = 0; output < search.words.n_outputs; ++output) {
        const GradientSums left = candidates.left_sums(found, output);
        best.left_sums[2 * output] = left.gradient;
        best.left_sums[2 * output + 1] = left.hessian;
    }
}

// Searches features first..end-1 of one node.
void search_features(const SplitSearch& search, const NodeTotals& node,
                     const std::int64_t* histogram, std::int64_t first, std::int64_t end,
                     const BestSplit& best) {
    SplitCandidates candidates(search, node);
    for (std::int64_t feature = first; feature < end; ++feature) {
        const int cell_size = search.words.per_cell();
        const std::int64_t* cells = histogram + search.features.bin_offsets[feature] * cell_size;
        const bool has_missing = cells[search.features.n_value_bins[feature] * cell_size] > 0;
        for (int missing_left = 0; missing_left <= (has_missing ? 1 : 0); ++missing_left) {
            search_side(candidates, search, node, cells, static_cast<std::int32_t>(feature),
                        missing_left == 1, best);
        }
    }
}

}  // namespace

// Layout: slots (total_bins, words.per_cell()); sums (n_nodes, n_outputs, 2).
// Grid:   one task per node and kTaskFeatures features; the caller joins them in feature order.
// Writes: each task the best split of its features, the caller that of each node.
void find_splits(const FeatureBins& features, const Words& words, const std::int64_t* histograms,
                 const NodeRecord* nodes, const std::int64_t* sums, std::int64_t n_nodes,
                 const SplitRules& rules, SplitRecord* splits, std::int64_t* left_sums,
                 int n_threads) {
    const DefaultFloatEnvironment environment;  // the units below are computed outside of tasks
    SplitSearch search{features, words, rules, {}, {}};
    for (int output = 0; output < words.n_outputs; ++output) {
        const std::int64_t* scales = rules.scales + 2 * output;
        search.units.push_back(sum_units(scales[0], scales[1]));
        search.hessian_units.push_back(words.constant_hessian ? Words::hessian_unit(scales[1]) : 0);
    }
    const std::int64_t slot_size = features.total_bins() * words.per_cell();
    const std::int64_t n_sums = 2 * words.n_outputs;
    const Blocks groups{features.n_features, kTaskFeatures};
    const std::int64_t n_tasks = n_nodes * groups.count();
    std::vector<SplitRecord> group_splits(static_cast<std::size_t>(n_tasks));
    std::vector<std::int64_t> group_sums(static_cast<std::size_t>(n_tasks * n_sums));

    n_threads = threads_worth(n_nodes * features.total_bins(), kWorthwhileBins, n_threads);
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int) {
        const std::int64_t node = task / groups.count();
        const std::int64_t group = task % groups.count();
        SplitRecord split{};  // on this thread's stack: neighbours in memory are written elsewhere
        search_features(search, {nodes[node].count, sums + node * n_sums},
                        histograms + nodes[node].slot * slot_size, groups.begin(group),
                        groups.end(group), {split, group_sums.data() + task * n_sums});
        group_splits[static_cast<std::size_t>(task)] = split;
    });
    for (std::int64_t node = 0; node < n_nodes; ++node) {
        splits[node] = SplitRecord{};
        std::fill_n(left_sums + node * n_sums, n_sums, 0);
        for (std::int64_t task = node * groups.count(); task < (node + 1) * groups.count();
             ++task) {
            if (group_splits[static_cast<std::size_t>(task)].gain > splits[node].gain) {
                splits[node] = group_splits[static_cast<std::size_t>(task)];
                std::copy_n(group_sums.data() + task * n_sums, n_sums, left_sums + node * n_sums);
            }
        }
    }
}

}  // namespace torchgbdt
