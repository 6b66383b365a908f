#include "cpu/kernels.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <vector>

using namespace torchgbdt_tests;

TEST(transpose_bins_copies_every_code) {
    Random random(5);
    for (const int n_threads : kThreadCounts) {
        const BinnedData data(random, random.between(0, 9000), random.between(1, 9), 255);
        std::vector<std::uint8_t> columns(data.codes.size());
        transpose_bins(data.matrix(), data.n_value_bins.data(), columns.data(), n_threads);
        bool equal = true;
        for (std::int64_t row = 0; row < data.n_rows; ++row) {
            for (std::int64_t feature = 0; feature < data.n_features; ++feature) {
                equal &= columns[feature * data.n_rows + row] == data.code(row, feature);
            }
        }
        CHECK(equal);
    }
}

TEST(a_code_beyond_the_missing_code_is_found) {
    Random random(6);
    BinnedData data(random, 5000, 3, 7);
    data.codes[3 * 4999 + 1] = static_cast<std::uint8_t>(data.n_value_bins[1] + 1);
    std::vector<std::uint8_t> columns(data.codes.size());
    CHECK(check::refused(
        [&] { transpose_bins(data.matrix(), data.n_value_bins.data(), columns.data(), 2); }));
}

TEST_MAIN()
