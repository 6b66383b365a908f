#include "cpu/kernels.h"
#include "tests/check.h"
#include "tests/class_rows.h"
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

namespace {

float plain_class_loss(MetricKind metric, const ClassRows& rows, std::int64_t row) {
    const float label = rows.labels[row], x = rows.raw(row, 0);
    if (metric == MetricKind::logistic_loss) {
        const float beyond = label == 1.0f ? -x : x;
        const float softened = portable_log1p(portable_exp(-std::fabs(x)));
        return plain_flush(softened + (beyond > 0.0f ? beyond : 0.0f));
    }
    if (metric == MetricKind::logistic_error) {
        const float predicted = x > 0.0f ? 1.0f : 0.0f;
        return std::isnan(x) ? x : predicted == label ? 0.0f : 1.0f;
    }
    const PlainSoftmax plain(rows, row);
    if (metric == MetricKind::softmax_loss) {
        const float distance = plain.largest - plain.x[static_cast<std::size_t>(label)];
        return plain_flush(portable_log1p(plain.rest) + plain_flush(distance));
    }
    const bool is_right = static_cast<float>(plain.predicted()) == label;
    return plain.has_nan ? std::nanf("") : is_right ? 0.0f : 1.0f;
}

}  // namespace

TEST(losses_of_classes_equal_a_plain_loop) {
    Random random(34);
    for (int round = 0; round < 48; ++round) {
        const auto metric = static_cast<MetricKind>(2 + round % 4);
        const std::int64_t n_columns =
            metric < MetricKind::softmax_loss ? 1 : random.between(2, 30);
        const Numbers numbers = round % 3 == 0 ? Numbers::special : Numbers::finite;
        const ClassRows rows(random, random.between(0, 9000), n_columns, numbers, round % 5 < 2,
                             round % 7 < 3);
        std::vector<float> losses(rows.n_rows);
        const LossExtremes extremes =
            compute_losses(metric, rows.view(), losses.data(), kThreadCounts[round / 4 % 4]);
        bool equal = true, finite = true;
        float largest = 0.0f;
        for (std::int64_t row = 0; row < rows.n_rows; ++row) {
            const float loss = rows.weighted(row, plain_class_loss(metric, rows, row));
            equal &= same(losses[row], loss);
            finite &= is_finite(loss);
            largest = std::max(largest, loss);
        }
        CHECK(equal);
        CHECK_EQUAL(extremes.finite, finite);
        CHECK(!finite || extremes.largest == largest);
    }
}

TEST(labels_that_are_no_class_give_nan_and_read_nothing_foreign) {
    const float labels[] = {-1.0f, 2.0f, 0.5f, 1e30f, std::nanf("")};
    const std::vector<float> predictions{1.0f, 2.0f}, baseline(4, 0.0f);
    for (const float& label : labels) {
        float loss;
        const ObjectiveRows rows{predictions.data(), &label, nullptr, 1, 2, baseline.data()};
        CHECK(!compute_losses(MetricKind::softmax_loss, rows, &loss, 1).finite);
    }
}

TEST(tied_classes_are_predicted_as_the_first) {
    const std::vector<float> predictions{0.0f, 2.0f, 2.0f}, baseline(6, 0.0f);
    for (int label = 0; label < 3; ++label) {
        const auto code = static_cast<float>(label);
        const ObjectiveRows rows{predictions.data(), &code, nullptr, 1, 3, baseline.data()};
        float loss;
        compute_losses(MetricKind::softmax_error, rows, &loss, 1);
        CHECK_EQUAL(loss, label == 1 ? 0.0f : 1.0f);
    }
}

TEST(predictions_decide_where_probabilities_are_too_close) {
    const float close = 1e-9f;  // exp(-1e-9) is 1 in float32
    const std::vector<float> two{0.0f, close}, baseline(4, 0.0f), zero{0.0f};
    float loss;
    compute_losses(MetricKind::softmax_error,
                   {two.data(), zero.data(), nullptr, 1, 2, baseline.data()}, &loss, 1);
    CHECK_EQUAL(loss, 1.0f);
    compute_losses(MetricKind::logistic_error,
                   {&close, zero.data(), nullptr, 1, 1, baseline.data()}, &loss, 1);
    CHECK_EQUAL(loss, 1.0f);
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
