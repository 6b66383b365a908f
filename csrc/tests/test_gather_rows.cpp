#include "cpu/kernels.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <algorithm>
#include <vector>

using namespace torchgbdt_tests;

TEST(rows_of_any_width_are_copied_whole) {
    Random random(31);
    for (const std::int64_t width : {1, 3, 4, 15, 16, 17, 28, 33, 130}) {
        const std::int64_t n_given = random.between(1, 9000), n_rows = random.between(0, 9000);
        std::vector<std::uint8_t> given(static_cast<std::size_t>(n_given * width));
        for (std::uint8_t& byte : given) {
            byte = static_cast<std::uint8_t>(random.between(0, 255));
        }
        std::vector<RowId> rows;
        std::vector<std::uint8_t> expected;
        for (std::int64_t i = 0; i < n_rows; ++i) {
            rows.push_back(static_cast<RowId>(random.between(0, n_given - 1)));
            const auto row = given.begin() + rows.back() * width;
            expected.insert(expected.end(), row, row + width);
        }
        for (const int n_threads : kThreadCounts) {
            std::vector<std::uint8_t> gathered(expected.size());
            gather_rows(given.data(), n_given, width, rows.data(), n_rows, gathered.data(),
                        n_threads);
            CHECK(gathered == expected);
        }
    }
}

TEST(a_row_that_was_not_given_is_refused) {
    std::vector<std::uint8_t> given(10), gathered(30000);
    std::vector<RowId> rows(30000, 4);
    rows[29999] = 5;
    for (const int n_threads : kThreadCounts) {
        CHECK(check::refused([&] {
            gather_rows(given.data(), 5, 2, rows.data(), 15000, gathered.data(), n_threads);
            gather_rows(given.data(), 5, 1, rows.data(), 30000, gathered.data(), n_threads);
        }));
    }
}

TEST(all_rows_are_sampled_in_ascending_order) {
    for (const std::int64_t n_rows : {0, 1, 4097, 200000}) {
        for (const int n_threads : kThreadCounts) {
            std::vector<RowId> row_order(static_cast<std::size_t>(n_rows), 7);
            sample_rows(row_order.data(), n_rows, n_threads);
            for (std::int64_t i = 0; i < n_rows; ++i) {
                CHECK(row_order[static_cast<std::size_t>(i)] == static_cast<RowId>(i));
            }
        }
    }
}

TEST_MAIN()
