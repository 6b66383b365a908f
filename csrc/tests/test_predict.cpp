#include "cpu/kernels.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <cmath>
#include <limits>
#include <vector>

using namespace torchgbdt_tests;

namespace {

std::int32_t leaf_by_value(const TreeView& tree, const std::vector<float>& x, std::int64_t row,
                           std::int64_t n_features) {
    return leaf_of(tree, [&](std::int32_t node) {
        const float value = x[row * n_features + tree.feature[node]];
        return std::isnan(value) ? tree.missing_left(node) : value <= tree.threshold[node];
    });
}

struct RandomForest {
    RandomForest(Random& random, int n_trees, const BinnedData& data, int n_outputs)
        : nodes(random, 0, data, n_outputs), offsets{0} {
        nodes.feature.clear();
        nodes.threshold.clear();
        nodes.left.clear();
        nodes.flags.clear();
        nodes.value.clear();
        for (int i = 0; i < n_trees; ++i) {
            const RandomTree tree(random, static_cast<int>(random.between(0, 20)), data, n_outputs);
            append(nodes.feature, tree.feature);
            append(nodes.threshold, tree.threshold);
            append(nodes.left, tree.left);
            append(nodes.flags, tree.flags);
            append(nodes.value, tree.value);
            offsets.push_back(static_cast<std::int64_t>(nodes.feature.size()));
        }
    }

    template <typename T>
    static void append(std::vector<T>& to, const std::vector<T>& from) {
        to.insert(to.end(), from.begin(), from.end());
    }

    ForestView view() const {
        return {nodes.view(), offsets.data(), static_cast<std::int64_t>(offsets.size()) - 1};
    }

    RandomTree nodes;
    std::vector<std::int64_t> offsets;
};

}  // namespace

TEST(predict_follows_raw_values_tree_by_tree) {
    Random random(19);
    for (int round = 0; round < 30; ++round) {
        const BinnedData data(random, 0, random.between(1, 6), 255);
        const std::int64_t n_rows = random.between(0, 700), n_features = data.n_features;
        std::vector<float> x;
        for (std::int64_t i = 0; i < n_rows * n_features; ++i) {
            x.push_back(random.chance(20) ? std::nanf("") : float(random.between(-4, 4)));
        }
        const MatrixView matrix{reinterpret_cast<const char*>(x.data()),
                                n_rows,
                                n_features,
                                4 * n_features,
                                4,
                                ElementType::float32};
        const int n_outputs = round % 2 == 0 ? 1 : 2;
        const RandomForest forest(random, 5, data, n_outputs);
        const ForestView view = forest.view();
        std::vector<float> sums(n_rows * 2, 0.5f), expected = sums;
        std::vector<std::int32_t> leaves(n_rows * 5, -1), expected_leaves = leaves;
        predict(view, matrix, 2, sums.data(), kThreadCounts[round % 4]);
        predict_leaves(view, matrix, leaves.data(), kThreadCounts[round % 4]);
        for (std::int64_t row = 0; row < n_rows; ++row) {
            for (std::int64_t t = 0; t < 5; ++t) {
                const TreeView tree = view.tree(t);
                const std::int32_t leaf = leaf_by_value(tree, x, row, n_features);
                expected_leaves[row * 5 + t] = leaf;
                for (int i = 0; i < n_outputs; ++i) {
                    const std::int64_t column = n_outputs == 1 ? t % 2 : i;
                    expected[row * 2 + column] += tree.value[leaf * n_outputs + i];
                }
            }
        }
        CHECK(sums == expected);
        CHECK(leaves == expected_leaves);
    }
}

TEST(infinite_thresholds_separate_values_from_missing_ones) {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> x{infinity, -infinity, 0.0f, std::nanf("")};
    const MatrixView matrix{
        reinterpret_cast<const char*>(x.data()), 4, 1, 4, 4, ElementType::float32};
    Random random(20);
    const BinnedData data(random, 0, 1, 3);
    RandomForest forest(random, 0, data, 1);
    forest.nodes = RandomTree(random, 1, data, 1);
    forest.offsets = {0, 3};
    forest.nodes.flags[0] = 0;
    std::vector<std::int32_t> leaves(4);
    forest.nodes.threshold[0] = HUGE_VAL;
    predict_leaves(forest.view(), matrix, leaves.data(), 1);
    CHECK(leaves == (std::vector<std::int32_t>{1, 1, 1, 2}));
    forest.nodes.threshold[0] = -HUGE_VAL;
    forest.nodes.flags[0] = kMissingLeft;
    predict_leaves(forest.view(), matrix, leaves.data(), 1);
    CHECK(leaves == (std::vector<std::int32_t>{2, 1, 2, 1}));
}

TEST_MAIN()
