// Random inputs for the kernel tests, the same on every machine, and views of them.
#pragma once

#include "cpu/kernels.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace torchgbdt_tests {

using namespace torchgbdt;

constexpr int kThreadCounts[] = {1, 2, 3, 7};

// splitmix64.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t word() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    std::int64_t between(std::int64_t low, std::int64_t high) {  // both included
        return low + static_cast<std::int64_t>(word() % static_cast<std::uint64_t>(high - low + 1));
    }
    bool chance(int percent) { return between(0, 99) < percent; }
    float number() { return static_cast<float>(between(-1000000, 1000000)) * 1e-5f; }

  private:
    std::uint64_t state_;
};

inline std::vector<float> random_floats(Random& random, std::int64_t count) {
    std::vector<float> result;
    for (std::int64_t i = 0; i < count; ++i) {
        result.push_back(random.number());
    }
    return result;
}

// Quantized rows. About one row in six is missing, where the feature has missing rows at all.
struct BinnedData {
    BinnedData(Random& random, std::int64_t n_rows, std::int64_t n_features, int max_value_bins)
        : n_rows(n_rows), n_features(n_features), bin_offsets{0} {
        for (std::int64_t feature = 0; feature < n_features; ++feature) {
            const auto bins = static_cast<std::int32_t>(random.between(0, max_value_bins));
            n_value_bins.push_back(bins);
            bin_offsets.push_back(bin_offsets.back() + bins + 1);
        }
        codes.resize(static_cast<std::size_t>(n_rows * n_features));
        for (std::int64_t feature = 0; feature < n_features; ++feature) {
            const std::int32_t bins = n_value_bins[feature];
            const int percent_missing = random.chance(50) ? 16 : 0;
            for (std::int64_t row = 0; row < n_rows; ++row) {
                const bool is_missing = bins == 0 || random.chance(percent_missing);
                codes[row * n_features + feature] =
                    static_cast<std::uint8_t>(is_missing ? bins : random.between(0, bins - 1));
            }
        }
    }

    BinMatrix matrix() const { return {codes.data(), n_rows, n_features}; }
    FeatureBins features() const { return {n_value_bins.data(), bin_offsets.data(), n_features}; }
    std::uint8_t code(std::int64_t row, std::int64_t feature) const {
        return codes[row * n_features + feature];
    }
    bool goes_left(std::int64_t row, std::int32_t feature, std::int32_t split_bin,
                   bool missing_left) const {
        const std::int32_t bin = code(row, feature);
        return bin == n_value_bins[feature] ? missing_left : bin <= split_bin;
    }

    std::int64_t n_rows;
    std::int64_t n_features;
    std::vector<std::int32_t> n_value_bins;
    std::vector<std::int64_t> bin_offsets;
    std::vector<std::uint8_t> codes;
};

inline std::vector<RowId> shuffled_rows(Random& random, std::int64_t n_rows) {
    std::vector<RowId> rows(static_cast<std::size_t>(n_rows));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i] = static_cast<RowId>(i);
        std::swap(rows[i], rows[random.between(0, static_cast<std::int64_t>(i))]);
    }
    return rows;
}

// Cuts n_rows into n_nodes stretches, some of them empty.
inline std::vector<NodeRecord> random_nodes(Random& random, std::int64_t n_rows, int n_nodes) {
    std::vector<std::int64_t> cuts{0, n_rows};
    for (int i = 1; i < n_nodes; ++i) {
        cuts.push_back(random.between(0, n_rows));
    }
    std::sort(cuts.begin(), cuts.end());
    std::vector<NodeRecord> nodes(static_cast<std::size_t>(n_nodes));
    for (int i = 0; i < n_nodes; ++i) {
        NodeRecord& node = nodes[i];
        node.begin = cuts[i];
        node.n_rows = cuts[i + 1] - cuts[i];
        node.count = node.n_rows;
        node.node = i;
        node.slot = n_nodes - 1 - i;
        node.sibling_slot = -1;
        node.build = true;
    }
    return nodes;
}

// A well-formed tree: children of the i-th split are nodes 2i + 1 and 2i + 2.
struct RandomTree {
    RandomTree(Random& random, int n_splits, const BinnedData& data, int n_outputs)
        : n_outputs(n_outputs) {
        std::vector<bool> splits(static_cast<std::size_t>(2 * n_splits + 1), false);
        for (int i = 0, node = 0; i < n_splits; ++node) {
            const bool must_split = node == 2 * i;  // no other open node is left
            if (must_split || random.chance(50)) {
                splits[static_cast<std::size_t>(node)] = true;
                ++i;
            }
        }
        std::int32_t next_child = 1;
        for (const bool is_split : splits) {
            const auto chosen = static_cast<std::int32_t>(random.between(0, data.n_features - 1));
            feature.push_back(is_split ? chosen : -1);
            split_bin.push_back(is_split ? random.between(0, 254) % 256 : 0);
            threshold.push_back(is_split ? static_cast<double>(random.between(-3, 3)) : 0.0);
            left.push_back(is_split ? next_child : -1);
            next_child += is_split ? 2 : 0;
            const std::uint8_t missing = random.chance(50) ? kMissingLeft : 0;
            flags.push_back(is_split ? missing : kLeaf);
            for (int output = 0; output < n_outputs; ++output) {
                value.push_back(is_split ? 0.0f : random.number());
            }
        }
    }

    TreeView view() const {
        return {feature.data(),
                split_bin.data(),
                threshold.data(),
                left.data(),
                flags.data(),
                value.data(),
                static_cast<std::int64_t>(feature.size()),
                n_outputs};
    }

    int n_outputs;
    std::vector<std::int32_t> feature;
    std::vector<std::int32_t> split_bin;
    std::vector<double> threshold;
    std::vector<std::int32_t> left;
    std::vector<std::uint8_t> flags;
    std::vector<float> value;
};

// The leaf that a row reaches, one step after the other.
inline std::int32_t leaf_of(const TreeView& tree,
                            const std::function<bool(std::int32_t)>& goes_left) {
    std::int32_t node = 0;
    while (!tree.is_leaf(node)) {
        node = tree.left[node] + (goes_left(node) ? 0 : 1);
    }
    return node;
}

}  // namespace torchgbdt_tests
