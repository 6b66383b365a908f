#include "cpu/cut_search.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace torchgbdt_tests;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::uint8_t kMissing = 255;

// Numbers of every size: most by their bits, some simple ones, so that equality is common.
template <typename Number>
Number any_number(Random& random) {
    if (random.chance(40)) {
        const Number simple[] = {0,
                                 -0.0f,
                                 1,
                                 2,
                                 -1,
                                 Number(0.5),
                                 Number(1e30),
                                 Number(kInfinity),
                                 -Number(kInfinity),
                                 std::numeric_limits<Number>::max(),
                                 std::numeric_limits<Number>::lowest(),
                                 std::numeric_limits<Number>::denorm_min(),
                                 -std::numeric_limits<Number>::denorm_min()};
        return simple[random.between(0, 12)];
    }
    const auto exponent = static_cast<int>(random.between(-1080, 1030));
    return static_cast<Number>(std::ldexp(static_cast<double>(random.number()), exponent % 200));
}

template <typename Number>
void check_codes(const std::vector<double>& cuts, const std::vector<Number>& values) {
    const CutSearch<Number> search(cuts.data(), static_cast<std::int64_t>(cuts.size()), kMissing);
    for (std::size_t first = 0; first < values.size(); first += kSearchedValues) {
        const std::size_t count = std::min<std::size_t>(kSearchedValues, values.size() - first);
        std::vector<std::uint8_t> codes(count);
        search.find_codes(values.data() + first, static_cast<std::int64_t>(count), codes.data());
        for (std::size_t i = 0; i < count; ++i) {
            const double x = static_cast<double>(values[first + i]);
            const auto below =
                std::count_if(cuts.begin(), cuts.end(), [&](double c) { return c < x; });
            CHECK_EQUAL(int{codes[i]}, std::isnan(x) ? int{kMissing} : static_cast<int>(below));
        }
    }
}

// The cuts, their neighbours, and what else may come.
template <typename Number>
std::vector<Number> values_around(Random& random, const std::vector<double>& cuts) {
    const auto infinity = std::numeric_limits<Number>::infinity();
    std::vector<Number> values{infinity, -infinity, 0, Number(-0.0),
                               std::numeric_limits<Number>::quiet_NaN()};
    for (const double cut : cuts) {
        const auto near = static_cast<Number>(cut);
        values.insert(values.end(),
                      {near, std::nextafter(near, infinity), std::nextafter(near, -infinity)});
    }
    for (int i = 0; i < 100; ++i) {
        values.push_back(any_number<Number>(random));
    }
    return values;
}

void check_both(Random& random, std::vector<double> cuts) {
    std::sort(cuts.begin(), cuts.end());
    check_codes(cuts, values_around<float>(random, cuts));
    check_codes(cuts, values_around<double>(random, cuts));
}

}  // namespace

TEST(a_float32_is_above_a_number_where_it_is_above_the_float32_below) {
    const float infinity = std::numeric_limits<float>::infinity();
    Random random(31);
    for (int round = 0; round < 20000; ++round) {
        const double number = any_number<double>(random);
        const auto near = static_cast<float>(number);
        for (const float x : {near, std::nextafter(near, infinity), std::nextafter(near, -infinity),
                              infinity, -infinity, 0.0f, std::nanf("")}) {
            CHECK_EQUAL(static_cast<double>(x) > number, x > float32_at_most(number));
        }
    }
    CHECK_EQUAL(float32_at_most(1e300), std::numeric_limits<float>::max());
    CHECK_EQUAL(float32_at_most(-1e300), -infinity);
    CHECK_EQUAL(float32_at_most(1e-60), 0.0f);
    CHECK(std::isnan(float32_at_most(std::nan(""))));
}

TEST(codes_of_smooth_cuts_count_those_below) {
    Random random(32);
    for (const int n_cuts : {0, 1, 2, 3, 17, 128, 254, 255}) {
        std::vector<double> cuts;
        for (int i = 0; i < n_cuts; ++i) {
            cuts.push_back(std::sinh(0.05 * (i - n_cuts / 2)) + 1e-3 * random.number());
        }
        check_both(random, cuts);
    }
}

TEST(codes_of_cuts_of_all_sizes_count_those_below) {
    Random random(33);
    for (int round = 0; round < 60; ++round) {
        std::vector<double> cuts;
        const std::int64_t n_cuts = random.between(1, 255);
        for (std::int64_t i = 0; i < n_cuts; ++i) {
            cuts.push_back(any_number<double>(random));
        }
        check_both(random, cuts);
    }
}

TEST(codes_of_extreme_cuts_count_those_below) {
    const double largest = std::numeric_limits<double>::max(), tiny = 5e-324;
    Random random(34);
    check_both(random, {-kInfinity, kInfinity});
    check_both(random, {-kInfinity});
    check_both(random, {kInfinity});
    check_both(random, {-largest, largest});  // their distance overflows
    check_both(random, {0.0, tiny});          // so does 1 over theirs
    check_both(random, {tiny, 2 * tiny, 3 * tiny});
    check_both(random, {-kInfinity, -largest, -1.0, 0.0, tiny, 1e308, largest, kInfinity});
    check_both(random, std::vector<double>(255, 7.0));  // 255 of them in one bucket
}

TEST(cuts_that_do_not_ascend_leave_no_buffer) {
    Random random(35);
    for (int round = 0; round < 50; ++round) {
        std::vector<double> cuts(static_cast<std::size_t>(random.between(1, 255)));
        for (double& cut : cuts) {
            cut = random.chance(20) ? std::nan("") : any_number<double>(random);
        }
        const std::vector<float> values = values_around<float>(random, {0.0, 1.0});
        std::vector<std::uint8_t> codes(values.size());
        CutSearch<float>(cuts.data(), static_cast<std::int64_t>(cuts.size()), kMissing)
            .find_codes(values.data(), static_cast<std::int64_t>(values.size()), codes.data());
    }
}

TEST_MAIN()
