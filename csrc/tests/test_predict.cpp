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
    RandomForest(Random& random, int n_trees, const BinnedData& data, int n_outputs,
                 int most_splits = 20)
        : nodes(random, 0, data, n_outputs), offsets{0} {
        nodes.feature.clear();
        nodes.threshold.clear();
        nodes.left.clear();
        nodes.flags.clear();
        nodes.value.clear();
        for (int i = 0; i < n_trees; ++i) {
            const RandomTree tree(random, static_cast<int>(random.between(0, most_splits)), data,
                                  n_outputs);
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

// Enough rows for codes; trees of more splits than a program has; thresholds of every kind.
TEST(large_trees_and_many_thresholds_are_followed) {
    Random random(22);
    for (int round = 0; round < 12; ++round) {
        const BinnedData data(random, 0, round % 3 + 1, 255);
        const std::int64_t n_features = data.n_features, n_rows = random.between(9000, 9500);
        RandomForest forest(random, 3, data, 1, round % 2 == 0 ? 120 : 1200);
        const int n_values = round < 6 ? 100 : 2000;  // of thresholds: more than fit into codes
        for (double& threshold : forest.nodes.threshold) {
            const double infinity = random.chance(50) ? HUGE_VAL : -HUGE_VAL;
            threshold = random.chance(2) ? infinity : double(random.between(0, n_values)) / 7.0;
        }
        std::vector<float> x;
        for (std::int64_t i = 0; i < n_rows * n_features; ++i) {
            const float value = float(random.between(-1, n_values + 1)) / 7.0f;
            x.push_back(random.chance(5) ? std::nanf("") : value);
        }
        const MatrixView matrix{reinterpret_cast<const char*>(x.data()),
                                n_rows,
                                n_features,
                                4 * n_features,
                                4,
                                ElementType::float32};
        const ForestView view = forest.view();
        std::vector<std::int32_t> leaves(n_rows * 3, -1), expected_leaves = leaves;
        std::vector<float> sums(n_rows, 0.0f), expected(n_rows, 0.0f);
        predict_leaves(view, matrix, leaves.data(), kThreadCounts[round % 4]);
        predict(view, matrix, 1, sums.data(), kThreadCounts[round % 4]);
        for (std::int64_t row = 0; row < n_rows; ++row) {
            for (std::int64_t t = 0; t < 3; ++t) {
                const std::int32_t leaf = leaf_by_value(view.tree(t), x, row, n_features);
                expected_leaves[row * 3 + t] = leaf;
                expected[row] += view.tree(t).value[leaf];
            }
        }
        CHECK(leaves == expected_leaves);
        CHECK(sums == expected);
    }
}

// Every leaf of a complete tree is as deep as the tree: no level may be left out.
TEST(complete_trees_are_followed_down_to_their_leaves) {
    Random random(25);
    for (const int depth : {1, 2, 3, 6, 7, 8, 9, 10, 11}) {
        const int n_splits = (1 << depth) - 1;
        const BinnedData data(random, 0, 3, 3);
        RandomForest forest(random, 0, data, 1);
        forest.nodes = RandomTree(random, n_splits, data, 1);
        forest.offsets = {0, 2 * n_splits + 1};
        for (int node = 0; node <= 2 * n_splits; ++node) {
            const bool is_split = node < n_splits;
            forest.nodes.feature[node] = is_split ? std::int32_t(random.between(0, 2)) : -1;
            forest.nodes.threshold[node] = is_split ? double(random.between(0, 200)) : 0.0;
            forest.nodes.left[node] = is_split ? 2 * node + 1 : -1;
            forest.nodes.flags[node] = is_split ? (random.chance(50) ? kMissingLeft : 0) : kLeaf;
        }
        const std::int64_t n_rows = 20000;
        std::vector<float> x;
        while (std::int64_t(x.size()) < 3 * n_rows) {
            x.push_back(random.chance(10) ? std::nanf("") : float(random.between(0, 200)));
        }
        const MatrixView matrix{
            reinterpret_cast<const char*>(x.data()), n_rows, 3, 12, 4, ElementType::float32};
        std::vector<std::int32_t> leaves(n_rows), expected;
        predict_leaves(forest.view(), matrix, leaves.data(), 2);
        for (std::int64_t row = 0; row < n_rows; ++row) {
            expected.push_back(leaf_by_value(forest.view().tree(0), x, row, 3));
        }
        CHECK(leaves == expected);
    }
}

// 254 thresholds fit into codes, and +inf beside them; one more does not.
TEST(as_many_thresholds_as_codes_are_followed) {
    Random random(23);
    for (const int n_thresholds : {253, 254, 255, 256}) {
        for (const bool with_infinity : {false, true}) {
            const BinnedData data(random, 0, 1, 3);
            RandomForest forest(random, 0, data, 1);
            forest.nodes = RandomTree(random, n_thresholds, data, 1);
            forest.offsets = {0, 2 * n_thresholds + 1};
            double next = 0.0;
            for (std::size_t node = 0; node < forest.nodes.threshold.size(); ++node) {
                if (forest.nodes.feature[node] == 0) {
                    const bool is_last = next == n_thresholds - 1;
                    forest.nodes.threshold[node] = with_infinity && is_last ? HUGE_VAL : next;
                    next += 1.0;
                }
            }
            std::vector<float> x{HUGE_VALF, -HUGE_VALF, 1e9f, std::nanf("")};
            while (x.size() < 4000) {
                x.push_back(float(random.between(-2, 2 * n_thresholds)) / 2.0f);
            }
            const MatrixView matrix{
                reinterpret_cast<const char*>(x.data()), 4000, 1, 4, 4, ElementType::float32};
            std::vector<std::int32_t> leaves(4000), expected;
            predict_leaves(forest.view(), matrix, leaves.data(), 2);
            for (std::int64_t row = 0; row < 4000; ++row) {
                expected.push_back(leaf_by_value(forest.view().tree(0), x, row, 1));
            }
            CHECK(leaves == expected);
        }
    }
}

TEST(sums_are_flushed_after_each_tree_of_many_rows) {
    const float tiny = std::numeric_limits<float>::min();
    Random random(24);
    const BinnedData data(random, 0, 1, 3);
    RandomForest forest(random, 0, data, 1);
    for (int tree = 0; tree < 3; ++tree) {
        RandomForest::append(forest.nodes.feature, {-1});
        RandomForest::append(forest.nodes.threshold, {0.0});
        RandomForest::append(forest.nodes.left, {-1});
        RandomForest::append(forest.nodes.flags, {kLeaf});
        forest.offsets.push_back(tree + 1);
    }
    RandomForest::append(forest.nodes.value, {2.0f * tiny, -1.5f * tiny, 1.5f * tiny});
    const std::vector<float> x(1000, 0.0f);
    for (const std::int64_t n_rows : {3, 1000}) {
        const MatrixView matrix{
            reinterpret_cast<const char*>(x.data()), n_rows, 1, 4, 4, ElementType::float32};
        std::vector<float> sums(static_cast<std::size_t>(n_rows), 0.0f);
        predict(forest.view(), matrix, 1, sums.data(), 1);
        CHECK(sums == std::vector<float>(sums.size(), 1.5f * tiny));  // 0.5 * tiny is none
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
