#include "cpu/check_tree.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <functional>

using namespace torchgbdt_tests;

TEST(depth_is_that_of_the_deepest_leaf) {
    Random random(41);
    const BinnedData data(random, 0, 2, 3);
    CHECK_EQUAL(check_tree(RandomTree(random, 0, data, 1).view(), 2), 0);
    for (int round = 0; round < 50; ++round) {
        const RandomTree tree(random, static_cast<int>(random.between(1, 40)), data, 1);
        std::vector<int> depths(tree.feature.size(), 0);
        int deepest = 0;
        for (std::size_t node = 0; node < depths.size(); ++node) {
            for (std::int32_t child = 0; tree.left[node] > 0 && child < 2; ++child) {
                depths[static_cast<std::size_t>(tree.left[node] + child)] = depths[node] + 1;
                deepest = depths[node] + 1;
            }
        }
        CHECK_EQUAL(check_tree(tree.view(), 2), deepest);
    }
}

TEST(what_would_leave_the_tree_or_the_row_is_refused) {
    Random random(42);
    const BinnedData data(random, 0, 2, 3);
    const auto refused = [&](const std::function<void(RandomTree&)>& damage) {
        RandomTree tree(random, 3, data, 1);
        damage(tree);
        return check::refused([&] { check_tree(tree.view(), 2); });
    };
    CHECK(!refused([](RandomTree&) {}));
    CHECK(refused([](RandomTree& tree) { tree.feature[0] = 2; }));
    CHECK(refused([](RandomTree& tree) { tree.feature[0] = -1; }));
    for (const std::int32_t left : {-2, 0, 2, 3, 6, 7, INT32_MAX, INT32_MIN}) {
        CHECK(refused([&](RandomTree& tree) { tree.left[0] = left; }));
    }
    CHECK(refused([](RandomTree& tree) { tree.feature.clear(); }));
    CHECK(refused([](RandomTree& tree) { tree.feature.resize(6); }));  // the last one is missing
    CHECK(refused([](RandomTree& tree) { tree.flags[0] = kLeaf; }));   // the others are nobody's
    CHECK(refused([](RandomTree& tree) {
        tree.flags = {kLeaf, 0, kLeaf};  // a child of itself, whom the root does not know
        tree.feature = {-1, 0, -1};
        tree.left = {-1, 1, -1};
    }));
    CHECK(refused([](RandomTree& tree) {
        for (std::uint8_t& flags : tree.flags) {
            flags = 0;
        }
        tree.left = {1, 3, 5, 7, 9, 11, 13};
        tree.feature.assign(7, 0);
    }));
}

TEST_MAIN()
