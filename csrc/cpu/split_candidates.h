// The candidates of one feature of one node whose missing rows go one way. Sums and gains lie in
// arrays over the candidates, so that loops over them vectorize.
#pragma once

#include "cpu/kernels.h"
#include "cpu/split_gain.h"
#include "cpu/views.h"

#include <array>
#include <cstdint>
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

// Loops over candidates run on to a multiple of kLanes, so that they are made of whole vectors: two
// of the widest, for maxima wait for each other.
constexpr int kLanes = 32;
constexpr int kCandidateCapacity = 256 + kLanes;

// Children of all candidates in float64, one output at a time, and the gains over all outputs.
struct CandidateFloats {
    using Numbers = std::array<double, kCandidateCapacity>;
    Numbers left_gradients, right_gradients, left_hessians, right_hessians, gains;
};

class SplitCandidates {
  public:
    SplitCandidates(const SplitSearch& search, const NodeTotals& node);

    // Takes the candidates of a feature: left are the rows of its first bins and, if missing_left,
    // those of its missing bin. cells: of its value bins, then of its missing bin.
    void collect(const std::int64_t* cells, std::int32_t n_value_bins, bool missing_left);

    // The one that gains most, among equals the first; -1 if none gains as much as `bar`, which is
    // positive.
    int find_best(double bar);

    // Of candidate 0.., in the order of bins.
    double gain(int candidate) const { return floats_.gains[candidate]; }
    std::int32_t split_bin(int candidate) const { return bins_[first_ + candidate]; }
    std::int64_t left_count(int candidate) const { return left_word(0)[candidate]; }
    GradientSums left_sums(int candidate, int output) const;

  private:
    const std::int64_t* left_word(int word) const {
        return left_.data() + word * kCandidateCapacity + first_;
    }

    bool is_valid(int candidate) const;
    double compute_gains();
    bool gains_nothing(int candidate) const;

    const SplitSearch& search_;
    const NodeTotals node_;
    std::vector<double> parent_scores_;  // (n_outputs,)
    bool any_hessian_ = false;           // in the node

    int first_ = 0;  // where candidates begin in the two arrays below
    int count_ = 0;
    std::array<std::uint8_t, kCandidateCapacity> bins_;
    std::vector<std::int64_t> left_;  // (words.per_cell(), kCandidateCapacity): cells, summed
    CandidateFloats floats_;
};

}  // namespace torchgbdt
