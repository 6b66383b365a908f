#include "cpu/kernels.h"
#include "tests/check.h"
#include "tests/class_rows.h"
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
        const GradientExtremes extremes =
            compute_gradients(ObjectiveKind::squared_error, rows, 0, nullptr, gradients.data(),
                              hessians.data(), n_threads);
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
    const GradientExtremes extremes = compute_gradients(ObjectiveKind::squared_error, rows, 0,
                                                        nullptr, gradients.data(), nullptr, 1);
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
    compute_gradients(ObjectiveKind::squared_error, rows, 0, nullptr, gradients.data(),
                      hessians.data(), 1);
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
        CHECK(!compute_gradients(ObjectiveKind::squared_error, rows, 0, nullptr, gradients.data(),
                                 nullptr, 1)
                   .finite);
    }
}

namespace {

// Gradients of one output of rows with classes, compared with a plain loop.
struct Computed {
    Computed(const ClassRows& rows, ObjectiveKind objective, std::int64_t output, int n_threads)
        : gradients(rows.n_rows), hessians(rows.n_rows) {
        std::vector<float> terms(2 * rows.n_rows);
        if (objective == ObjectiveKind::softmax) {
            compute_softmax_terms(rows.view(), terms.data(), n_threads);
        }
        extremes = compute_gradients(objective, rows.view(), output, terms.data(), gradients.data(),
                                     hessians.data(), n_threads);
    }

    void compare(const ClassRows& rows, std::int64_t row, float gradient, float hessian) {
        equal &= same(gradients[row], rows.weighted(row, gradient));
        equal &= same(hessians[row], rows.weighted(row, hessian));
        finite &= is_finite(gradients[row]) && is_finite(hessians[row]);
        largest_g = std::max(largest_g, std::fabs(gradients[row]));
        largest_h = std::max(largest_h, hessians[row]);
        smallest_h = row == 0 ? hessians[row] : std::min(smallest_h, hessians[row]);
    }

    void check() const {
        CHECK(equal);
        CHECK_EQUAL(extremes.finite, finite);
        if (finite) {
            CHECK_EQUAL(extremes.largest_gradient, largest_g);
            CHECK_EQUAL(extremes.largest_hessian, largest_h);
            CHECK_EQUAL(extremes.smallest_hessian, smallest_h);
        }
    }

    std::vector<float> gradients, hessians;
    GradientExtremes extremes;
    bool equal = true, finite = true;
    float largest_g = 0.0f, largest_h = 0.0f, smallest_h = 0.0f;
};

}  // namespace

TEST(logistic_gradients_equal_a_plain_loop) {
    Random random(32);
    for (int round = 0; round < 24; ++round) {
        const Numbers numbers = round % 3 == 0 ? Numbers::special : Numbers::finite;
        const ClassRows rows(random, random.between(0, 20000), 1, numbers, round % 4 < 2,
                             round % 2 == 0);
        Computed found(rows, ObjectiveKind::logistic, 0, kThreadCounts[round / 2 % 4]);
        for (std::int64_t row = 0; row < rows.n_rows; ++row) {
            const float x = rows.raw(row, 0);
            const float small = plain_sigmoid(-std::fabs(x));
            const float t = portable_exp(std::isnan(x) ? x : -std::fmin(std::fabs(x), 86.0f));
            found.compare(rows, row,
                          rows.labels[row] == 1.0f ? -plain_sigmoid(-x) : plain_sigmoid(x),
                          small / (1.0f + t));
        }
        found.check();
    }
}

TEST(softmax_gradients_equal_a_plain_loop_for_each_output) {
    Random random(33);
    for (int round = 0; round < 24; ++round) {
        const std::int64_t n_classes = random.between(2, 30);
        const Numbers numbers = round % 3 == 0 ? Numbers::special : Numbers::finite;
        const ClassRows rows(random, random.between(0, 9000), n_classes, numbers, round % 4 < 2,
                             round % 2 == 0);
        const std::int64_t output = round < 2 ? round : random.between(0, n_classes - 1);
        Computed found(rows, ObjectiveKind::softmax, output, kThreadCounts[round / 2 % 4]);
        for (std::int64_t row = 0; row < rows.n_rows; ++row) {
            const PlainSoftmax plain(rows, row);
            const float p = plain.p(output), q = plain.q(output);
            const bool is_label = rows.labels[row] == static_cast<float>(output);
            found.compare(rows, row, is_label ? plain_flush(-q) : p, plain_flush((2.0f * p) * q));
        }
        found.check();
    }
}

TEST(softmax_of_two_classes_steps_as_logistic_does) {
    const std::vector<float> predictions{0.0f, 0.0f}, labels{1.0f};
    const std::vector<float> baseline(4, 0.0f), terms{0.0f, 1.0f};
    const ObjectiveRows rows{predictions.data(), labels.data(), nullptr, 1, 2, baseline.data()};
    float gradient, hessian;
    compute_gradients(ObjectiveKind::softmax, rows, 1, terms.data(), &gradient, &hessian, 1);
    CHECK_EQUAL(gradient, -0.5f);
    CHECK_EQUAL(hessian, 0.5f);  // twice the logistic one: both outputs move by g / h
}

TEST(a_row_however_sure_keeps_a_positive_logistic_hessian) {
    for (const float x : {86.0f, -86.0f, 1e30f, -1e30f}) {
        const std::vector<float> labels{0.0f}, baseline(2, 0.0f);
        const ObjectiveRows rows{&x, labels.data(), nullptr, 1, 1, baseline.data()};
        float gradient, hessian;
        compute_gradients(ObjectiveKind::logistic, rows, 0, nullptr, &gradient, &hessian, 1);
        CHECK(gradient > 0.0f && hessian > 0.0f);
    }
}

TEST(a_probability_below_the_smallest_normal_number_is_zero) {
    const std::vector<float> predictions{0.0f, 0.0f, 0.0f, 0.0f, -1e30f}, labels{4.0f};
    const std::vector<float> baseline(10, 0.0f), terms{0.0f, 3.0f};
    const ObjectiveRows rows{predictions.data(), labels.data(), nullptr, 1, 5, baseline.data()};
    float gradient, hessian;
    compute_gradients(ObjectiveKind::softmax, rows, 4, terms.data(), &gradient, &hessian, 1);
    CHECK_EQUAL(gradient, -1.0f);
    CHECK_EQUAL(float_bits(hessian), 0u);  // exp(-86) / 4 is below 2^-126
}

TEST(the_smallest_of_negative_hessians_is_found) {
    const std::vector<float> given_h{-1.0f, 2.0f, -3.0f, -2.0f}, given_g(4, 0.0f);
    std::vector<float> gradients(4), hessians(4);
    GradientExtremes extremes;
    load_gradients(given_g.data(), given_h.data(), 4, 1, gradients.data(), hessians.data(),
                   &extremes, 1);
    CHECK_EQUAL(extremes.smallest_hessian, -3.0f);
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
