#include "cpu/feature_search.h"

#include <algorithm>
#include <limits>

namespace torchgbdt {
namespace {

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

}  // namespace

SplitSearch split_search(const FeatureBins& features, const Words& words, const SplitRules& rules) {
    SplitSearch search{features, words, rules, {}, {}};
    for (int output = 0; output < words.n_outputs; ++output) {
        const std::int64_t* scales = rules.scales + 2 * output;
        search.units.push_back(sum_units(scales[0], scales[1]));
        search.hessian_units.push_back(words.constant_hessian ? Words::hessian_unit(scales[1]) : 0);
    }
    return search;
}

GroupSplits::GroupSplits(std::int64_t n_nodes, std::int64_t n_groups, int n_outputs)
    : n_nodes_(n_nodes),
      n_groups_(n_groups),
      n_sums_(2 * n_outputs),
      splits_(static_cast<std::size_t>(n_nodes * n_groups)),
      left_sums_(static_cast<std::size_t>(n_nodes * n_groups * n_sums_)) {}

void GroupSplits::search(const SplitSearch& search, std::int64_t node, std::int64_t group,
                         const NodeTotals& totals, const std::int64_t* cells, std::int64_t first,
                         std::int64_t end) {
    const std::int64_t index = node * n_groups_ + group;
    SplitRecord split{};  // on this thread's stack: neighbours in memory are written elsewhere
    const BestSplit best{split, left_sums_.data() + index * n_sums_};
    SplitCandidates candidates(search, totals);
    for (std::int64_t feature = first; feature < end; ++feature) {
        const std::int64_t n_value_bins = search.features.n_value_bins[feature];
        const int cell_size = search.words.per_cell();
        const bool has_missing = cells[n_value_bins * cell_size] > 0;
        for (int missing_left = 0; missing_left <= (has_missing ? 1 : 0); ++missing_left) {
            search_side(candidates, search, totals, cells, static_cast<std::int32_t>(feature),
                        missing_left == 1, best);
        }
        cells += (n_value_bins + 1) * cell_size;
    }
    splits_[static_cast<std::size_t>(index)] = split;
}

void GroupSplits::join(SplitRecord* splits, std::int64_t* left_sums) const {
    for (std::int64_t node = 0; node < n_nodes_; ++node) {
        splits[node] = SplitRecord{};
        std::fill_n(left_sums + node * n_sums_, n_sums_, 0);
        for (std::int64_t group = 0; group < n_groups_; ++group) {
            const std::int64_t index = node * n_groups_ + group;
            const SplitRecord& split = splits_[static_cast<std::size_t>(index)];
            if (split.gain > splits[node].gain) {
                splits[node] = split;
                std::copy_n(left_sums_.data() + index * n_sums_, n_sums_,
                            left_sums + node * n_sums_);
            }
        }
    }
}

}  // namespace torchgbdt
