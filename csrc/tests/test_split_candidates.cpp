// One feature of one node against a plain search for the exact gain, where rounding decides, and
// where the filter of cpu/split_filter.h has to stand back.
#include "cpu/split_candidates.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace torchgbdt_tests;

namespace {

constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What a random node is like. Magnitudes are powers of two.
struct Shape {
    int n_outputs = 1;
    bool constant_hessian = true;
    int gradient_bits = 3;  // few: many gains are equal
    int hessian_bits = 3;
    int percent_empty = 30;
    // Gradients are proportional to Hessians, but for one unit here and there.
    bool is_even = false;
    // The second half repeats the first, but for one unit here and there.
    bool is_mirrored = false;
    bool no_hessian = false;         // in the first output
    std::int64_t least_hessian = 1;  // of rows, and that a child must have
    std::vector<double> lambdas{0.0, 1.0, 1e-3};
    std::vector<double> gammas{0.0, 0.0, 0.25};
    int scale_limit = 3;
};

struct Node {
    Node(Random& random, const Shape& shape)
        : words{shape.n_outputs, shape.constant_hessian},
          n_value_bins(static_cast<std::int32_t>(random.between(0, random.chance(50) ? 9 : 255))) {
        for (int output = 0; output < shape.n_outputs; ++output) {
            scales.push_back(random.between(-shape.scale_limit, shape.scale_limit));
            scales.push_back(random.between(-shape.scale_limit, std::min(shape.scale_limit, 30)));
            min_hessian.push_back(random.between(shape.least_hessian, random.chance(50) ? 1 : 9));
            const int bits = random.chance(70) ? shape.gradient_bits : shape.gradient_bits / 2;
            limits.push_back(std::int64_t{1} << bits);
            slopes.push_back(random.between(1, limits.back()) >> shape.hessian_bits);
        }
        rules = {shape.lambdas[random.between(0, std::int64_t(shape.lambdas.size()) - 1)],
                 shape.gammas[random.between(0, std::int64_t(shape.gammas.size()) - 1)],
                 random.between(1, random.chance(50) ? 1 : 20), min_hessian.data(), scales.data()};
        for (int bin = 0; bin <= n_value_bins; ++bin) {
            const bool is_missing = bin == n_value_bins;
            add_cell(random, shape, random.chance(is_missing ? 60 : shape.percent_empty));
        }
        for (int bin = 0; shape.is_mirrored && bin < n_value_bins / 2; ++bin) {
            const int other = n_value_bins - 1 - bin;
            std::copy_n(&cells[bin * words.per_cell()], words.per_cell(),
                        &cells[other * words.per_cell()]);
            cells[other * words.per_cell() + 1] += random.chance(20) ? random.between(-1, 1) : 0;
        }
        total = left_of(n_value_bins - 1, true);
    }

    void add_cell(Random& random, const Shape& shape, bool is_empty) {
        const std::int64_t count = is_empty ? 0 : random.between(1, 9);
        cells.push_back(count);
        for (int output = 0; output < words.n_outputs; ++output) {
            std::int64_t hessian =
                random.between(shape.least_hessian, std::int64_t{1} << shape.hessian_bits);
            hessian = words.constant_hessian ? count : is_empty ? 0 : hessian;
            hessian = shape.no_hessian && output == 0 ? 0 : hessian;
            std::int64_t gradient = is_empty ? 0 : random.between(-limits[output], limits[output]);
            if (shape.is_even && !is_empty) {
                gradient = hessian * slopes[output] + (random.chance(3) ? 1 : 0);
            }
            cells.push_back(gradient);
            if (!words.constant_hessian) {
                cells.push_back(hessian);
            }
        }
    }

    // Count, then gradient and Hessian per output, of bins 0..bin and perhaps the missing rows.
    std::vector<std::int64_t> left_of(int last_bin, bool missing_left) const {
        std::vector<std::int64_t> sums(1 + 2 * words.n_outputs, 0);
        for (int bin = 0; bin <= n_value_bins; ++bin) {
            if (bin == n_value_bins ? !missing_left : bin > last_bin) {
                continue;
            }
            const std::int64_t* cell = cells.data() + bin * words.per_cell();
            sums[0] += cell[0];
            for (int output = 0; output < words.n_outputs; ++output) {
                sums[1 + 2 * output] += cell[1 + words.gradient(output)];
                sums[2 + 2 * output] += words.constant_hessian
                                            ? cell[0] * Words::hessian_unit(scales[2 * output + 1])
                                            : cell[1 + words.hessian(output)];
            }
        }
        return sums;
    }

    bool is_valid(const std::vector<std::int64_t>& left) const {
        bool has_hessian = false, is_proportional_in_all = true;
        bool enough = std::min(left[0], total[0] - left[0]) >= rules.min_samples_leaf;
        for (int output = 0; output < words.n_outputs; ++output) {
            const int g = 1 + 2 * output, h = 2 + 2 * output;
            if (total[h] > 0) {
                has_hessian = true;
                enough &= std::min(left[h], total[h] - left[h]) >= min_hessian[output];
            }
            is_proportional_in_all &=
                is_proportional({left[g], left[h]}, {total[g] - left[g], total[h] - left[h]});
        }
        return enough && has_hessian && !is_proportional_in_all;
    }

    double score_of(std::int64_t g, std::int64_t h, int output) const {
        const double gradient = std::ldexp(double(g), int(-scales[2 * output]));
        const double denominator =
            std::ldexp(double(h), int(-scales[2 * output + 1])) + rules.reg_lambda;
        return denominator == 0.0 ? 0.0 : (gradient * gradient) / denominator;
    }

    double gain_of(const std::vector<std::int64_t>& left) const {
        double increase = 0.0;
        for (int output = 0; output < words.n_outputs; ++output) {
            const int g = 1 + 2 * output, h = 2 + 2 * output;
            const double of_left = score_of(left[g], left[h], output);
            const double of_right = score_of(total[g] - left[g], total[h] - left[h], output);
            increase = increase + ((of_left + of_right) - score_of(total[g], total[h], output));
        }
        return (0.5 * increase) - rules.gamma;
    }

    Words words;
    std::int32_t n_value_bins;
    std::vector<std::int64_t> scales;                       // (n_outputs, 2)
    std::vector<std::int64_t> min_hessian, limits, slopes;  // (n_outputs,)
    std::vector<std::int64_t> cells, total;
    SplitRules rules;
};

// The gain of each candidate, 0 if it is none.
std::vector<double> plain_gains(const Node& node, bool missing_left) {
    const bool has_missing = node.cells[node.n_value_bins * node.words.per_cell()] > 0;
    std::vector<double> gains;
    for (int bin = 0; bin < node.n_value_bins - (has_missing ? 0 : 1); ++bin) {
        const std::vector<std::int64_t> left = node.left_of(bin, missing_left);
        gains.push_back(node.is_valid(left) ? node.gain_of(left) : 0.0);
    }
    return gains;
}

// The first that gains most and at least `bar`, or -1.
int plain_best(const std::vector<double>& gains, double bar) {
    int best = -1;
    for (int bin = 0; bin < static_cast<int>(gains.size()); ++bin) {
        if (gains[bin] >= bar && (best < 0 || gains[bin] > gains[best])) {
            best = bin;
        }
    }
    return best;
}

// Searches random nodes, with bars around the best gain; returns how many have a split.
int compare(const Shape& shape, int n_rounds) {
    Random random(static_cast<std::uint64_t>(shape.gradient_bits * 64 + shape.hessian_bits));
    int n_found = 0;
    for (int round = 0; round < n_rounds; ++round) {
        const Node node(random, shape);
        const FeatureBins features{};  // not asked
        SplitSearch search{features, node.words, node.rules, {}, {}};
        for (int output = 0; output < shape.n_outputs; ++output) {
            search.units.push_back(sum_units(node.scales[2 * output], node.scales[2 * output + 1]));
            search.hessian_units.push_back(Words::hessian_unit(node.scales[2 * output + 1]));
        }
        SplitCandidates candidates(search, {node.total[0], node.total.data() + 1});
        for (const bool missing_left : {false, true}) {
            candidates.collect(node.cells.data(), node.n_value_bins, missing_left);
            const std::vector<double> gains = plain_gains(node, missing_left);
            const int best = plain_best(gains, kSmallest);
            const double best_gain = best < 0 ? 0.0 : gains[best];
            n_found += best >= 0 ? 1 : 0;
            for (const double bar : {kSmallest, best_gain, std::nextafter(best_gain, 0.0),
                                     std::nextafter(best_gain, kInfinity), 0.5 * best_gain}) {
                const int expected = plain_best(gains, std::max(bar, kSmallest));
                const int found = candidates.find_best(std::max(bar, kSmallest));
                CHECK_EQUAL(found, expected);
                if (found < 0 || found != expected) {
                    continue;
                }
                const std::vector<std::int64_t> left = node.left_of(found, missing_left);
                CHECK_EQUAL(candidates.gain(found), best_gain);
                CHECK_EQUAL(candidates.split_bin(found), found);
                CHECK_EQUAL(candidates.left_count(found), left[0]);
                for (int output = 0; output < shape.n_outputs; ++output) {
                    CHECK_EQUAL(candidates.left_sums(found, output).gradient, left[1 + 2 * output]);
                    CHECK_EQUAL(candidates.left_sums(found, output).hessian, left[2 + 2 * output]);
                }
            }
        }
    }
    return n_found;
}

// With one and with several outputs, constant Hessians and others.
void compare_layouts(Shape shape, int n_rounds, int least_found) {
    for (const int n_outputs : {1, 3}) {
        for (const bool constant : {true, false}) {
            shape.n_outputs = n_outputs;
            shape.constant_hessian = constant;
            CHECK(compare(shape, n_rounds) >= least_found);
        }
    }
}

}  // namespace

TEST(the_first_of_equal_gains_is_found) {
    compare_layouts({}, 300, 100);
}

TEST(any_gradients_and_hessians_of_training) {
    Shape shape;
    shape.gradient_bits = 38;
    shape.hessian_bits = 37;
    compare_layouts(shape, 300, 100);
}

TEST(gains_that_differ_by_rounding_are_told_apart) {
    Shape shape;
    shape.is_mirrored = true;
    for (const int bits : {20, 30, 40}) {
        shape.gradient_bits = bits;
        compare_layouts(shape, 300, 100);
    }
}

TEST(gains_below_the_rounding_of_scores_are_found_and_proportional_sums_are_not) {
    Shape shape;
    shape.is_even = true;
    shape.gammas = {0.0};
    for (const int bits : {8, 24, 40}) {
        shape.gradient_bits = bits;
        compare_layouts(shape, 300, 10);
    }
}

TEST(sums_that_are_not_float64_are_searched_exactly) {
    Shape shape;
    shape.gradient_bits = 53;
    compare_layouts(shape, 100, 30);
    shape.gradient_bits = 20;
    shape.hessian_bits = 53;
    compare_layouts(shape, 100, 30);
}

TEST(children_without_hessian_are_searched_exactly_where_they_are_allowed) {
    Shape shape;
    shape.least_hessian = 0;
    shape.hessian_bits = 1;
    compare_layouts(shape, 300, 100);
}

TEST(an_output_without_hessian_counts_with_lambda_alone) {
    Shape shape;
    shape.n_outputs = 2;
    shape.constant_hessian = false;
    shape.no_hessian = true;
    shape.lambdas = {0.0, 1.0, 1e-300, kSmallest};
    shape.scale_limit = 100;
    CHECK(compare(shape, 300) >= 30);
}

TEST(extreme_scales_and_lambdas_overflow_as_the_exact_gain_does) {
    Shape shape;
    shape.scale_limit = 126;
    shape.lambdas = {0.0, kSmallest, 1e-300, 1e-30, 1e30, 1e60, 1e100, 1e300};
    shape.gammas = {0.0, 0.0, 1e-300, 1e300};
    shape.gradient_bits = 30;
    compare_layouts(shape, 400, 20);
}

TEST_MAIN()
