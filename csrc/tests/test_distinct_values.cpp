#include "cpu/kernels.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

using namespace torchgbdt_tests;

namespace {

// A matrix whose features have 1, 2, 3, .. different numbers, besides NaN.
std::vector<double> numbers(Random& random, std::int64_t n_rows, std::int64_t n_features) {
    std::vector<double> x;
    for (std::int64_t i = 0; i < n_rows * n_features; ++i) {
        const double number = double(random.between(0, 12 * (i % n_features)) - 3) / 3.0;
        const double or_missing = random.chance(5) ? std::nan("") : number;
        x.push_back(number == 0.0 && random.chance(50) ? -0.0 : or_missing);
    }
    return x;
}

}  // namespace

TEST(distinct_values_are_those_of_the_rows_or_too_many) {
    Random random(61);
    for (const std::int64_t n_rows : {0, 1, 300, 5000}) {
        const std::int64_t n_features = 40, first = 2, n_chosen = n_features - first;
        const std::vector<double> x = numbers(random, n_rows, n_features);
        const MatrixView matrix{reinterpret_cast<const char*>(x.data()),
                                n_rows,
                                n_features,
                                8 * n_features,
                                8,
                                ElementType::float64};
        std::vector<std::int64_t> every_second;
        for (std::int64_t row = 0; row < n_rows; row += 2) {
            every_second.push_back(row);
        }
        for (const std::int64_t limit : {1, 7, 255}) {
            for (const int n_threads : kThreadCounts) {
                const bool all = n_threads % 2 == 1;
                const std::int64_t n_kept = all ? n_rows : std::int64_t(every_second.size());
                std::vector<double> values(static_cast<std::size_t>(n_chosen * limit), 99.0);
                std::vector<std::int64_t> counts(static_cast<std::size_t>(n_chosen), -1);
                distinct_values(matrix, all ? nullptr : every_second.data(), n_kept, first,
                                n_chosen, limit, values.data(), counts.data(), n_threads);
                for (std::int64_t i = 0; i < n_chosen; ++i) {
                    std::set<double> expected;
                    for (std::int64_t row = 0; row < n_rows; row += all ? 1 : 2) {
                        const double number = x[row * n_features + first + i];
                        if (!std::isnan(number)) {
                            expected.insert(number);
                        }
                    }
                    const auto size = static_cast<std::int64_t>(expected.size());
                    CHECK_EQUAL(counts[i], size <= limit ? size : limit + 1);
                    if (size <= limit) {
                        const double* found = values.data() + i * limit;
                        CHECK(std::equal(expected.begin(), expected.end(), found));
                        CHECK(std::none_of(found, found + size, [](double number) {
                            return number == 0.0 && std::signbit(number);
                        }));
                    }
                }
            }
        }
    }
}

TEST_MAIN()
