// The candidates of one feature of one node whose missing rows go one way.
#pragma once

#include "cpu/kernels.h"
#include "cpu/split_filter.h"
#include "cpu/split_gain.h"
#include "cpu/views.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace torchgbdt {

// What all nodes of a call share.
struct SplitSearch {
    const FeatureBins& features;
    const Words& words;
    const SplitRules& rules;
    std::vector<SumUnits> units;              // (n_outputs,)
    std::vector<std::int64_t> hessian_units;  // (n_outputs,); constant Hessians only
};

// A node whose candidates are looked at.
struct NodeTotals {
    std::int64_t count;
    const std::int64_t* sums;  // (n_outputs, 2)

    GradientSums of(int output) const { return {sums[2 * output], sums[2 * output + 1]}; }
};

constexpr int kCandidateCapacity = 256 + kLanes;  // loops run on

class SplitCandidates {
  public:
    SplitCandidates(const SplitSearch& search, const NodeTotals& node);

    // Takes the candidates of a feature: left are the rows of its first bins and, if missing_left,
    // those of its missing bin. cells: of its value bins, then of its missing bin; read until the
    // next call.
    void collect(const std::int64_t* cells, std::int32_t n_value_bins, bool missing_left);

    // The one that gains most, among equals the first; -1 if none gains as much as `bar`, which is
    // positive.
    int find_best(double bar);

    // Of a candidate, which is named by its bin.
    double gain(int candidate) const;
    std::int32_t split_bin(int candidate) const { return candidate; }
    std::int64_t left_count(int candidate) const;
    GradientSums left_sums(int candidate, int output) const;

  private:
    // What the candidates share in one output.
    struct Output {
        double parent_score;
        FilterOutput filter;
    };

    GradientSums* left_of(int output) const { return left_.get() + output * kCandidateCapacity; }
    std::int64_t rows_of_bin(int bin) const { return cells_[bin * search_.words.per_cell()]; }
    int choose(double bar, std::uint8_t* chosen);
    double compute_scores();
    bool has_enough_hessian(int candidate, bool left) const;
    bool gains_nothing(int candidate) const;

    const SplitSearch& search_;
    const NodeTotals node_;
    std::vector<Output> outputs_;
    bool any_hessian_ = false;  // in the node
    bool can_filter_ = true;

    const std::int64_t* cells_ = nullptr;
    std::int64_t missing_left_count_ = 0;
    int first_ = 0, end_ = 0;  // candidates first_..end_-1 have enough in both children
    // Of left children, (n_outputs, kCandidateCapacity). A constant Hessian is counted in rows.
    std::unique_ptr<GradientSums[]> left_;
    std::array<double, kCandidateCapacity> scores_;  // of candidates first_.., by the filter
};

}  // namespace torchgbdt
