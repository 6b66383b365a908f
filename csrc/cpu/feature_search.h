// The search over features of nodes, shared out in groups of features and joined again.
#pragma once

#include "cpu/split_candidates.h"

#include <cstdint>
#include <vector>

namespace torchgbdt {

// Computes what all nodes share; in the default floating-point environment.
SplitSearch split_search(const FeatureBins& features, const Words& words, const SplitRules& rules);

// The best split of each group of features of each node.
class GroupSplits {
  public:
    GroupSplits(std::int64_t n_nodes, std::int64_t n_groups, int n_outputs);

    // Searches features first..end-1 of a node as one of its groups. cells: of these features.
    // Different groups may be searched at the same time.
    void search(const SplitSearch& search, std::int64_t node, std::int64_t group,
                const NodeTotals& totals, const std::int64_t* cells, std::int64_t first,
                std::int64_t end);

    // Writes the best split of each node, and its left sums. Groups ascend with their features, so
    // ties fall to the smaller feature.
    void join(SplitRecord* splits, std::int64_t* left_sums) const;

  private:
    std::int64_t n_nodes_;
    std::int64_t n_groups_;
    std::int64_t n_sums_;
    std::vector<SplitRecord> splits_;      // (n_nodes, n_groups)
    std::vector<std::int64_t> left_sums_;  // (n_nodes, n_groups, n_outputs, 2)
};

}  // namespace torchgbdt
