// Trees packed for traversal: all rows of a block take one step down at a time, so that their loads
// overlap and no branch depends on the data. Leaves step to themselves.
#pragma once

#include "cpu/bin_test.h"
#include "cpu/views.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

namespace torchgbdt {

// A node that compares bins.
struct BinStep {
    std::int32_t left;
    std::int32_t feature;
    BinTest test;

    bool goes_right(std::uint8_t code) const { return test.goes_right(code); }
};

// A node that compares raw values as float64.
struct ValueStep {
    double threshold;
    std::int32_t left;
    std::uint32_t feature : 31;
    std::uint32_t missing_left : 1;

    bool goes_right(double x) const {
        return static_cast<bool>((x > threshold) | ((x != x) & (missing_left == 0)));
    }
};

template <typename Step>
struct PackedTree {
    std::vector<Step> steps;
    int depth = 0;
};

// Packs one tree, node by node, by make_split(node); throws if a feature or a child is out of
// range, so that no traversal can leave the tree or the row.
template <typename Step, typename MakeSplit>
PackedTree<Step> pack_tree(const TreeView& tree, std::int64_t n_features, const Step& leaf,
                           const MakeSplit& make_split) {
    if (tree.n_nodes < 1 || tree.n_nodes > std::numeric_limits<std::int32_t>::max()) {
        throw std::invalid_argument("a tree has no nodes, or too many");
    }
    PackedTree<Step> packed;
    packed.steps.reserve(static_cast<std::size_t>(tree.n_nodes));
    std::vector<int> depths(static_cast<std::size_t>(tree.n_nodes), 0);
    for (std::int32_t node = 0; node < tree.n_nodes; ++node) {
        if (tree.is_leaf(node)) {
            packed.steps.push_back(leaf);
            packed.steps.back().left = node;
            continue;
        }
        const std::int64_t left = tree.left[node];
        if (left <= node || left + 1 >= tree.n_nodes) {
            throw std::invalid_argument("a tree has a child out of range");
        }
        if (tree.feature[node] < 0 || tree.feature[node] >= n_features) {
            throw std::invalid_argument("a tree splits on a feature that the data lacks");
        }
        packed.steps.push_back(make_split(node));
        for (const auto child : {left, left + 1}) {
            int& depth = depths[static_cast<std::size_t>(child)];
            depth = std::max(depth, depths[static_cast<std::size_t>(node)] + 1);
            packed.depth = std::max(packed.depth, depth);
        }
    }
    return packed;
}

inline PackedTree<BinStep> pack_for_bins(const TreeView& tree, std::int64_t n_features,
                                         const std::int32_t* n_value_bins) {
    const BinStep leaf{0, 0, BinTest::always_left()};
    return pack_tree(tree, n_features, leaf, [&](std::int64_t node) {
        const std::int32_t feature = tree.feature[node];
        const BinTest test(tree.split_bin[node], n_value_bins[feature], tree.missing_left(node));
        return BinStep{tree.left[node], feature, test};
    });
}

inline PackedTree<ValueStep> pack_for_values(const TreeView& tree, std::int64_t n_features) {
    const ValueStep leaf{std::numeric_limits<double>::infinity(), 0, 0, 1};
    return pack_tree(tree, n_features, leaf, [&](std::int64_t node) {
        return ValueStep{tree.threshold[node], tree.left[node],
                         static_cast<std::uint32_t>(tree.feature[node]) & 0x7fffffffu,
                         tree.missing_left(node) ? 1u : 0u};
    });
}

// nodes[i] = leaf of row i; row i lies at rows + i * row_stride.
template <typename Step, typename Value>
void find_leaves(const PackedTree<Step>& tree, const Value* rows, std::int64_t row_stride,
                 std::int64_t n_rows, std::int32_t* nodes) {
    std::fill(nodes, nodes + n_rows, 0);
    const Step* steps = tree.steps.data();
    for (int level = 0; level < tree.depth; ++level) {
        for (std::int64_t i = 0; i < n_rows; ++i) {
            const Step& step = steps[nodes[i]];
            nodes[i] = step.left + (step.goes_right(rows[i * row_stride + step.feature]) ? 1 : 0);
        }
    }
}

}  // namespace torchgbdt
