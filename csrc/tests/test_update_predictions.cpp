#include "cpu/kernels.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <functional>
#include <limits>
#include <vector>

using namespace torchgbdt_tests;

namespace {

// The bins column-major.
struct Columns {
    explicit Columns(const BinnedData& data) : data(data), codes(data.codes.size()) {
        transpose_bins(data.matrix(), data.n_value_bins.data(), codes.data(), 1);
    }
    BinColumns view() const { return {codes.data(), data.n_rows, data.n_features}; }

    const BinnedData& data;
    std::vector<std::uint8_t> codes;
};

// Predictions after the tree, by one plain walk per row.
std::vector<float> expected_predictions(const BinnedData& data, const RandomTree& tree,
                                        std::int64_t output, std::int64_t n_columns,
                                        std::vector<float> predictions) {
    for (std::int64_t row = 0; row < data.n_rows; ++row) {
        const std::int32_t leaf = leaf_of(tree.view(), [&](std::int32_t node) {
            return data.goes_left(row, tree.feature[node], tree.split_bin[node],
                                  tree.view().missing_left(node));
        });
        for (int i = 0; i < tree.n_outputs; ++i) {
            const std::int64_t column = tree.n_outputs == 1 ? output : i;
            predictions[row * n_columns + column] += tree.value[leaf * tree.n_outputs + i];
        }
    }
    return predictions;
}

}  // namespace

TEST(update_predictions_adds_the_leaf_of_each_row) {
    Random random(17);
    for (int round = 0; round < 60; ++round) {
        const BinnedData data(random, random.between(0, 9000), random.between(1, 6), 255);
        const int n_outputs = round % 2 == 0 ? 1 : 3;
        // Programs alone, and programs with walks below them.
        const int n_splits = static_cast<int>(random.between(0, round % 3 == 0 ? 700 : 60));
        const RandomTree tree(random, n_splits, data, n_outputs);
        const std::int64_t n_columns = round % 4 == 0 ? 1 : 3;
        const std::int64_t output = n_columns == 1 ? 0 : round % 3;
        std::vector<float> predictions(data.n_rows * n_columns, 0.25f);
        const std::vector<float> expected =
            expected_predictions(data, tree, output, n_columns, predictions);
        update_predictions(Columns(data).view(), data.n_value_bins.data(), tree.view(), output,
                           n_columns, predictions.data(), kThreadCounts[round % 4]);
        CHECK(predictions == expected);
    }
}

TEST(a_tree_may_split_on_more_features_than_a_step_can_name) {
    Random random(22);
    const BinnedData data(random, 5, 66000, 3);
    RandomTree tree(random, 66000, data, 1);
    std::int32_t next = 0;
    for (std::int32_t& feature : tree.feature) {
        feature = feature < 0 ? feature : next++;
    }
    std::vector<float> predictions(5);
    const std::vector<float> expected = expected_predictions(data, tree, 0, 1, predictions);
    update_predictions(Columns(data).view(), data.n_value_bins.data(), tree.view(), 0, 1,
                       predictions.data(), 2);
    CHECK(predictions == expected);
}

TEST(sums_are_flushed_after_each_tree) {
    const float tiny = std::numeric_limits<float>::min();
    Random random(18);
    const BinnedData data(random, 2, 1, 3);
    RandomTree tree(random, 0, data, 1);
    tree.value[0] = -0.75f * tiny * 2.0f;
    std::vector<float> predictions{2.0f * tiny, 1.0f};
    update_predictions(Columns(data).view(), data.n_value_bins.data(), tree.view(), 0, 1,
                       predictions.data(), 1);
    CHECK(predictions == (std::vector<float>{0.0f, 1.0f}));  // 0.5 * tiny is none
}

TEST(a_tree_that_would_leave_its_arrays_is_refused) {
    Random random(21);
    const BinnedData data(random, 10, 2, 3);
    std::vector<float> predictions(10);
    const auto refused = [&](const std::function<void(RandomTree&)>& damage) {
        RandomTree tree(random, 3, data, 1);
        damage(tree);
        return check::refused([&] {
            update_predictions(Columns(data).view(), data.n_value_bins.data(), tree.view(), 0, 1,
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
