#include "cpu/kernels.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <algorithm>
#include <limits>
#include <vector>

using namespace torchgbdt_tests;

namespace {

constexpr std::int64_t kUntouched = 123456789;

struct Workload {
    Workload(Random& random, std::int64_t n_rows, std::int64_t n_features, int max_value_bins,
             const Words& words, int n_nodes)
        : data(random, n_rows, n_features, max_value_bins),
          words(words),
          rows(shuffled_rows(random, n_rows)),
          nodes(random_nodes(random, n_rows, n_nodes)) {
        const std::int64_t limit = std::int64_t{1} << 30;  // the largest gradient there is
        for (std::int64_t i = 0; i < n_rows * words.count(); ++i) {
            const std::int64_t q = random.chance(5) ? (random.chance(50) ? limit : -limit)
                                                    : random.between(-limit, limit);
            fixed.push_back(static_cast<std::int32_t>(q));
        }
    }

    std::int64_t slot_size() const { return data.features().total_bins() * words.per_cell(); }

    std::vector<std::int64_t> empty_histograms() const {
        return std::vector<std::int64_t>(slot_size() * nodes.size(), kUntouched);
    }

    std::vector<std::int64_t> built(int n_threads) const {
        std::vector<std::int64_t> histograms = empty_histograms();
        build_histograms(data.matrix(), data.features(), words, rows.data(), fixed.data(),
                         nodes.data(), static_cast<std::int64_t>(nodes.size()), histograms.data(),
                         n_threads);
        return histograms;
    }

    std::vector<std::int64_t> expected() const {
        std::vector<std::int64_t> histograms = empty_histograms();
        for (const NodeRecord& node : nodes) {
            std::int64_t* slot = histograms.data() + node.slot * slot_size();
            for (std::int64_t i = 0; node.build && i < slot_size(); ++i) {
                slot[i] = 0;
            }
            for (std::int64_t i = 0; node.build && i < node.n_rows; ++i) {
                const std::int64_t row = rows[node.begin + i];
                for (std::int64_t feature = 0; feature < data.n_features; ++feature) {
                    const std::int64_t bin = data.bin_offsets[feature] + data.code(row, feature);
                    std::int64_t* cell = slot + bin * words.per_cell();
                    cell[0] += 1;
                    for (int word = 0; word < words.count(); ++word) {
                        cell[1 + word] += fixed[row * words.count() + word];
                    }
                }
            }
        }
        return histograms;
    }

    BinnedData data;
    Words words;
    std::vector<RowId> rows;
    std::vector<NodeRecord> nodes;
    std::vector<std::int32_t> fixed;
};

}  // namespace

TEST(histograms_equal_a_plain_loop_for_any_threads_words_and_nodes) {
    Random random(9);
    for (int round = 0; round < 48; ++round) {
        const Words words{1 + round % 3, round % 2 == 0};
        const Workload work(random, random.between(0, 3000), random.between(1, 40), 40, words,
                            static_cast<int>(random.between(1, 12)));
        CHECK(work.built(kThreadCounts[round % 4]) == work.expected());
    }
}

TEST(several_panels_of_features_are_summed_and_rows_may_lie_side_by_side) {
    Random random(28);
    for (const std::int64_t n_features : {112, 113, 127, 300}) {
        for (const Words& words : {Words{1, true}, Words{1, false}, Words{2, false}}) {
            for (const bool in_order : {true, false}) {
                Workload work(random, 1300, n_features, 9, words, 2);
                if (in_order) {
                    std::sort(work.rows.begin(), work.rows.end());
                }
                for (const int n_threads : {1, 3}) {
                    CHECK(work.built(n_threads) == work.expected());
                }
            }
        }
    }
}

TEST(without_features_there_is_nothing_to_sum) {
    const BinMatrix bins{nullptr, 4, 0};
    const std::int64_t offsets[] = {0};
    const RowId rows[] = {0, 1, 2, 3};
    const std::int32_t fixed[] = {1, 1, 1, 1};
    NodeRecord node{};
    node.n_rows = 4;
    node.build = true;
    std::int64_t histograms = kUntouched;
    build_histograms(bins, {nullptr, offsets, 0}, Words{1, true}, rows, fixed, &node, 1,
                     &histograms, 2);
    CHECK(histograms == kUntouched);
}

TEST(a_large_node_is_shared_out_and_summed_exactly) {
    Random random(10);
    for (const bool constant_hessian : {true, false}) {
        // More rows of one sign in few bins than a packed word could count.
        Workload work(random, 150000, 2, 2, Words{1, constant_hessian}, 1);
        work.fixed.assign(work.fixed.size(), -(1 << 30));
        const std::vector<std::int64_t> expected = work.expected();
        for (const int n_threads : kThreadCounts) {
            CHECK(work.built(n_threads) == expected);
        }
    }
}

TEST(nodes_without_build_keep_their_slots) {
    Random random(11);
    Workload work(random, 2000, 5, 255, Words{1, true}, 6);
    work.nodes[1].build = work.nodes[4].build = false;
    CHECK(work.built(2) == work.expected());
}

TEST(many_small_nodes_beside_a_large_one) {
    Random random(12);
    Workload work(random, 60000, 3, 16, Words{1, false}, 1);
    NodeRecord large = work.nodes[0];
    large.n_rows = 50000;
    work.nodes = {large};
    for (int i = 0; i < 100; ++i) {
        NodeRecord small = large;
        small.begin = 50000 + 100 * i;
        small.n_rows = 100;
        small.slot = 1 + i;
        work.nodes.push_back(small);
    }
    const std::vector<std::int64_t> expected = work.expected();
    for (const int n_threads : kThreadCounts) {
        CHECK(work.built(n_threads) == expected);
    }
}

TEST(there_may_be_far_more_threads_than_tasks) {
    Random random(24);
    const Workload work(random, 2000, 3, 16, Words{1, true}, 3);
    CHECK(work.built(std::numeric_limits<int>::max()) == work.expected());
}

TEST(a_row_that_the_bins_do_not_have_is_refused) {
    Random random(25);
    for (const std::int64_t n_rows : {1, 3000, 20000}) {  // one node, small or shared out
        for (const int n_threads : kThreadCounts) {
            Workload work(random, n_rows, 3, 16, Words{1, true}, 1);
            work.rows[random.between(0, n_rows - 1)] = static_cast<RowId>(n_rows);
            CHECK(check::refused([&] { work.built(n_threads); }));
        }
    }
}

// What it writes outside a buffer only the address sanitizer sees.
TEST(a_code_that_its_feature_does_not_have_leaves_no_buffer) {
    Random random(26);
    for (const Words& words : {Words{1, true}, Words{1, false}, Words{3, false}}) {
        Workload work(random, 20000, 3, 16, words, 1);
        std::fill(work.data.codes.begin(), work.data.codes.end(), 255);
        for (const int n_threads : kThreadCounts) {
            work.built(n_threads);
        }
    }
}

TEST(subtraction_leaves_the_other_sibling) {
    Random random(13);
    for (const int n_threads : kThreadCounts) {
        const Workload all(random, 3000, 7, 255, Words{2, false}, 1);
        Workload halves = all;  // the same rows as two nodes
        NodeRecord left = all.nodes[0], right = all.nodes[0];
        left.n_rows = right.begin = 1234;
        right.n_rows = 3000 - 1234;
        left.slot = 0;
        right.slot = 1;
        halves.nodes = {left, right};
        const std::vector<std::int64_t> expected = halves.expected();

        // Slot 0 holds the left child, slot 1 the parent.
        halves.nodes[1].build = false;
        halves.nodes[1].sibling_slot = 0;
        std::vector<std::int64_t> histograms = halves.expected();
        const std::vector<std::int64_t> parent = all.expected();
        std::copy(parent.begin(), parent.end(), histograms.begin() + all.slot_size());
        subtract_histograms(halves.nodes.data(), 2, halves.slot_size(), histograms.data(),
                            n_threads);
        CHECK(histograms == expected);
    }
}

TEST_MAIN()
