#include "cpu/kernels.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <vector>

using namespace torchgbdt_tests;

namespace {

SplitRecord random_split(Random& random, const BinnedData& data) {
    SplitRecord split{};
    split.found = true;
    split.feature = static_cast<std::int32_t>(random.between(0, data.n_features - 1));
    split.split_bin = static_cast<std::int32_t>(random.between(0, 9));
    split.missing_left = random.chance(50);
    return split;
}

void check_routing(Random& random, std::int64_t n_rows, int n_nodes, int n_threads) {
    const BinnedData data(random, n_rows, 4, 9);
    std::vector<std::uint8_t> columns(data.codes.size());
    transpose_bins(data.matrix(), data.n_value_bins.data(), columns.data(), 1);
    std::vector<RowId> rows = shuffled_rows(random, n_rows);
    std::vector<RowId> expected = rows;
    std::vector<NodeRecord> nodes = random_nodes(random, n_rows, n_nodes);
    nodes.erase(nodes.begin());  // rows of a node that is not split stay where they are
    std::vector<SplitRecord> splits;
    std::vector<std::int64_t> expected_left;
    for (const NodeRecord& node : nodes) {
        const SplitRecord split = random_split(random, data);
        const auto begin = expected.begin() + node.begin;
        const auto middle = std::stable_partition(begin, begin + node.n_rows, [&](RowId row) {
            return data.goes_left(row, split.feature, split.split_bin, split.missing_left);
        });
        splits.push_back(split);
        expected_left.push_back(middle - begin);
    }
    std::vector<RowId> routed(rows.size());
    std::vector<std::uint8_t> sides(rows.size());
    std::vector<std::int64_t> left_rows(nodes.size(), -1);
    route_rows(columns.data(), n_rows, data.n_value_bins.data(), nodes.data(), splits.data(),
               static_cast<std::int64_t>(nodes.size()), rows.data(), n_rows, sides.data(),
               routed.data(), left_rows.data(), n_threads);
    CHECK(routed == expected);
    CHECK(left_rows == expected_left);
}

}  // namespace

TEST(routing_is_a_stable_partition_of_each_node) {
    Random random(15);
    for (int round = 0; round < 40; ++round) {
        check_routing(random, random.between(0, 3000), static_cast<int>(random.between(1, 9)),
                      kThreadCounts[round % 4]);
    }
}

TEST(nodes_of_many_blocks_are_partitioned_across_blocks) {
    Random random(16);
    for (const int n_threads : kThreadCounts) {
        for (const std::int64_t n_rows : {4096, 4097, 8192, 50000}) {
            check_routing(random, n_rows, 2, n_threads);
        }
    }
}

TEST(a_row_that_the_bins_do_not_have_is_refused) {
    Random random(27);
    const BinnedData data(random, 10000, 1, 9);
    const SplitRecord split = random_split(random, data);
    for (const std::int64_t n_rows : {std::int64_t{1}, std::int64_t{4096}, data.n_rows}) {
        std::vector<RowId> rows = shuffled_rows(random, data.n_rows), routed(rows.size());
        std::vector<std::uint8_t> sides(rows.size());
        rows[n_rows - 1] = 10000;
        NodeRecord node{};
        node.n_rows = n_rows;
        std::int64_t left_rows = 0;
        CHECK(check::refused([&] {  // the only column is the bins as they are
            route_rows(data.codes.data(), data.n_rows, data.n_value_bins.data(), &node, &split, 1,
                       rows.data(), data.n_rows, sides.data(), routed.data(), &left_rows, 2);
        }));
    }
}

TEST_MAIN()
