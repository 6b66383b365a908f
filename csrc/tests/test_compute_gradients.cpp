#include "cpu/kernels.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <cmath>
#include <limits>
#include <vector>

using namespace torchgbdt_tests;

TEST(squared_error_is_weight_times_residual) {
    Random random(7);
    for (const int n_threads : kThreadCounts) {
        const std::int64_t n_rows = random.between(0, 40000);
        const std::vector<float> predictions = random_floats(random, n_rows);
        const std::vector<float> labels = random_floats(random, n_rows);
        std::vector<float> weights = random_floats(random, n_rows);
        for (float& weight : weights) {
            weight = std::fabs(weight);
        }
        std::vector<float> gradients(predictions.size());
        std::vector<float> hessians(predictions.size());
        const ObjectiveRows rows{predictions.data(), labels.data(), weights.data(), n_rows, 1};
        const GradientExtremes extremes = compute_gradients(
            ObjectiveKind::squared_error, rows, gradients.data(), hessians.data(), n_threads);
        float largest_g = 0.0f, largest_h = 0.0f, smallest_h = n_rows == 0 ? 0.0f : 1e30f;
        bool equal = hessians == weights;
        for (std::int64_t row = 0; row < n_rows; ++row) {
            const float residual = predictions[row] - labels[row];
            equal &= gradients[row] == residual * weights[row];
            largest_g = std::max(largest_g, std::fabs(gradients[row]));
            largest_h = std::max(largest_h, weights[row]);
            smallest_h = std::min(smallest_h, weights[row]);
        }
        CHECK(equal && extremes.finite);
        CHECK_EQUAL(extremes.largest_gradient, largest_g);
        CHECK_EQUAL(extremes.largest_hessian, largest_h);
        CHECK_EQUAL(extremes.smallest_hessian, smallest_h);
    }
}

TEST(without_weights_the_gradient_is_the_residual_and_the_hessian_one) {
    const std::vector<float> predictions{1.5f, 99.0f, -0.25f, 99.0f};  // two columns
    const std::vector<float> labels{1.0f, 1.0f};
    std::vector<float> gradients(2);
    const ObjectiveRows rows{predictions.data(), labels.data(), nullptr, 2, 2};
    const GradientExtremes extremes =
        compute_gradients(ObjectiveKind::squared_error, rows, gradients.data(), nullptr, 1);
    CHECK(gradients == (std::vector<float>{0.5f, -1.25f}));
    CHECK_EQUAL(extremes.largest_hessian, 1.0f);
    CHECK_EQUAL(extremes.smallest_hessian, 1.0f);
}

TEST(each_float32_result_is_flushed) {
    const float tiny = std::numeric_limits<float>::min();
    const std::vector<float> predictions{1.5f * tiny, tiny};
    const std::vector<float> labels{tiny, 0.0f};
    const std::vector<float> weights{1e30f, 0.5f};
    std::vector<float> gradients{1.0f, 1.0f};
    std::vector<float> hessians(2);
    const ObjectiveRows rows{predictions.data(), labels.data(), weights.data(), 2, 1};
    compute_gradients(ObjectiveKind::squared_error, rows, gradients.data(), hessians.data(), 1);
    // The residual 0.5 * tiny is flushed before it meets its large weight.
    CHECK(gradients == (std::vector<float>{0.0f, 0.0f}));
}

TEST(a_gradient_that_is_not_finite_is_reported) {
    const float huge = std::numeric_limits<float>::max();
    for (const float prediction : {huge, std::nanf("")}) {
        const std::vector<float> predictions{0.0f, prediction};
        const std::vector<float> labels{0.0f, -huge};
        std::vector<float> gradients(2);
        const ObjectiveRows rows{predictions.data(), labels.data(), nullptr, 2, 1};
        CHECK(!compute_gradients(ObjectiveKind::squared_error, rows, gradients.data(), nullptr, 1)
                   .finite);
    }
}

TEST(loaded_gradients_are_flushed_and_measured_per_output) {
    const float subnormal = std::numeric_limits<float>::denorm_min();
    const std::vector<float> given_g{-3.0f, subnormal, 2.0f, -5.0f};
    const std::vector<float> given_h{0.5f, 2.0f, subnormal, -1.0f};
    std::vector<float> gradients(4), hessians(4);
    std::vector<GradientExtremes> extremes(2);
    load_gradients(given_g.data(), given_h.data(), 2, 2, gradients.data(), hessians.data(),
                   extremes.data(), 2);
    CHECK(gradients == (std::vector<float>{-3.0f, 0.0f, 2.0f, -5.0f}));
    CHECK(hessians == (std::vector<float>{0.5f, 2.0f, 0.0f, -1.0f}));
    CHECK_EQUAL(extremes[0].largest_gradient, 3.0f);
    CHECK_EQUAL(extremes[0].largest_hessian, 0.5f);
    CHECK_EQUAL(extremes[0].smallest_hessian, 0.0f);
    CHECK_EQUAL(extremes[1].largest_gradient, 5.0f);
    CHECK_EQUAL(extremes[1].smallest_hessian, -1.0f);
}

TEST_MAIN()
