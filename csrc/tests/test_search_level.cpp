#include "cpu/kernels.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

using namespace torchgbdt_tests;

namespace {

// A level of siblings, whose parents' histograms are in their slots, and what the three kernels
// make of it one after the other.
struct Level {
    // Parents are cut into a smaller and a larger child, which come in either order. A parent of
    // which no histogram is left has two built children.
    Level(Random& random, std::int64_t n_rows, std::int64_t n_features, int max_value_bins,
          const Words& words, int n_parents, int percent_dropped = 25)
        : data(random, n_rows, n_features, max_value_bins),
          words(words),
          rows(shuffled_rows(random, n_rows)),
          scales(2 * words.n_outputs, 3),
          min_hessian(words.n_outputs, 1),
          rules{1.5, 0.0, random.between(1, 4), min_hessian.data(), scales.data()} {
        for (std::int64_t i = 0; i < n_rows * words.count(); ++i) {
            const bool is_hessian = !words.constant_hessian && i % 2 == 1;
            fixed.push_back(static_cast<std::int32_t>(random.between(is_hessian ? 0 : -50, 50)));
        }
        const std::vector<NodeRecord> parents = random_nodes(random, n_rows, n_parents);
        histograms.resize(static_cast<std::size_t>(slot_size() * 2 * n_parents));
        build_histograms(data.matrix(), data.features(), words, rows.data(), fixed.data(),
                         parents.data(), n_parents, histograms.data(), 1);
        for (const NodeRecord& parent : parents) {
            const bool is_kept = !random.chance(percent_dropped);
            add_children(parent, random.between(0, parent.n_rows / 2), random.chance(50), is_kept);
        }
        for (const NodeRecord& node : nodes) {
            add_totals(node);
        }
    }
    Level(const Level&) = delete;

    void add_children(const NodeRecord& parent, std::int64_t smaller, bool smaller_is_left,
                      bool is_kept) {
        NodeRecord built = parent, other = parent;
        built.n_rows = built.count = smaller;
        other.n_rows = other.count = parent.n_rows - smaller;
        (smaller_is_left ? other.begin : built.begin) += smaller_is_left ? smaller : other.n_rows;
        built.slot = parent.slot + static_cast<std::int32_t>(histograms.size() / slot_size() / 2);
        other.build = !is_kept;
        other.sibling_slot = is_kept ? built.slot : -1;
        nodes.push_back(smaller_is_left ? built : other);
        nodes.push_back(smaller_is_left ? other : built);
    }

    void add_totals(const NodeRecord& node) {
        for (int output = 0; output < words.n_outputs; ++output) {
            std::int64_t gradient = 0, hessian = 0;
            for (std::int64_t i = node.begin; i < node.begin + node.n_rows; ++i) {
                const std::int32_t* q = fixed.data() + std::int64_t{rows[i]} * words.count();
                gradient += q[words.gradient(output)];
                hessian += words.constant_hessian ? words.hessian_unit(scales[2 * output + 1])
                                                  : q[words.hessian(output)];
            }
            sums.push_back(gradient);
            sums.push_back(hessian);
        }
    }

    std::int64_t slot_size() const { return data.features().total_bins() * words.per_cell(); }
    std::int64_t n_nodes() const { return static_cast<std::int64_t>(nodes.size()); }

    struct Found {
        std::vector<std::int64_t> histograms;
        std::vector<SplitRecord> splits;
        std::vector<std::int64_t> left_sums;
    };

    Found start() const {
        return {histograms, std::vector<SplitRecord>(nodes.size()),
                std::vector<std::int64_t>(sums.size(), 77)};
    }

    Found in_steps() const {
        Found found = start();
        build_histograms(data.matrix(), data.features(), words, rows.data(), fixed.data(),
                         nodes.data(), n_nodes(), found.histograms.data(), 1);
        subtract_histograms(nodes.data(), n_nodes(), slot_size(), found.histograms.data(), 1);
        find_splits(data.features(), words, found.histograms.data(), nodes.data(), sums.data(),
                    n_nodes(), rules, found.splits.data(), found.left_sums.data(), 1);
        return found;
    }

    Found in_one_pass(bool keep, int n_threads) const {
        Found found = start();
        search_level(data.matrix(), data.features(), words, rows.data(), fixed.data(), nodes.data(),
                     sums.data(), n_nodes(), rules, keep, found.histograms.data(),
                     found.splits.data(), found.left_sums.data(), n_threads);
        return found;
    }

    BinnedData data;
    Words words;
    std::vector<RowId> rows;
    std::vector<std::int32_t> fixed;
    std::vector<std::int64_t> scales;
    std::vector<std::int64_t> min_hessian;
    SplitRules rules;
    std::vector<NodeRecord> nodes;
    std::vector<std::int64_t> sums;
    std::vector<std::int64_t> histograms;
};

bool are_equal(const SplitRecord& a, const SplitRecord& b) {
    return a.gain == b.gain && a.left_count == b.left_count && a.right_count == b.right_count &&
           a.feature == b.feature && a.split_bin == b.split_bin && a.found == b.found &&
           a.missing_left == b.missing_left;
}

void check_one_pass(const Level& level, int n_threads) {
    const Level::Found expected = level.in_steps();
    for (const bool keep : {true, false}) {
        const Level::Found found = level.in_one_pass(keep, n_threads);
        CHECK(std::equal(found.splits.begin(), found.splits.end(), expected.splits.begin(),
                         are_equal));
        CHECK(found.left_sums == expected.left_sums);
        CHECK(!keep || found.histograms == expected.histograms);
    }
}

}  // namespace

TEST(one_pass_equals_three_for_any_threads_words_and_families) {
    Random random(31);
    std::int64_t n_found = 0;
    for (int round = 0; round < 64; ++round) {
        const Words words{1 + round % 3, round % 2 == 0};
        const Level level(random, random.between(0, 900), random.between(1, 60), 30, words,
                          static_cast<int>(random.between(1, 9)));
        check_one_pass(level, kThreadCounts[round % 4]);
        for (const SplitRecord& split : level.in_steps().splits) {
            n_found += split.found ? 1 : 0;
        }
    }
    CHECK(n_found > 100);
}

TEST(rows_of_large_nodes_are_shared_out_before_features_are) {
    Random random(32);
    for (const bool constant_hessian : {true, false}) {
        // 70,000 rows of the smaller child times 12 features: more than 2^18 visits.
        const Level level(random, 200000, 12, 20, Words{1, constant_hessian}, 1, 0);
        check_one_pass(level, 3);
    }
}

TEST(more_features_than_a_group) {
    Random random(33);
    for (const Words& words : {Words{1, true}, Words{1, false}, Words{9, false}}) {
        const Level level(random, 400, 130, 255, words, 3);
        for (const int n_threads : {1, 2, 7}) {
            check_one_pass(level, n_threads);
        }
    }
}

TEST(a_slot_of_a_level_that_is_not_kept_is_not_written) {
    Random random(34);
    const Level level(random, 500, 6, 20, Words{1, true}, 3);
    CHECK(level.in_one_pass(false, 2).histograms == level.histograms);
}

TEST(without_features_or_nodes_nothing_is_found) {
    Random random(35);
    const std::int64_t offsets[] = {0};
    std::vector<NodeRecord> nodes = random_nodes(random, 0, 1);
    const std::int64_t sums[] = {0, 0}, scales[] = {0, 0}, min_hessian[] = {1};
    std::int64_t left_sums[] = {7, 7};
    SplitRecord split{};
    split.found = true;
    const SplitRules rules{1.0, 0.0, 1, min_hessian, scales};
    search_level({nullptr, 0, 0}, {nullptr, offsets, 0}, Words{1, true}, nullptr, nullptr,
                 nodes.data(), sums, 1, rules, true, nullptr, &split, left_sums, 2);
    CHECK(!split.found && left_sums[0] == 0 && left_sums[1] == 0);
    search_level({nullptr, 0, 0}, {nullptr, offsets, 0}, Words{1, true}, nullptr, nullptr,
                 nodes.data(), sums, 0, rules, true, nullptr, &split, left_sums, 2);
}

TEST(a_derived_node_must_lie_beside_its_sibling) {
    Random random(36);
    Level level(random, 500, 6, 20, Words{1, true}, 2, 0);
    const auto is_refused = [&level] {
        try {
            level.in_one_pass(true, 2);
        } catch (const std::invalid_argument&) {
            return true;
        }
        return false;
    };
    CHECK(!is_refused());
    const std::vector<NodeRecord> good = level.nodes;
    std::swap(level.nodes[1], level.nodes[3]);
    CHECK(is_refused());
    const auto of = [&good](int parent, bool build) {
        return good[2 * parent + (good[2 * parent].build == build ? 0 : 1)];
    };
    level.nodes = {of(0, true), of(0, false), of(0, true), of(1, false)};  // one of two has none
    CHECK(is_refused());
}

TEST_MAIN()
