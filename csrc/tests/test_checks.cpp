#include "cpu/checks.h"
#include "tests/check.h"

#include <vector>

using namespace torchgbdt;
using check::refused;

namespace {

NodeRecord node(std::int64_t begin, std::int64_t n_rows, std::int32_t slot,
                std::int32_t sibling_slot, bool build) {
    NodeRecord record{};
    record.begin = begin;
    record.n_rows = n_rows;
    record.slot = slot;
    record.sibling_slot = sibling_slot;
    record.build = build;
    return record;
}

}  // namespace

TEST(rows_outside_the_matrix_are_refused) {
    const std::vector<std::int64_t> good{0, 4}, beyond{0, 5}, negative{-1, 2};
    CHECK(!refused([&] { check_rows(good.data(), 2, 5); }));
    CHECK(refused([&] { check_rows(beyond.data(), 2, 5); }));
    CHECK(refused([&] { check_rows(negative.data(), 2, 5); }));
}

TEST(row_ids_that_the_bins_do_not_have_are_refused) {
    const std::vector<RowId> rows{0, 4, 2, 0xffffffffu, 3, 5};
    const auto is_refused = [&](std::int64_t first, std::int64_t count, std::int64_t n_rows) {
        return refused([&] { check_row_order(rows.data() + first, count, n_rows); });
    };
    CHECK(!is_refused(0, 3, 5));
    CHECK(is_refused(0, 3, 4));
    CHECK(is_refused(0, 4, 6));
    CHECK(is_refused(4, 2, 5));
    CHECK(!is_refused(0, 6, std::int64_t{1} << 32));  // as many rows as there are row ids
    CHECK(is_refused(0, 6, (std::int64_t{1} << 32) - 1));
    CHECK(!is_refused(0, 0, 0));
    CHECK(is_refused(0, 1, 0));
}

TEST(nodes_outside_the_row_order_are_refused) {
    const auto is_refused = [](const NodeRecord& record) {
        return refused([&] { check_nodes(&record, 1, 10); });
    };
    CHECK(!is_refused(node(0, 10, 0, -1, true)));
    CHECK(!is_refused(node(10, 0, 0, -1, true)));
    CHECK(is_refused(node(1, 10, 0, -1, true)));
    CHECK(is_refused(node(-1, 2, 0, -1, true)));
    CHECK(is_refused(node(0, -1, 0, -1, true)));
    CHECK(is_refused(node(11, 0, 0, -1, true)));
    CHECK(is_refused(node(1, INT64_MAX, 0, -1, true)));
}

TEST(slots_that_do_not_exist_are_refused) {
    const auto is_refused = [](const NodeRecord& record) {
        return refused([&] { check_slots(&record, 1, 3); });
    };
    CHECK(!is_refused(node(0, 1, 2, -1, true)));
    CHECK(!is_refused(node(0, 1, 2, 1, false)));
    CHECK(is_refused(node(0, 1, 3, -1, true)));
    CHECK(is_refused(node(0, 1, -1, -1, true)));
    CHECK(is_refused(node(0, 1, 2, -1, false)));
    CHECK(is_refused(node(0, 1, 2, 3, false)));
}

TEST(nodes_that_share_a_slot_are_refused) {
    std::vector<NodeRecord> nodes{node(0, 1, 2, -1, true), node(1, 1, 0, 2, false)};
    const auto are_refused = [&] { return refused([&] { check_slots(nodes.data(), 2, 3); }); };
    CHECK(!are_refused());
    nodes[1].slot = 2;
    CHECK(are_refused());
}

TEST(splits_on_unknown_features_are_refused) {
    SplitRecord split{};
    split.found = true;
    split.feature = 2;
    CHECK(!refused([&] { check_splits(&split, 1, 3); }));
    CHECK(refused([&] { check_splits(&split, 1, 2); }));
    split.feature = -1;
    CHECK(refused([&] { check_splits(&split, 1, 3); }));
    split = SplitRecord{};
    CHECK(refused([&] { check_splits(&split, 1, 3); }));
}

TEST(bins_and_their_offsets_must_agree) {
    const auto is_refused = [](std::vector<std::int32_t> bins, std::vector<std::int64_t> offsets) {
        return refused(
            [&] { check_feature_bins({bins.data(), offsets.data(), std::int64_t(bins.size())}); });
    };
    CHECK(!is_refused({3, 0, 255}, {0, 4, 5, 261}));
    CHECK(is_refused({3, 0}, {0, 4, 6}));
    CHECK(is_refused({3, 0}, {1, 5, 6}));
    CHECK(is_refused({3, 0}, {0, 4, INT64_MIN}));
    CHECK(is_refused({-1}, {0, 0}));
    CHECK(is_refused({256}, {0, 257}));
}

TEST(thresholds_must_lie_among_the_values_and_below_the_bins) {
    const auto is_refused = [](std::vector<std::int64_t> offsets, std::vector<std::int32_t> bins,
                               std::int64_t n_values) {
        return refused([&] {
            check_thresholds({nullptr, offsets.data(), bins.data()}, std::int64_t(bins.size()),
                             n_values);
        });
    };
    CHECK(!is_refused({0, 2, 2}, {3, 0}, 2));
    CHECK(is_refused({0, 2, 2}, {3, 0}, 1));
    CHECK(is_refused({0, 2, 2}, {2, 0}, 2));
    CHECK(is_refused({0, 2, 1}, {3, 1}, 2));
    CHECK(is_refused({-1, 1}, {3}, 2));
    CHECK(is_refused({2, INT64_MIN}, {3}, 2));
    CHECK(is_refused({0, 0}, {256}, 0));
}

TEST(scales_must_have_a_power_of_two) {
    const auto is_refused = [](std::int64_t g, std::int64_t h, bool constant_hessian) {
        const std::vector<std::int64_t> scales{g, h};
        return refused([&] { check_scales(scales.data(), Words{1, constant_hessian}); });
    };
    CHECK(!is_refused(-126, 127, false));
    CHECK(!is_refused(120, 28, true));
    CHECK(is_refused(-127, 0, false));
    CHECK(is_refused(0, 128, false));
    CHECK(is_refused(0, 31, true));
}

TEST(trees_must_cover_the_nodes) {
    const auto is_refused = [](std::vector<std::int64_t> offsets, std::int64_t n_nodes) {
        return refused(
            [&] { check_offsets(offsets.data(), std::int64_t(offsets.size()) - 1, n_nodes); });
    };
    CHECK(!is_refused({0, 1, 4}, 4));
    CHECK(!is_refused({0}, 0));
    CHECK(is_refused({0, 1, 4}, 5));
    CHECK(is_refused({1, 4}, 4));
    CHECK(is_refused({0, 4, 4}, 4));
    CHECK(is_refused({0, 5, 4}, 4));
}

TEST(there_is_at_least_one_thread) {
    CHECK(refused([] { check_thread_count(0); }));
    CHECK(!refused([] { check_thread_count(1); }));
}

TEST_MAIN()
