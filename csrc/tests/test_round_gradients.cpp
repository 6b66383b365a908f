#include "cpu/kernels.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <cmath>
#include <vector>

using namespace torchgbdt_tests;

TEST(rounded_gradients_and_totals_equal_a_plain_loop) {
    Random random(8);
    bool any_raised[] = {false, false};
    for (int round = 0; round < 24; ++round) {
        const Words words{1 + round % 3, round % 2 == 0};
        const std::int64_t n_rows = random.between(0, 40000);
        const std::vector<float> gradients = random_floats(random, n_rows * words.n_outputs);
        std::vector<float> hessians = random_floats(random, n_rows * words.n_outputs);
        std::vector<std::int64_t> scales, totals(2 * words.n_outputs, -1), expected(totals);
        for (int output = 0; output < words.n_outputs; ++output) {
            scales.push_back(random.between(-5, 26));
            scales.push_back(random.between(-5, 25));
            expected[2 * output] = 0;
            expected[2 * output + 1] =
                words.constant_hessian ? n_rows * words.hessian_unit(scales.back()) : 0;
        }
        std::vector<std::int32_t> fixed(n_rows * words.count());
        bool equal = true;
        std::int64_t expected_raised = 0;
        for (float& hessian : hessians) {
            hessian = random.chance(10) ? 0.0f : std::fabs(hessian);
        }
        const std::int64_t n_raised = round_gradients(
            gradients.data(), words.constant_hessian ? nullptr : hessians.data(), n_rows, words,
            scales.data(), fixed.data(), totals.data(), kThreadCounts[round % 4]);
        for (std::int64_t i = 0; i < n_rows * words.n_outputs; ++i) {
            const int output = static_cast<int>(i % words.n_outputs);
            const std::int32_t* row = fixed.data() + i / words.n_outputs * words.count();
            const double g = std::nearbyint(std::ldexp(gradients[i], int(scales[2 * output])));
            const double h = std::nearbyint(std::ldexp(hessians[i], int(scales[2 * output + 1])));
            equal &= row[words.gradient(output)] == g;
            expected[2 * output] += static_cast<std::int64_t>(g);
            expected_raised += words.constant_hessian ? scales[2 * output + 1] < 0
                                                      : hessians[i] > 0.0f && h == 0.0;
            if (!words.constant_hessian) {
                const double at_least_one = hessians[i] > 0.0f ? std::max(h, 1.0) : h;
                equal &= row[words.hessian(output)] == at_least_one;
                expected[2 * output + 1] += static_cast<std::int64_t>(at_least_one);
            }
        }
        CHECK(equal);
        CHECK(totals == expected);
        CHECK_EQUAL(n_raised, expected_raised);
        any_raised[words.constant_hessian] |= n_raised > 0;
    }
    CHECK(any_raised[0] && any_raised[1]);
}

TEST(raised_hessians_are_counted) {
    const std::vector<float> gradients(6, 1e-9f);  // these round to 0 and stay there
    const std::vector<float> hessians{0.0f, 1e-30f, 0.5f, 0.75f, 8.0f, 0.25f};
    const std::vector<std::int64_t> scales{0, 0, 0, 0};
    std::vector<std::int32_t> fixed(12);
    std::vector<std::int64_t> totals(4);
    CHECK_EQUAL(round_gradients(gradients.data(), hessians.data(), 3, Words{2, false},
                                scales.data(), fixed.data(), totals.data(), 2),
                3);
    CHECK(fixed == (std::vector<std::int32_t>{0, 0, 0, 1, 0, 1, 0, 1, 0, 8, 0, 1}));
    CHECK(totals == (std::vector<std::int64_t>{0, 9, 0, 3}));
}

TEST_MAIN()
