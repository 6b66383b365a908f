#include "cpu/kernels.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace torchgbdt_tests;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A matrix of doubles and thresholds taken from its values, so that equality is common.
struct Workload {
    Workload(Random& random, std::int64_t n_rows, std::int64_t n_features)
        : n_rows(n_rows), n_features(n_features), offsets{0} {
        for (std::int64_t i = 0; i < n_rows * n_features; ++i) {
            x.push_back(random.chance(10) ? std::nan("") : double(random.between(-20, 20)));
        }
        for (std::int64_t feature = 0; feature < n_features; ++feature) {
            std::vector<double> cuts;
            const std::int64_t n_cuts = random.between(0, 12);
            for (std::int64_t cut = -20; cut < 20 && std::int64_t(cuts.size()) < n_cuts; ++cut) {
                if (random.chance(40)) {
                    cuts.push_back(double(cut) + (random.chance(50) ? 0.5 : 0.0));
                }
            }
            values.insert(values.end(), cuts.begin(), cuts.end());
            offsets.push_back(static_cast<std::int64_t>(values.size()));
            const bool all_missing = cuts.empty() && random.chance(50);
            n_value_bins.push_back(all_missing ? 0 : static_cast<std::int32_t>(cuts.size()) + 1);
        }
    }

    MatrixView matrix() const {
        return {reinterpret_cast<const char*>(x.data()),
                n_rows,
                n_features,
                8 * n_features,
                8,
                ElementType::float64};
    }
    Thresholds thresholds() const { return {values.data(), offsets.data(), n_value_bins.data()}; }

    std::uint8_t expected(std::int64_t row, std::int64_t feature) const {
        const double value = x[row * n_features + feature];
        std::int32_t code = 0;
        for (std::int64_t i = offsets[feature]; i < offsets[feature + 1]; ++i) {
            code += values[i] < value ? 1 : 0;
        }
        return static_cast<std::uint8_t>(std::isnan(value) ? n_value_bins[feature] : code);
    }

    std::int64_t n_rows;
    std::int64_t n_features;
    std::vector<double> x;
    std::vector<double> values;
    std::vector<std::int64_t> offsets;
    std::vector<std::int32_t> n_value_bins;
};

}  // namespace

TEST(a_code_is_the_number_of_thresholds_below_the_value) {
    Random random(3);
    for (int round = 0; round < 40; ++round) {
        const Workload work(random, random.between(0, 6000) * (round % 3), random.between(1, 7));
        std::vector<std::uint8_t> bins(work.x.size());
        bin_features(work.matrix(), nullptr, work.n_rows, work.thresholds(), bins.data(),
                     kThreadCounts[round % 4]);
        bool equal = true;
        for (std::int64_t row = 0; row < work.n_rows; ++row) {
            for (std::int64_t feature = 0; feature < work.n_features; ++feature) {
                equal &= bins[row * work.n_features + feature] == work.expected(row, feature);
            }
        }
        CHECK(equal);
    }
}

TEST(kept_rows_are_binned_in_their_order) {
    Random random(4);
    const Workload work(random, 500, 3);
    std::vector<std::int64_t> kept;
    for (std::int64_t row = 0; row < work.n_rows; row += 1 + random.between(0, 3)) {
        kept.push_back(row);
    }
    std::vector<std::uint8_t> bins(kept.size() * 3);
    bin_features(work.matrix(), kept.data(), static_cast<std::int64_t>(kept.size()),
                 work.thresholds(), bins.data(), 2);
    for (std::size_t i = 0; i < kept.size(); ++i) {
        for (std::int64_t feature = 0; feature < 3; ++feature) {
            CHECK_EQUAL(bins[3 * i + feature], work.expected(kept[i], feature));
        }
    }
}

TEST(infinities_are_values_and_255_thresholds_fit) {
    std::vector<double> cuts;
    for (int i = 0; i < 254; ++i) {
        cuts.push_back(i);
    }
    const std::vector<std::int64_t> offsets{0, 254};
    const std::vector<std::int32_t> n_value_bins{255};
    const std::vector<double> x{-kInfinity, kInfinity, 0.0, -0.0, 253.0, 253.5, std::nan("")};
    std::vector<std::uint8_t> bins(x.size());
    const MatrixView matrix{
        reinterpret_cast<const char*>(x.data()), 7, 1, 8, 8, ElementType::float64};
    bin_features(matrix, nullptr, 7, {cuts.data(), offsets.data(), n_value_bins.data()},
                 bins.data(), 1);
    CHECK(bins == (std::vector<std::uint8_t>{0, 254, 0, 0, 253, 254, 255}));
}

TEST_MAIN()
