#include "cpu/split_candidates.h"

#include "cpu/vectorize.h"

#include <algorithm>

namespace torchgbdt {
namespace {

// Sums of left children times `factor`, and what they leave of the total, as float64. Apart from
// the loops that read them: before AVX-512 this one does not vectorize.
TORCHGBDT_VECTORIZE
void to_floats(const std::int64_t* left, std::int64_t factor, std::int64_t total, double unit,
               int n_lanes, double* __restrict left_floats, double* __restrict right_floats) {
    for (int i = 0; i < n_lanes / kLanes * kLanes; ++i) {
        const std::int64_t sum = left[i] * factor;
        left_floats[i] = to_float(sum, unit);
        right_floats[i] = to_float(total - sum, unit);
    }
}

// Adds what one output increases the bracket of the gain by.
TORCHGBDT_VECTORIZE
void add_increases(CandidateFloats& floats, int n_lanes, double parent_score, double reg_lambda) {
    for (int i = 0; i < n_lanes / kLanes * kLanes; ++i) {
        const double left = score(floats.left_gradients[i], floats.left_hessians[i], reg_lambda);
        const double right = score(floats.right_gradients[i], floats.right_hessians[i], reg_lambda);
        floats.gains[i] += score_increase(left, right, parent_score);
    }
}

// Turns brackets into gains and returns the largest, at least 0. NaN is no gain.
TORCHGBDT_VECTORIZE
double finish_gains(CandidateFloats& floats, int n_lanes, double gamma) {
    std::array<double, kLanes> largest{};
    for (int first = 0; first < n_lanes; first += kLanes) {
        for (int lane = 0; lane < kLanes; ++lane) {
            const double gain = split_gain(floats.gains[first + lane], gamma);
            floats.gains[first + lane] = gain;
            largest[lane] = gain > largest[lane] ? gain : largest[lane];
        }
    }
    return *std::max_element(largest.begin(), largest.end());
}

// Prefix sums of kWords words of cells, from first_word on: sums[word][i] over bins 0..bins[i].
// Returns how many i there are. An empty bin is left out: it leaves both sides as they were one bin
// earlier, and that candidate wins the tie.
template <int kWords>
int add_up(const std::int64_t* cells, int cell_size, int first_word, std::int32_t n_bins,
           const std::int64_t* start, std::int64_t* sums, std::uint8_t* bins) {
    std::array<std::int64_t, kWords> sum;
    for (int word = 0; word < kWords; ++word) {
        sum[word] = start == nullptr ? 0 : start[first_word + word];
    }
    sums += first_word * kCandidateCapacity;
    int count = 0;
    for (std::int32_t bin = 0; bin < n_bins; ++bin) {
        const std::int64_t* cell = cells + bin * cell_size;
        for (int word = 0; word < kWords; ++word) {
            sum[word] += cell[first_word + word];
            sums[word * kCandidateCapacity + count] = sum[word];
        }
        bins[count] = static_cast<std::uint8_t>(bin);
        count += bin == 0 || cell[0] != 0 ? 1 : 0;  // else the next bin takes the place
    }
    return count;
}

}  // namespace

SplitCandidates::SplitCandidates(const SplitSearch& search, const NodeTotals& node)
    : search_(search),
      node_(node),
      left_(static_cast<std::size_t>(search.words.per_cell() * kCandidateCapacity)) {
    for (int output = 0; output < search.words.n_outputs; ++output) {
        const GradientSums parent = node.of(output);
        parent_scores_.push_back(score(parent, search.units[output], search.rules.reg_lambda));
        any_hessian_ |= parent.hessian > 0;
    }
}

void SplitCandidates::collect(const std::int64_t* cells, std::int32_t n_value_bins,
                              bool missing_left) {
    const int cell_size = search_.words.per_cell();
    const std::int64_t* missing = cells + n_value_bins * cell_size;
    const std::int64_t* start = missing_left ? missing : nullptr;
    const std::int32_t n_bins = missing[0] > 0 ? n_value_bins : n_value_bins - 1;
    const auto add = [&](auto add_words, int word) {
        return add_words(cells, cell_size, word, n_bins, start, left_.data(), bins_.data());
    };
    first_ = 0;
    if (cell_size == 2) {
        count_ = add(add_up<2>, 0);
    } else if (cell_size == 3) {
        count_ = add(add_up<3>, 0);
    } else {
        for (int word = 0; word < cell_size; ++word) {
            count_ = add(add_up<1>, word);
        }
    }
    // Counts and Hessians are not negative: what is too small for a child lies at either end.
    while (count_ > 0 && !is_valid(0)) {
        ++first_;
        --count_;
    }
    while (count_ > 0 && !is_valid(count_ - 1)) {
        --count_;
    }
}

GradientSums SplitCandidates::left_sums(int candidate, int output) const {
    const Words& words = search_.words;
    return {left_word(1 + words.gradient(output))[candidate],
            words.constant_hessian ? left_count(candidate) * search_.hessian_units[output]
                                   : left_word(1 + words.hessian(output))[candidate]};
}

// Enough rows and Hessian in both children. Outputs whose node has no Hessian are not asked; at
// least one must be.
bool SplitCandidates::is_valid(int candidate) const {
    const std::int64_t left = left_count(candidate);
    bool enough = std::min(left, node_.count - left) >= search_.rules.min_samples_leaf;
    for (int output = 0; enough && output < search_.words.n_outputs; ++output) {
        const std::int64_t parent = node_.of(output).hessian;
        const std::int64_t hessian = left_sums(candidate, output).hessian;
        enough =
            parent <= 0 || std::min(hessian, parent - hessian) >= search_.rules.min_hessian[output];
    }
    return enough && any_hessian_;
}

// The gains that are computed include those of candidates whose sums are proportional, GL*HR ==
// GR*HL: noise, or a little less than nothing. Such a candidate is none, but the test is slow, so
// it is made last. Leaving a candidate out never changes which of the others is best; so if the
// largest gain has one that is not proportional, the first such one is what the search is for.
// Otherwise all that gain as much are noise, and the rest is searched one by one.
int SplitCandidates::find_best(double bar) {
    const double largest = count_ > 0 ? compute_gains() : 0.0;
    if (!(largest >= bar)) {
        return -1;
    }
    for (int candidate = 0; candidate < count_; ++candidate) {
        if (gain(candidate) == largest && !gains_nothing(candidate)) {
            return candidate;
        }
    }
    int best = -1;
    for (int candidate = 0; candidate < count_; ++candidate) {
        const bool leads = gain(candidate) >= bar && (best < 0 || gain(candidate) > gain(best));
        if (leads && !gains_nothing(candidate)) {
            best = candidate;
        }
    }
    return best;
}

// Writes the gains of all candidates and returns the largest, at least 0.
double SplitCandidates::compute_gains() {
    const SplitRules& rules = search_.rules;
    const Words& words = search_.words;
    const int n_lanes = (count_ + kLanes - 1) / kLanes * kLanes;
    std::fill_n(floats_.gains.begin(), n_lanes, 0.0);
    for (int output = 0; output < words.n_outputs; ++output) {
        const GradientSums parent = node_.of(output);
        const SumUnits& units = search_.units[output];
        to_floats(left_word(1 + words.gradient(output)), 1, parent.gradient, units.gradient,
                  n_lanes, floats_.left_gradients.data(), floats_.right_gradients.data());
        const bool constant = words.constant_hessian;
        to_floats(left_word(constant ? 0 : 1 + words.hessian(output)),
                  constant ? search_.hessian_units[output] : 1, parent.hessian, units.hessian,
                  n_lanes, floats_.left_hessians.data(), floats_.right_hessians.data());
        add_increases(floats_, n_lanes, parent_scores_[output], rules.reg_lambda);
    }
    std::fill(floats_.gains.begin() + count_, floats_.gains.begin() + n_lanes, 0.0);
    return finish_gains(floats_, n_lanes, rules.gamma);
}

bool SplitCandidates::gains_nothing(int candidate) const {
    for (int output = 0; output < search_.words.n_outputs; ++output) {
        const GradientSums left = left_sums(candidate, output);
        if (!is_proportional(left, node_.of(output) - left)) {
            return false;
        }
    }
    return true;
}

}  // namespace torchgbdt
