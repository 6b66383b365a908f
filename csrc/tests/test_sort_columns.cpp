#include "cpu/kernels.h"
#include "cpu/radix_sort.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace torchgbdt_tests;

namespace {

template <typename Number>
std::vector<Number> special_numbers() {
    using Limits = std::numeric_limits<Number>;
    return {Limits::quiet_NaN(), -Limits::quiet_NaN(),
            Limits::infinity(),  -Limits::infinity(),
            Limits::max(),       Limits::lowest(),
            Limits::min(),       Limits::denorm_min(),
            -Limits::min(),      -Limits::denorm_min(),
            Number(0),           Number(-0.0),
            Number(1),           Number(-1)};
}

// Equal numbers, -0 apart from +0; or both NaN.
template <typename Number>
bool same(Number a, Number b) {
    return a == b ? std::signbit(a) == std::signbit(b) : a != a && b != b;
}

template <typename Number>
void check_sorted(const std::vector<Number>& x, ElementType type, std::int64_t n_features) {
    const auto n_rows = static_cast<std::int64_t>(x.size()) / n_features;
    const auto size = static_cast<std::int64_t>(sizeof(Number));
    const MatrixView matrix{
        reinterpret_cast<const char*>(x.data()), n_rows, n_features, size * n_features, size, type};
    std::vector<std::int64_t> every_third;
    for (std::int64_t row = 0; row < n_rows; row += 3) {
        every_third.push_back(row);
    }
    for (const bool all : {true, false}) {
        const std::int64_t* rows = all ? nullptr : every_third.data();
        const std::int64_t n_chosen = all ? n_rows : std::int64_t(every_third.size());
        for (const int n_threads : kThreadCounts) {
            std::vector<double> columns(static_cast<std::size_t>(n_chosen * (n_features - 1)));
            sort_columns(matrix, rows, n_chosen, 1, n_features - 1, columns.data(), n_threads);
            for (std::int64_t feature = 1; feature < n_features; ++feature) {
                std::vector<double> expected;
                for (std::int64_t i = 0; i < n_chosen; ++i) {
                    const std::int64_t row = all ? i : every_third[i];
                    expected.push_back(static_cast<double>(x[row * n_features + feature]) + 0.0);
                }
                std::sort(expected.begin(), expected.end(), [](double a, double b) {
                    return std::isnan(b) ? !std::isnan(a) : a < b;
                });
                const double* found = columns.data() + (feature - 1) * n_chosen;
                CHECK(std::equal(expected.begin(), expected.end(), found, same<double>));
            }
        }
    }
}

template <typename Number>
std::vector<Number> numbers_of_all_sizes(Random& random, std::int64_t count) {
    const std::vector<Number> special = special_numbers<Number>();
    std::vector<Number> x;
    while (std::int64_t(x.size()) < count) {
        const auto exponent = static_cast<int>(random.between(-140, 120));
        x.push_back(random.chance(30) ? special[random.between(0, special.size() - 1)]
                                      : static_cast<Number>(std::ldexp(random.number(), exponent)));
    }
    return x;
}

}  // namespace

TEST(columns_ascend_with_nan_last) {
    Random random(51);
    for (const std::int64_t n_rows : {0, 1, 2, 255, 4097, 9000}) {
        check_sorted(numbers_of_all_sizes<float>(random, 3 * n_rows), ElementType::float32, 3);
        check_sorted(numbers_of_all_sizes<double>(random, 3 * n_rows), ElementType::float64, 3);
    }
}

TEST(integers_ascend) {
    Random random(52);
    std::vector<std::int32_t> wide;
    std::vector<std::uint8_t> narrow;
    for (int i = 0; i < 3000; ++i) {
        wide.push_back(static_cast<std::int32_t>(random.word()));
        narrow.push_back(static_cast<std::uint8_t>(random.word()));
    }
    check_sorted(wide, ElementType::int32, 3);
    check_sorted(narrow, ElementType::uint8, 2);
}

TEST(keys_are_numbers_in_their_order) {
    for (const float x : special_numbers<float>()) {
        CHECK(same(OrderedKey<float>::number(OrderedKey<float>::from(x)), x + 0.0f));
    }
    for (const double x : special_numbers<double>()) {
        CHECK(same(OrderedKey<double>::number(OrderedKey<double>::from(x)), x + 0.0));
    }
}

TEST_MAIN()
