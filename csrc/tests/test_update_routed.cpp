#include "cpu/kernels.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <vector>

using namespace torchgbdt_tests;

namespace {

// Rows of a random tree, routed through as many of its splits as asked for.
struct RoutedRows {
    RoutedRows(Random& random, const BinnedData& data, const RandomTree& tree, int n_routed)
        : data(data), columns(data.codes.size()), row_order(shuffled_rows(random, data.n_rows)) {
        transpose_bins(data.matrix(), data.n_value_bins.data(), columns.data(), 1);
        std::vector<NodeRecord> places(tree.left.size());
        places[0].n_rows = data.n_rows;
        for (std::int32_t node = 0; node < static_cast<std::int32_t>(places.size()); ++node) {
            if (!tree.view().is_leaf(node) && n_routed-- > 0) {
                places[node].node = node;
                route(tree, places[node]);
                NodeRecord *left = &places[tree.left[node]], *right = left + 1;
                left->begin = places[node].begin;
                left->n_rows = left_rows.back();
                right->begin = left->begin + left->n_rows;
                right->n_rows = places[node].n_rows - left->n_rows;
            }
        }
    }

    void route(const RandomTree& tree, const NodeRecord& node) {
        SplitRecord split{};
        split.feature = tree.feature[node.node];
        split.split_bin = tree.split_bin[node.node];
        split.missing_left = tree.view().missing_left(node.node);
        std::vector<RowId> routed(row_order.size());
        std::vector<std::uint8_t> sides(row_order.size());
        std::int64_t n_left = 0;
        route_rows(columns.data(), data.n_rows, data.n_value_bins.data(), &node, &split, 1,
                   row_order.data(), data.n_rows, sides.data(), routed.data(), &n_left, 1);
        row_order = routed;
        nodes.push_back(node);
        splits.push_back(split);
        left_rows.push_back(n_left);
    }

    bool update(const RandomTree& tree, std::int64_t output, std::int64_t n_columns,
                std::vector<float>& predictions, int n_threads) const {
        const RoutedNodes routed{nodes.data(), splits.data(), left_rows.data(),
                                 static_cast<std::int64_t>(nodes.size())};
        return update_routed(view(), data.n_value_bins.data(), tree.view(), routed,
                             row_order.data(), data.n_rows, output, n_columns, predictions.data(),
                             n_threads);
    }
    BinColumns view() const { return {columns.data(), data.n_rows, data.n_features}; }

    const BinnedData& data;
    std::vector<std::uint8_t> columns;
    std::vector<RowId> row_order;
    std::vector<NodeRecord> nodes;
    std::vector<SplitRecord> splits;
    std::vector<std::int64_t> left_rows;
};

}  // namespace

TEST(routed_rows_get_the_leaves_that_a_walk_finds) {
    Random random(31);
    for (int round = 0; round < 40; ++round) {
        const BinnedData data(random, random.between(1, 9000), random.between(1, 6), 255);
        const int n_outputs = round % 2 == 0 ? 1 : 3;
        const int n_splits = static_cast<int>(random.between(0, 40));
        const RandomTree tree(random, n_splits, data, n_outputs);
        const RoutedRows rows(random, data, tree, static_cast<int>(random.between(0, n_splits)));
        const std::int64_t n_columns = round % 4 == 0 ? 1 : 3;
        const std::int64_t output = n_columns == 1 ? 0 : round % 3;
        std::vector<float> predictions(data.n_rows * n_columns, 0.25f);
        std::vector<float> expected = predictions;
        update_predictions(rows.view(), data.n_value_bins.data(), tree.view(), output, n_columns,
                           expected.data(), 1);
        CHECK(rows.update(tree, output, n_columns, predictions, kThreadCounts[round % 4]));
        CHECK(predictions == expected);
    }
}

TEST(rows_that_were_routed_otherwise_are_left_alone) {
    Random random(32);
    const BinnedData data(random, 500, 3, 255);
    const RandomTree tree(random, 5, data, 1);
    const RoutedRows rows(random, data, tree, 5);
    const std::vector<float> given(500, 0.25f);
    const auto is_refused = [&](RandomTree other, RoutedRows routed) {
        std::vector<float> predictions = given;
        return !routed.update(other, 0, 1, predictions, 2) && predictions == given;
    };
    RandomTree other = tree;
    other.split_bin[0] += 1;
    CHECK(is_refused(other, rows));
    other = tree;
    other.feature[0] = (other.feature[0] + 1) % 3;
    CHECK(is_refused(other, rows));
    other = tree;
    other.flags[0] ^= kMissingLeft;
    CHECK(is_refused(other, rows));
    CHECK(is_refused(RandomTree(random, 0, data, 1), rows));
    RoutedRows moved = rows;
    moved.left_rows[0] += 1;
    CHECK(is_refused(tree, moved));
    moved.left_rows[0] = 501;
    CHECK(is_refused(tree, moved));
    RoutedRows shifted = rows;
    shifted.nodes[1].begin += 1;
    CHECK(is_refused(tree, shifted));
    for (const std::int64_t n_left : {std::int64_t{-1}, std::int64_t{501}, INT64_MAX, INT64_MIN}) {
        RoutedRows once(random, data, tree, 1);  // no node below it can tell
        CHECK(once.left_rows.size() == 1 && !is_refused(tree, once));
        once.left_rows[0] = n_left;
        CHECK(is_refused(tree, once));
    }
    const RandomTree one_leaf(random, 0, data, 1);
    RoutedRows beyond(random, data, one_leaf, 0);  // from a leaf, by what leaves have for a split
    beyond.nodes.emplace_back();
    beyond.nodes[0].n_rows = 500;
    beyond.splits.emplace_back();
    beyond.splits[0].feature = -1;
    beyond.left_rows.push_back(0);
    CHECK(is_refused(one_leaf, beyond));
    RoutedRows twice = rows;  // the children of the root would be ends, and those below them
    twice.nodes.push_back(twice.nodes[0]);
    twice.splits.push_back(twice.splits[0]);
    twice.left_rows.push_back(twice.left_rows[0]);
    CHECK(is_refused(tree, twice));
}

TEST_MAIN()
