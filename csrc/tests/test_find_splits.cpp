#include "cpu/kernels.h"
#include "cpu/split_gain.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <algorithm>
#include <cmath>
#include <vector>

using namespace torchgbdt_tests;

namespace {

// Small integer gradients, so that equal gains and proportional sums are common.
struct Workload {
    Workload(Random& random, const Words& words)
        : data(random, random.between(1, 120), random.between(1, 40), 9),
          words(words),
          rows(shuffled_rows(random, data.n_rows)),
          nodes(random_nodes(random, data.n_rows, static_cast<int>(random.between(1, 5)))) {
        for (int output = 0; output < words.n_outputs; ++output) {
            scales.push_back(random.between(-2, 3));
            scales.push_back(random.between(0, 3));
            min_hessian.push_back(random.between(1, 12));
        }
        const bool no_hessian = random.chance(30);  // in one output
        for (std::int64_t row = 0; row < data.n_rows; ++row) {
            for (int word = 0; word < words.count(); ++word) {
                const bool is_hessian = !words.constant_hessian && word % 2 == 1;
                const bool is_zero = is_hessian && word == 1 && no_hessian;
                fixed.push_back(is_zero ? 0 : std::int32_t(random.between(is_hessian ? 0 : -2, 2)));
            }
        }
        rules = {random.chance(50) ? 0.0 : 1.5, random.chance(50) ? 0.0 : 0.25,
                 random.between(1, 4), min_hessian.data(), scales.data()};
        histograms.resize(data.features().total_bins() * words.per_cell() * nodes.size());
        build_histograms(data.matrix(), data.features(), words, rows.data(), fixed.data(),
                         nodes.data(), n_nodes(), histograms.data(), 1);
        for (const NodeRecord& node : nodes) {
            const std::vector<std::int64_t> total =
                sums_of(node, [](std::int64_t) { return true; });
            sums.insert(sums.end(), total.begin() + 1, total.end());
        }
    }
    Workload(const Workload&) = delete;

    std::int64_t n_nodes() const { return static_cast<std::int64_t>(nodes.size()); }

    // Count, then gradient and Hessian per output, of a node's rows for which `chosen` holds.
    template <typename Chosen>
    std::vector<std::int64_t> sums_of(const NodeRecord& node, const Chosen& chosen) const {
        std::vector<std::int64_t> total(1 + 2 * words.n_outputs, 0);
        for (std::int64_t i = node.begin; i < node.begin + node.n_rows; ++i) {
            const std::int64_t row = rows[i];
            if (!chosen(row)) {
                continue;
            }
            total[0] += 1;
            for (int output = 0; output < words.n_outputs; ++output) {
                const std::int32_t* q = fixed.data() + row * words.count();
                total[1 + 2 * output] += q[words.gradient(output)];
                total[2 + 2 * output] += words.constant_hessian
                                             ? words.hessian_unit(scales[2 * output + 1])
                                             : q[words.hessian(output)];
            }
        }
        return total;
    }

    BinnedData data;
    Words words;
    std::vector<RowId> rows;
    std::vector<NodeRecord> nodes;
    std::vector<std::int32_t> fixed;
    std::vector<std::int64_t> scales;
    std::vector<std::int64_t> min_hessian;
    SplitRules rules;
    std::vector<std::int64_t> histograms;
    std::vector<std::int64_t> sums;
};

struct Found {
    SplitRecord split{};
    std::vector<std::int64_t> left;  // as sums_of
};

double plain_score(std::int64_t g, std::int64_t h, const Workload& work, int output) {
    const double gradient = std::ldexp(static_cast<double>(g), int(-work.scales[2 * output]));
    const double hessian = std::ldexp(static_cast<double>(h), int(-work.scales[2 * output + 1]));
    const double denominator = hessian + work.rules.reg_lambda;
    return denominator == 0.0 ? 0.0 : (gradient * gradient) / denominator;
}

// The gain of a candidate, or 0 if it is none: design rules one by one, from whole sums.
double gain_of(const Workload& work, const std::vector<std::int64_t>& left,
               const std::vector<std::int64_t>& parent) {
    bool has_hessian = false, has_gain = false;
    double increase = 0.0;
    for (int output = 0; output < work.words.n_outputs; ++output) {
        const std::int64_t gl = left[1 + 2 * output], hl = left[2 + 2 * output];
        const std::int64_t gp = parent[1 + 2 * output], hp = parent[2 + 2 * output];
        const std::int64_t gr = gp - gl, hr = hp - hl;
        if (hp > 0) {
            has_hessian = true;
            if (hl < work.min_hessian[output] || hr < work.min_hessian[output]) {
                return 0.0;
            }
        }
        has_gain |= gl * hr != gr * hl;
        increase =
            increase + ((plain_score(gl, hl, work, output) + plain_score(gr, hr, work, output)) -
                        plain_score(gp, hp, work, output));
    }
    const bool enough_rows = left[0] >= work.rules.min_samples_leaf &&
                             parent[0] - left[0] >= work.rules.min_samples_leaf;
    return enough_rows && has_hessian && has_gain ? 0.5 * increase - work.rules.gamma : 0.0;
}

// Every candidate in the order of ties, each from its rows.
Found plain_search(const Workload& work, const NodeRecord& node) {
    const BinnedData& data = work.data;
    const std::vector<std::int64_t> parent = work.sums_of(node, [](std::int64_t) { return true; });
    Found best;
    best.left.assign(parent.size(), 0);
    for (std::int32_t feature = 0; feature < data.n_features; ++feature) {
        const std::int32_t missing_code = data.n_value_bins[feature];
        const std::int64_t n_missing = work.sums_of(
            node, [&](std::int64_t row) { return data.code(row, feature) == missing_code; })[0];
        for (std::int32_t bin = 0; bin < missing_code; ++bin) {
            for (const bool missing_left : {false, true}) {
                if (n_missing == 0 && (missing_left || bin + 1 == missing_code)) {
                    continue;
                }
                const std::vector<std::int64_t> left = work.sums_of(node, [&](std::int64_t row) {
                    return data.goes_left(row, feature, bin, missing_left);
                });
                const double gain = gain_of(work, left, parent);
                if (gain > best.split.gain) {
                    const std::int64_t right_count = parent[0] - left[0];
                    const bool side = n_missing > 0 ? missing_left : left[0] > right_count;
                    best.split = {gain, left[0], right_count, feature, bin, true, side};
                    best.left = left;
                }
            }
        }
    }
    return best;
}

bool same(const SplitRecord& a, const SplitRecord& b) {
    return a.gain == b.gain && a.left_count == b.left_count && a.right_count == b.right_count &&
           a.feature == b.feature && a.split_bin == b.split_bin && a.found == b.found &&
           a.missing_left == b.missing_left;
}

}  // namespace

TEST(the_best_split_equals_that_of_a_plain_search) {
    Random random(14);
    int n_found = 0;
    for (int round = 0; round < 300; ++round) {
        const Workload work(random, Words{round % 3 == 2 ? 3 : 1, round % 2 == 0});
        const int n_sums = 2 * work.words.n_outputs;
        std::vector<SplitRecord> splits(work.nodes.size());
        std::vector<std::int64_t> left_sums(work.sums.size(), -1);
        find_splits(work.data.features(), work.words, work.histograms.data(), work.nodes.data(),
                    work.sums.data(), work.n_nodes(), work.rules, splits.data(), left_sums.data(),
                    kThreadCounts[round % 4]);
        for (std::size_t i = 0; i < work.nodes.size(); ++i) {
            const Found expected = plain_search(work, work.nodes[i]);
            CHECK(same(splits[i], expected.split));
            CHECK(std::equal(expected.left.begin() + 1, expected.left.end(),
                             left_sums.begin() + static_cast<std::int64_t>(i) * n_sums));
            n_found += splits[i].found ? 1 : 0;
        }
    }
    CHECK(n_found > 100);  // the search was not empty
}

TEST(equal_gains_go_to_the_smaller_feature_then_the_smaller_bin) {
    // 4 rows; features 0 and 1 are copies; bins 0 | 1 (empty) | 2; gradients -1, -1, 1, 1.
    const std::vector<std::int32_t> n_value_bins{3, 3};
    const std::vector<std::int64_t> bin_offsets{0, 4, 8};
    const std::vector<std::int64_t> one{2, -2, 0, 0, 2, 2, 0, 0};  // (count, gradient) per bin
    std::vector<std::int64_t> histogram(one);
    histogram.insert(histogram.end(), one.begin(), one.end());
    NodeRecord node{};
    node.n_rows = node.count = 4;
    const std::vector<std::int64_t> sums{0, 4}, scales{0, 0}, min_hessian{1};
    const SplitRules rules{0.0, 0.0, 1, min_hessian.data(), scales.data()};
    SplitRecord split;
    std::vector<std::int64_t> left(2);
    find_splits({n_value_bins.data(), bin_offsets.data(), 2}, Words{1, true}, histogram.data(),
                &node, sums.data(), 1, rules, &split, left.data(), 2);
    // gain = 0.5 * (4/2 + 4/2 - 0) = 2
    CHECK(same(split, SplitRecord{2.0, 2, 2, 0, 0, true, false}));
    CHECK(left == (std::vector<std::int64_t>{-2, 2}));
}

TEST(proportional_sums_are_no_split_although_rounding_sees_a_gain) {
    Random random(23);
    const std::vector<std::int32_t> n_value_bins{2};
    const std::vector<std::int64_t> bin_offsets{0, 3};
    const std::vector<std::int64_t> scales{0, 0}, min_hessian{1};
    const SplitRules rules{0.0, 0.0, 1, min_hessian.data(), scales.data()};
    NodeRecord node{};
    node.n_rows = node.count = 2;
    int n_noisy = 0;
    for (int round = 0; round < 1000; ++round) {
        const std::int64_t g = random.between(1, 1 << 20), h = random.between(1, 1 << 20);
        const std::int64_t a = random.between(1, 1 << 10), b = random.between(1, 1 << 10);
        const std::vector<std::int64_t> histogram{1, a * g, a * h, 1, b * g, b * h, 0, 0, 0};
        const std::vector<std::int64_t> sums{(a + b) * g, (a + b) * h};
        SplitRecord split;
        std::vector<std::int64_t> left(2);
        find_splits({n_value_bins.data(), bin_offsets.data(), 1}, Words{1, false}, histogram.data(),
                    &node, sums.data(), 1, rules, &split, left.data(), 1);
        CHECK(!split.found);
        const auto score_of = [&](std::int64_t k) {
            return score({k * g, k * h}, sum_units(0, 0), 0.0);
        };
        n_noisy += split_gain(score_increase(score_of(a), score_of(b), score_of(a + b)), 0.0) > 0.0;
    }
    CHECK(n_noisy > 100);
}

TEST(noise_that_exceeds_a_gain_does_not_hide_it) {
    // Bins 0 | 1, 2 have proportional sums, bins 0, 1 | 2 almost: the second alone is a candidate.
    Random random(29);
    const std::vector<std::int32_t> n_value_bins{3};
    const std::vector<std::int64_t> bin_offsets{0, 4};
    const std::vector<std::int64_t> scales{0, 0}, min_hessian{1};
    const SplitRules rules{0.0, 0.0, 1, min_hessian.data(), scales.data()};
    NodeRecord node{};
    node.n_rows = node.count = 3;
    int n_hidden = 0;
    for (int round = 0; round < 3000; ++round) {
        const std::int64_t g = random.between(1 << 20, 1 << 29), h = random.between(1, 1 << 20);
        const std::int64_t a = random.between(1, 99), b = random.between(1, 99);
        const std::int64_t c = random.between(1, 99);
        const std::vector<std::int64_t> histogram{1, a * g,     a * h, 1, b * g + 1, b * h,
                                                  1, c * g - 1, c * h, 0, 0,         0};
        const GradientSums total{(a + b + c) * g, (a + b + c) * h};
        const std::vector<std::int64_t> sums{total.gradient, total.hessian};
        const auto gain_of = [&](const GradientSums& left) {
            const SumUnits units = sum_units(0, 0);
            return split_gain(
                score_increase(score(left, units, 0.0), score(total - left, units, 0.0),
                               score(total, units, 0.0)),
                0.0);
        };
        const double noise = gain_of({a * g, a * h});
        const double gain = gain_of({(a + b) * g + 1, (a + b) * h});
        SplitRecord split;
        std::vector<std::int64_t> left(2);
        find_splits({n_value_bins.data(), bin_offsets.data(), 1}, Words{1, false}, histogram.data(),
                    &node, sums.data(), 1, rules, &split, left.data(), 1);
        CHECK(split.found == (gain > 0.0));
        CHECK(split.gain == std::max(gain, 0.0));
        CHECK(!split.found || split.split_bin == 1);
        n_hidden += noise >= gain && gain > 0.0 ? 1 : 0;
    }
    CHECK(n_hidden > 100);
}

TEST(proportional_sums_are_told_from_others_whose_64_bit_products_agree) {
    const std::int64_t g = std::int64_t{1} << 61, h = std::int64_t{1} << 59;
    CHECK(is_proportional({g, 2 * h}, {g / 2, h}));
    CHECK(is_proportional({-g, 2 * h}, {-g / 2, h}));
    CHECK(is_proportional({0, h}, {0, 1}));
    CHECK(!is_proportional({g, 2 * h}, {g, h}));  // 2^120 and 2^121 are both 0 in 64 bits
    CHECK(!is_proportional({g, 2 * h}, {g / 2 + 1, h}));
    CHECK(!is_proportional({g, h}, {-g, h}));
}

TEST_MAIN()
