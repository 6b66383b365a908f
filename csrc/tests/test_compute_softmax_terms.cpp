#include "tests/check.h"
#include "tests/class_rows.h"

#include <vector>

using namespace torchgbdt_tests;

TEST(terms_equal_a_plain_loop) {
    Random random(31);
    for (int round = 0; round < 24; ++round) {
        const std::int64_t n_rows = random.between(0, 9000), n_classes = random.between(2, 30);
        const Numbers numbers = round % 3 == 0 ? Numbers::special : Numbers::finite;
        const ClassRows rows(random, n_rows, n_classes, numbers, false, round % 2 == 0);
        std::vector<float> terms(2 * n_rows);
        compute_softmax_terms(rows.view(), terms.data(), kThreadCounts[round % 4]);
        bool equal = true;
        for (std::int64_t row = 0; row < n_rows; ++row) {
            const PlainSoftmax plain(rows, row);
            equal &= same(terms[row], plain.largest) && same(terms[n_rows + row], plain.rest);
        }
        CHECK(equal);
    }
}

TEST(only_the_first_of_equal_predictions_is_left_out) {
    const std::vector<float> predictions{1.0f, 3.0f, 3.0f, 3.0f}, baseline(8, 0.0f);
    const ObjectiveRows rows{predictions.data(), nullptr, nullptr, 1, 4, baseline.data()};
    std::vector<float> terms(2);
    compute_softmax_terms(rows, terms.data(), 1);
    CHECK_EQUAL(terms[0], 3.0f);
    CHECK_EQUAL(terms[1], portable_exp(-2.0f) + 1.0f + 1.0f);
}

TEST(terms_are_added_in_ascending_order) {
    // 2^-24 is lost beside 1, but two of them are not if they come first.
    const float small = -16.635532f;  // log of 2^-24
    const std::vector<float> predictions{small, small, 0.0f, 0.0f}, baseline(8, 0.0f);
    const ObjectiveRows rows{predictions.data(), nullptr, nullptr, 1, 4, baseline.data()};
    std::vector<float> terms(2);
    compute_softmax_terms(rows, terms.data(), 1);
    CHECK_EQUAL(terms[1], 1.0f + 0x1p-23f);
}

TEST(far_classes_keep_a_normal_term) {
    const std::vector<float> predictions{0.0f, -1e30f}, baseline(4, 0.0f);
    const ObjectiveRows rows{predictions.data(), nullptr, nullptr, 1, 2, baseline.data()};
    std::vector<float> terms(2);
    compute_softmax_terms(rows, terms.data(), 1);
    CHECK_EQUAL(terms[1], portable_exp(-86.0f));
}

TEST_MAIN()
