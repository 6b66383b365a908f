#include "cpu/kernels.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

using namespace torchgbdt_tests;

namespace {

std::int32_t leaf_of(const TreeView& tree, const std::function<bool(std::int32_t)>& goes_left) {
    std::int32_t node = 0;
    while (!tree.is_leaf(node)) {
        node = tree.left[node] + (goes_left(node) ? 0 : 1);
    }
    return node;
}

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

bool throws(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::invalid_argument&) {
        return true;
    }
    return false;
}

}  // namespace

TEST(update_predictions_adds_the_leaf_of_each_row) {
    Random random(17);
    for (int round = 0; round < 40; ++round) {
        const BinnedData data(random, random.between(0, 9000), random.between(1, 6), 255);
        const int n_outputs = round % 2 == 0 ? 1 : 3;
        const RandomTree tree(random, static_cast<int>(random.between(0, 60)), data, n_outputs);
        const std::int64_t n_columns = 3, output = round % 3;
        std::vector<float> predictions(data.n_rows * n_columns, 0.25f);
        std::vector<float> expected = predictions;
        update_predictions(data.matrix(), data.n_value_bins.data(), tree.view(), output, n_columns,
                           predictions.data(), kThreadCounts[round % 4]);
        for (std::int64_t row = 0; row < data.n_rows; ++row) {
            const std::int32_t leaf = leaf_of(tree.view(), [&](std::int32_t node) {
                return data.goes_left(row, tree.feature[node], tree.split_bin[node],
                                      tree.view().missing_left(node));
            });
            for (int i = 0; i < n_outputs; ++i) {
                const std::int64_t column = n_outputs == 1 ? output : i;
                expected[row * n_columns + column] += tree.value[leaf * n_outputs + i];
            }
        }
        CHECK(predictions == expected);
    }
}

TEST(sums_are_flushed_after_each_tree) {
    const float tiny = std::numeric_limits<float>::min();
    Random random(18);
    const BinnedData data(random, 2, 1, 3);
    RandomTree tree(random, 0, data, 1);
    tree.value[0] = -0.75f * tiny * 2.0f;
    std::vector<float> predictions{2.0f * tiny, 1.0f};
    update_predictions(data.matrix(), data.n_value_bins.data(), tree.view(), 0, 1,
                       predictions.data(), 1);
    CHECK(predictions == (std::vector<float>{0.0f, 1.0f}));  // 0.5 * tiny is none
}

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

TEST(a_tree_that_would_leave_its_arrays_is_refused) {
    Random random(21);
    const BinnedData data(random, 10, 2, 3);
    std::vector<float> predictions(10);
    const auto refused = [&](const std::function<void(RandomTree&)>& damage) {
        RandomTree tree(random, 3, data, 1);
        damage(tree);
        return throws([&] {
            update_predictions(data.matrix(), data.n_value_bins.data(), tree.view(), 0, 1,
                               predictions.data(), 1);
        });
    };
    CHECK(!refused([](RandomTree&) {}));
    CHECK(refused([](RandomTree& tree) { tree.feature[0] = 2; }));
    CHECK(refused([](RandomTree& tree) { tree.feature[0] = -1; }));
    CHECK(refused([](RandomTree& tree) { tree.left[0] = 0; }));
    CHECK(refused([](RandomTree& tree) { tree.left[0] = 6; }));
    CHECK(refused([](RandomTree& tree) { tree.left[0] = -2; }));
    CHECK(refused([](RandomTree& tree) { tree.feature.clear(); }));
}

TEST_MAIN()
