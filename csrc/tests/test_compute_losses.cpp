#include "cpu/kernels.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <cmath>
#include <limits>
#include <vector>

using namespace torchgbdt_tests;

TEST(losses_and_their_sum_equal_a_plain_loop) {
    Random random(22);
    for (int round = 0; round < 24; ++round) {
        const std::int64_t n_rows = random.between(0, 40000);
        const MetricKind metric =
            round % 2 == 0 ? MetricKind::squared_error : MetricKind::absolute_error;
        std::vector<float> predictions, labels, weights, losses(n_rows);
        for (std::int64_t row = 0; row < n_rows; ++row) {
            predictions.push_back(random.number());
            labels.push_back(random.number());
            weights.push_back(std::fabs(random.number()));
        }
        const bool weighted = round % 3 == 0;
        const ObjectiveRows rows{predictions.data(), labels.data(),
                                 weighted ? weights.data() : nullptr, n_rows, 1};
        const int n_threads = kThreadCounts[round % 4];
        const LossExtremes extremes = compute_losses(metric, rows, losses.data(), n_threads);
        float largest = 0.0f;
        std::int64_t sum = 0;
        const int scale = 20;
        bool equal = true;
        for (std::int64_t row = 0; row < n_rows; ++row) {
            const float e = predictions[row] - labels[row];
            float loss = metric == MetricKind::squared_error ? e * e : std::fabs(e);
            loss = weighted ? loss * weights[row] : loss;
            equal &= losses[row] == loss;
            largest = std::max(largest, loss);
            sum += static_cast<std::int64_t>(std::nearbyint(std::ldexp(double{loss}, scale)));
        }
        CHECK(equal && extremes.finite);
        CHECK_EQUAL(extremes.largest, largest);
        CHECK_EQUAL(sum_losses(losses.data(), n_rows, scale, n_threads), sum);
    }
}

TEST(an_infinite_loss_is_reported) {
    const std::vector<float> predictions{3e38f, 2.0f}, labels{-3e38f, 0.0f};
    std::vector<float> losses(2);
    const ObjectiveRows rows{predictions.data(), labels.data(), nullptr, 2, 1};
    const LossExtremes extremes =
        compute_losses(MetricKind::absolute_error, rows, losses.data(), 1);
    CHECK(!extremes.finite);
    CHECK_EQUAL(extremes.largest, std::numeric_limits<float>::infinity());
}

TEST(a_squared_loss_below_the_smallest_normal_number_is_zero) {
    const std::vector<float> predictions{1e-20f}, labels{0.0f};
    std::vector<float> losses{1.0f};
    const ObjectiveRows rows{predictions.data(), labels.data(), nullptr, 1, 1};
    compute_losses(MetricKind::squared_error, rows, losses.data(), 1);
    CHECK_EQUAL(losses[0], 0.0f);
}

TEST_MAIN()
