#include "cpu/split_candidates.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

namespace torchgbdt {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Two words of a cell, added as one vector: one addition and one store per bin.
typedef std::int64_t WordPair __attribute__((vector_size(16)));
static_assert(sizeof(WordPair) == sizeof(GradientSums), "a vector is stored as sums");

// Prefix sums of two words of the cells, from `start` on. An empty bin has the sums of the bin
// before it, which wins the tie. Two bins at a time, for the loop's own steps take as long as the
// sums; so one bin more may be read and written, and there is one: that of missing rows.
void add_up(const std::int64_t* cells, int cell_size, int gradient, int hessian, int n_bins,
            const GradientSums& start, GradientSums* sums) {
    WordPair sum{start.gradient, start.hessian};
    const std::int64_t* gradients = cells + gradient;
    const std::int64_t* hessians = cells + hessian;
    for (int bin = 0; bin < n_bins; bin += 2) {
        sum += WordPair{gradients[0], hessians[0]};
        std::memcpy(sums + bin, &sum, sizeof sum);
        sum += WordPair{gradients[cell_size], hessians[cell_size]};
        std::memcpy(sums + bin + 1, &sum, sizeof sum);
        gradients += 2 * cell_size;
        hessians += 2 * cell_size;
    }
}

}  // namespace

SplitCandidates::SplitCandidates(const SplitSearch& search, const NodeTotals& node)
    : search_(search),
      node_(node),
      left_(
          new GradientSums[static_cast<std::size_t>(search.words.n_outputs) * kCandidateCapacity]) {
    const SplitRules& rules = search.rules;
    for (int output = 0; output < search.words.n_outputs; ++output) {
        const GradientSums parent = node.of(output);
        const SumUnits& units = search.units[output];
        // That of the integers in left_: where Hessians are constant, of a row.
        const std::int64_t factor =
            search.words.constant_hessian ? search.hessian_units[output] : 1;
        const double hessian_unit = to_float(factor, units.hessian);
        const FilterOutput filter{static_cast<double>(parent.gradient),
                                  to_float(parent.hessian, units.hessian) / hessian_unit,
                                  rules.reg_lambda / hessian_unit,
                                  units.gradient * units.gradient / hessian_unit};
        outputs_.push_back({score(parent, units, rules.reg_lambda), filter});
        any_hessian_ |= parent.hessian > 0;
        can_filter_ &= std::max(parent.gradient, -parent.gradient) <= kMaxFilterSum &&
                       parent.hessian > 0 && filter.hessian <= kMaxFilterSum &&
                       rules.min_hessian[output] > 0 && filter.reg_lambda <= kMaxFilterLambda;
    }
}

void SplitCandidates::collect(const std::int64_t* cells, std::int32_t n_value_bins,
                              bool missing_left) {
    const Words& words = search_.words;
    const int cell_size = words.per_cell();
    const std::int64_t* missing = cells + n_value_bins * cell_size;
    cells_ = cells;
    missing_left_count_ = missing_left ? missing[0] : 0;
    first_ = 0;
    end_ = missing[0] > 0 ? n_value_bins : std::max(n_value_bins - 1, 0);
    // Counts and Hessians are not negative: what is too small for a child lies at either end.
    const std::int64_t min_rows = search_.rules.min_samples_leaf;
    std::int64_t left_rows = missing_left_count_;
    while (first_ < end_ && (left_rows += rows_of_bin(first_)) < min_rows) {
        ++first_;
    }
    std::int64_t right_rows = missing[0] - missing_left_count_;
    right_rows += end_ < n_value_bins ? rows_of_bin(end_) : 0;
    while (first_ < end_ && right_rows < min_rows) {
        right_rows += rows_of_bin(--end_);
    }
    for (int output = 0; output < words.n_outputs; ++output) {
        const int gradient = 1 + words.gradient(output);
        const int hessian = words.constant_hessian ? 0 : 1 + words.hessian(output);
        const GradientSums start{missing_left ? missing[gradient] : 0,
                                 missing_left ? missing[hessian] : 0};
        add_up(cells, cell_size, gradient, hessian, first_ < end_ ? end_ : 0, start,
               left_of(output));
    }
    while (first_ < end_ && !has_enough_hessian(first_, true)) {
        ++first_;
    }
    while (first_ < end_ && !has_enough_hessian(end_ - 1, false)) {
        --end_;
    }
}

std::int64_t SplitCandidates::left_count(int candidate) const {
    std::int64_t rows = missing_left_count_;
    for (int bin = 0; bin <= candidate; ++bin) {
        rows += rows_of_bin(bin);
    }
    return rows;
}

GradientSums SplitCandidates::left_sums(int candidate, int output) const {
    const GradientSums& sums = left_of(output)[candidate];
    const bool constant = search_.words.constant_hessian;
    return {sums.gradient, constant ? sums.hessian * search_.hessian_units[output] : sums.hessian};
}

// In the left or the right child. Outputs whose node has no Hessian are not asked; at least one
// must be.
bool SplitCandidates::has_enough_hessian(int candidate, bool left) const {
    for (int output = 0; output < search_.words.n_outputs; ++output) {
        const GradientSums parent = node_.of(output);
        const GradientSums child = left_sums(candidate, output);
        const std::int64_t hessian = left ? child.hessian : (parent - child).hessian;
        if (parent.hessian > 0 && hessian < search_.rules.min_hessian[output]) {
            return false;
        }
    }
    return any_hessian_;
}

double SplitCandidates::gain(int candidate) const {
    const SplitRules& rules = search_.rules;
    double increase = 0.0;
    for (int output = 0; output < search_.words.n_outputs; ++output) {
        const GradientSums left = left_sums(candidate, output);
        const GradientSums right = node_.of(output) - left;
        const SumUnits& units = search_.units[output];
        increase +=
            score_increase(score(left, units, rules.reg_lambda),
                           score(right, units, rules.reg_lambda), outputs_[output].parent_score);
    }
    return split_gain(increase, rules.gamma);
}

// Whether sums are proportional in every output: such a candidate is none, although rounding may
// see a gain. Asked only of one that would win: the test is slow, and to leave out a candidate does
// not change which of the others is best.
bool SplitCandidates::gains_nothing(int candidate) const {
    for (int output = 0; output < search_.words.n_outputs; ++output) {
        const GradientSums left = left_sums(candidate, output);
        if (!is_proportional(left, node_.of(output) - left)) {
            return false;
        }
    }
    return true;
}

int SplitCandidates::find_best(double bar) {
    std::array<std::uint8_t, kCandidateCapacity> chosen;
    const int n_chosen = choose(bar, chosen.data());
    int best = -1;
    double best_gain = 0.0;
    for (int i = 0; i < n_chosen; ++i) {
        const int candidate = first_ + chosen[i];
        const double found = gain(candidate);
        if (found >= bar && found > best_gain && !gains_nothing(candidate)) {
            best = candidate;
            best_gain = found;
        }
    }
    return best;
}

// Writes which candidates may be the best, ascending and counted from first_; returns how many.
int SplitCandidates::choose(double bar, std::uint8_t* chosen) {
    const int n_candidates = end_ - first_;
    const double largest = can_filter_ && n_candidates > 0 ? compute_scores() : kInfinity;
    if (largest == kInfinity) {
        std::iota(chosen, chosen + n_candidates, std::uint8_t{0});
        return n_candidates;
    }
    double score_of_bar = 2.0 * (bar + search_.rules.gamma);
    for (const Output& output : outputs_) {
        score_of_bar += output.parent_score;
    }
    const double enough = std::max(largest, score_of_bar) * filter_share(search_.words.n_outputs);
    return largest < enough ? 0 : filter_candidates(scores_.data(), n_candidates, enough, chosen);
}

// As filter_scores, over all outputs.
double SplitCandidates::compute_scores() {
    const int n_candidates = end_ - first_;
    const int n_lanes = (n_candidates + kLanes - 1) / kLanes * kLanes;
    double largest = 0.0;
    for (int output = 0; output < search_.words.n_outputs && largest < kInfinity; ++output) {
        GradientSums* left = left_of(output);
        std::fill(left + end_, left + first_ + n_lanes, left[end_ - 1]);
        largest = filter_scores(left + first_, n_candidates, outputs_[output].filter, output == 0,
                                scores_.data());
    }
    return largest;
}

}  // namespace torchgbdt
