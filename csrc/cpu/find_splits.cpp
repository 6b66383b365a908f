// The best split of each node. The definition is core.splits.find_best_splits.
#include "cpu/float_environment.h"
#include "cpu/kernels.h"
#include "cpu/split_gain.h"
#include "cpu/thread_pool.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

namespace torchgbdt {
namespace {

constexpr std::int64_t kTaskFeatures = 16;      // 16 features of one node: about 10 microseconds
constexpr std::int64_t kWorthwhileBins = 4096;  // as many as such features may have

// The best candidate of some features of a node; gain 0 means none.
struct Candidate {
    double gain = 0.0;
    std::int32_t feature = 0;
    std::int32_t split_bin = 0;
    bool missing_left = false;
};

// What all nodes share.
struct Search {
    const FeatureBins& features;
    const Words& words;
    const SplitRules& rules;
    std::vector<SumUnits> units;              // (n_outputs,)
    std::vector<std::int64_t> hessian_units;  // (n_outputs,); constant Hessians only

    GradientSums sums_of(const std::int64_t* cell, int output) const {
        const std::int64_t gradient = cell[1 + words.gradient(output)];
        return {gradient, words.constant_hessian ? cell[0] * hessian_units[output]
                                                 : cell[1 + words.hessian(output)]};
    }
};

// Scans the features of one node. kOutputs is the number of outputs; 0: known at run time only.
template <int kOutputs>
class NodeScan {
  public:
    NodeScan(const Search& search, const NodeRecord& node, const std::int64_t* node_sums)
        : search_(search), node_(node), parent_(), left_(), with_missing_() {
        for (auto* sums : {&parent_, &left_, &with_missing_}) {
            resize(*sums);
        }
        resize(parent_scores_);
        for (int output = 0; output < n_outputs(); ++output) {
            parent_[output] = {node_sums[2 * output], node_sums[2 * output + 1]};
            parent_scores_[output] =
                score(parent_[output], search.units[output], search.rules.reg_lambda);
        }
    }

    // Candidates in the order of ties: bins ascending, missing-right before missing-left. A later
    // one must gain strictly more.
    void scan(const std::int64_t* cells, std::int32_t feature, Candidate& best) {
        const int cell_size = search_.words.per_cell();
        const std::int32_t n_value_bins = search_.features.n_value_bins[feature];
        const std::int64_t* missing = cells + n_value_bins * cell_size;
        const std::int64_t min_samples = search_.rules.min_samples_leaf;
        std::int64_t left_count = 0;
        std::fill(left_.begin(), left_.end(), GradientSums{0, 0});
        for (std::int32_t bin = 0; bin < n_value_bins; ++bin) {
            const std::int64_t* cell = cells + bin * cell_size;
            if (bin > 0 && cell[0] == 0) {
                continue;  // the same rows on each side as one bin earlier, which wins the tie
            }
            left_count += cell[0];
            add(left_, cell);
            if (node_.count - left_count < min_samples) {
                return;  // and with every further bin
            }
            if (bin + 1 < n_value_bins || missing[0] > 0) {
                consider(left_count, left_, {0.0, feature, bin, false}, best);
            }
            if (missing[0] > 0) {
                std::copy(left_.begin(), left_.end(), with_missing_.begin());
                add(with_missing_, missing);
                consider(left_count + missing[0], with_missing_, {0.0, feature, bin, true}, best);
            }
        }
    }

  private:
    template <typename T>
    using PerOutput = std::conditional_t<kOutputs == 0, std::vector<T>, std::array<T, kOutputs>>;
    using Sums = PerOutput<GradientSums>;

    template <typename Container>
    void resize(Container& container) {
        if constexpr (kOutputs == 0) {
            container.resize(static_cast<std::size_t>(n_outputs()));
        }
    }

    int n_outputs() const { return kOutputs > 0 ? kOutputs : search_.words.n_outputs; }

    void add(Sums& sums, const std::int64_t* cell) {
        for (int output = 0; output < n_outputs(); ++output) {
            const GradientSums more = search_.sums_of(cell, output);
            sums[output].gradient += more.gradient;
            sums[output].hessian += more.hessian;
        }
    }

    void consider(std::int64_t left_count, const Sums& left, Candidate candidate,
                  Candidate& best) const {
        const std::int64_t smaller = std::min(left_count, node_.count - left_count);
        if (smaller < search_.rules.min_samples_leaf || !has_enough_hessian(left) ||
            gains_nothing(left)) {
            return;
        }
        double increase = 0.0;
        for (int output = 0; output < n_outputs(); ++output) {
            const SumUnits& units = search_.units[output];
            const GradientSums right = parent_[output] - left[output];
            const double left_score = score(left[output], units, search_.rules.reg_lambda);
            const double right_score = score(right, units, search_.rules.reg_lambda);
            increase += score_increase(left_score, right_score, parent_scores_[output]);
        }
        candidate.gain = split_gain(increase, search_.rules.gamma);
        if (candidate.gain > best.gain) {
            best = candidate;
        }
    }

    // Outputs whose node has no Hessian are not asked; at least one must be.
    bool has_enough_hessian(const Sums& left) const {
        bool any_asked = false;
        for (int output = 0; output < n_outputs(); ++output) {
            const std::int64_t parent = parent_[output].hessian;
            if (parent > 0) {
                any_asked = true;
                const std::int64_t smaller =
                    std::min(left[output].hessian, parent - left[output].hessian);
                if (smaller < search_.rules.min_hessian[output]) {
                    return false;
                }
            }
        }
        return any_asked;
    }

    bool gains_nothing(const Sums& left) const {
        for (int output = 0; output < n_outputs(); ++output) {
            if (!is_proportional(left[output], parent_[output] - left[output])) {
                return false;
            }
        }
        return true;
    }

    const Search& search_;
    const NodeRecord& node_;
    Sums parent_;
    Sums left_;
    Sums with_missing_;
    PerOutput<double> parent_scores_;
};

template <int kOutputs>
Candidate scan_features(const Search& search, const NodeRecord& node, const std::int64_t* node_sums,
                        const std::int64_t* histogram, std::int64_t first, std::int64_t end) {
    NodeScan<kOutputs> node_scan(search, node, node_sums);
    Candidate best;
    for (std::int64_t feature = first; feature < end; ++feature) {
        const std::int64_t offset = search.features.bin_offsets[feature];
        node_scan.scan(histogram + offset * search.words.per_cell(),
                       static_cast<std::int32_t>(feature), best);
    }
    return best;
}

// Fills the record of a node from its best candidate; `left` receives the sums of the left child.
void write_split(const Search& search, const NodeRecord& node, const std::int64_t* histogram,
                 const Candidate& best, SplitRecord& split, std::int64_t* left) {
    const int n_outputs = search.words.n_outputs;
    split = SplitRecord{};
    std::fill(left, left + 2 * n_outputs, 0);
    if (!(best.gain > 0.0)) {
        return;
    }
    const int cell_size = search.words.per_cell();
    const std::int64_t* cells = histogram + search.features.bin_offsets[best.feature] * cell_size;
    const std::int32_t missing_code = search.features.n_value_bins[best.feature];
    std::int64_t left_count = 0;
    for (std::int32_t bin = 0; bin <= missing_code; ++bin) {
        if (bin <= best.split_bin || (bin == missing_code && best.missing_left)) {
            const std::int64_t* cell = cells + bin * cell_size;
            left_count += cell[0];
            for (int output = 0; output < n_outputs; ++output) {
                const GradientSums sums = search.sums_of(cell, output);
                left[2 * output] += sums.gradient;
                left[2 * output + 1] += sums.hessian;
            }
        }
    }
    const bool has_missing = cells[missing_code * cell_size] > 0;
    split.gain = best.gain;
    split.left_count = left_count;
    split.right_count = node.count - left_count;
    split.feature = best.feature;
    split.split_bin = best.split_bin;
    split.found = true;
    split.missing_left = has_missing ? best.missing_left : left_count > split.right_count;
}

}  // namespace

// Layout: slots (total_bins, words.per_cell()); sums (n_nodes, n_outputs, 2).
// Grid:   one task per node and kTaskFeatures features; one per node joins them in feature order.
// Writes: each first task its candidate, each second task its node's split and left sums.
void find_splits(const FeatureBins& features, const Words& words, const std::int64_t* histograms,
                 const NodeRecord* nodes, const std::int64_t* sums, std::int64_t n_nodes,
                 const SplitRules& rules, SplitRecord* splits, std::int64_t* left_sums,
                 int n_threads) {
    const DefaultFloatEnvironment environment;  // the units below are computed outside of tasks
    Search search{features, words, rules, {}, {}};
    for (int output = 0; output < words.n_outputs; ++output) {
        const std::int64_t* scales = rules.scales + 2 * output;
        search.units.push_back(sum_units(scales[0], scales[1]));
        search.hessian_units.push_back(words.constant_hessian ? Words::hessian_unit(scales[1]) : 0);
    }
    const std::int64_t slot_size = features.total_bins() * words.per_cell();
    const Blocks groups{features.n_features, kTaskFeatures};
    std::vector<Candidate> candidates(static_cast<std::size_t>(n_nodes * groups.count()));
    const auto scan = words.n_outputs == 1 ? scan_features<1> : scan_features<0>;

    n_threads = threads_worth(n_nodes * features.total_bins(), kWorthwhileBins, n_threads);
    parallel_for(n_nodes * groups.count(), n_threads, [&](std::int64_t task, int) {
        const std::int64_t node = task / groups.count();
        const std::int64_t group = task % groups.count();
        candidates[static_cast<std::size_t>(task)] =
            scan(search, nodes[node], sums + node * 2 * words.n_outputs,
                 histograms + nodes[node].slot * slot_size, groups.begin(group), groups.end(group));
    });
    parallel_for(n_nodes, n_threads, [&](std::int64_t node, int) {
        Candidate best;
        for (std::int64_t group = 0; group < groups.count(); ++group) {
            const Candidate& next =
                candidates[static_cast<std::size_t>(node * groups.count() + group)];
            if (next.gain > best.gain) {
                best = next;
            }
        }
        write_split(search, nodes[node], histograms + nodes[node].slot * slot_size, best,
                    splits[node], left_sums + node * 2 * words.n_outputs);
    });
}

}  // namespace torchgbdt
