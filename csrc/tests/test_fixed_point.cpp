#include "cpu/views.h"
#include "shared/fixed_point.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <cmath>
#include <limits>

using namespace torchgbdt_tests;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kSmallestNormal = std::numeric_limits<float>::min();

float random_float(Random& random) {
    return float_from_bits(static_cast<std::uint32_t>(random.word()));
}

}  // namespace

TEST(what_lies_below_the_smallest_normal_number_becomes_plus_zero) {
    const float below = std::nextafter(kSmallestNormal, 0.0f);
    for (const float x : {0.0f, -0.0f, below, -below, 1e-45f, -1e-45f}) {
        CHECK_EQUAL(float_bits(flush_subnormals(x)), 0u);
    }
}

TEST(everything_else_passes_unchanged) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const float x : {kSmallestNormal, -kSmallestNormal, 1.5f, kInfinity, -kInfinity, nan}) {
        CHECK_EQUAL(float_bits(flush_subnormals(x)), float_bits(x));
    }
}

TEST(finite_means_neither_infinite_nor_nan) {
    CHECK(is_finite(0.0f) && is_finite(-3e38f) && is_finite(1e-45f));
    CHECK(!is_finite(kInfinity) && !is_finite(-kInfinity));
    CHECK(!is_finite(std::numeric_limits<float>::quiet_NaN()));
}

TEST(powers_of_two_are_exact) {
    for (int exponent = -126; exponent <= 127; ++exponent) {
        CHECK_EQUAL(power_of_two(exponent), std::ldexp(1.0f, exponent));
    }
}

TEST(halves_round_to_the_even_neighbour) {
    CHECK_EQUAL(round_half_even(0.5f), 0.0f);
    CHECK_EQUAL(round_half_even(1.5f), 2.0f);
    CHECK_EQUAL(round_half_even(2.5f), 2.0f);
    CHECK_EQUAL(round_half_even(-2.5f), -2.0f);
    CHECK_EQUAL(round_half_even(-3.5f), -4.0f);
    CHECK_EQUAL(round_half_even(4194304.5f), 4194304.0f);  // halves exist up to 2^23
    CHECK_EQUAL(round_half_even(4194305.5f), 4194306.0f);
    CHECK_EQUAL(round_half_even(8388607.5f), 8388608.0f);
    CHECK_EQUAL(round_half_even(8388609.0f), 8388609.0f);
    CHECK_EQUAL(round_half_even(1e30f), 1e30f);
}

TEST(rounding_agrees_with_the_standard_library_on_random_bits) {
    Random random(1);
    for (int i = 0; i < 1000000; ++i) {
        const float x = random_float(random);
        if (is_finite(x)) {
            CHECK_EQUAL(round_half_even(x), std::nearbyint(x));
        }
    }
}

TEST(fixed_point_in_float32_equals_fixed_point_in_float64) {
    Random random(2);
    for (int i = 0; i < 1000000; ++i) {
        const float gradient = flush_subnormals(random_float(random));
        if (!is_finite(gradient) || gradient == 0.0f) {
            continue;
        }
        int exponent;
        std::frexp(gradient, &exponent);
        // From the scale at which this gradient is the largest to where it vanishes.
        const int scale = std::max(std::min(30 - exponent, 120) - int(random.between(0, 40)), -126);
        const double exact = std::nearbyint(std::ldexp(double{gradient}, scale));
        CHECK_EQUAL(round_gradient(gradient, power_of_two(scale)), std::int32_t(exact));
    }
}

TEST(a_positive_hessian_never_becomes_zero) {
    CHECK_EQUAL(round_hessian(1e-30f, power_of_two(0)), 1);
    CHECK_EQUAL(round_hessian(kSmallestNormal, power_of_two(-98)), 1);
    CHECK_EQUAL(round_hessian(0.0f, power_of_two(28)), 0);
    CHECK_EQUAL(round_hessian(2.5f, power_of_two(0)), 2);
}

TEST(the_constant_hessian_is_what_rounding_gives) {
    for (int scale = -126; scale <= 30; ++scale) {
        CHECK_EQUAL(Words::hessian_unit(scale),
                    std::int64_t{round_hessian(1.0f, power_of_two(scale))});
    }
}

TEST_MAIN()
