// With --all every float32 number is tried, a few minutes; else every 1021st.
#include "cpu/thread_pool.h"
#include "shared/portable_math.h"
#include "tests/check.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <limits>
#include <vector>

using namespace torchgbdt;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kSmallestNormal = std::numeric_limits<float>::min();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::uint64_t kPatterns = std::uint64_t{1} << 32;

std::uint64_t stride = 1021;  // a prime: every exponent with every kind of mantissa

struct Worst {
    double ulps = 0.0;
    float x = 0.0f;
    std::int64_t n_wrong = 0;  // zero, infinity or NaN where the function is not, or the reverse
};

// How far a float32 result is from the function in float64, which errs by far less.
void compare(float x, float result, double exact, Worst& worst) {
    exact = std::fabs(exact) < double{kSmallestNormal} ? 0.0 : exact;
    const float rounded = static_cast<float>(exact);
    if (rounded == 0.0f || !std::isfinite(rounded)) {
        const float expected = std::isnan(rounded) ? not_a_number() : rounded;
        worst.n_wrong += float_bits(result) != float_bits(expected) ? 1 : 0;
        return;
    }
    const double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
    const double ulps = std::fabs(double{result} - exact) / ulp;
    worst.n_wrong += std::isfinite(result) ? 0 : 1;
    if (ulps > worst.ulps) {
        worst.ulps = ulps;
        worst.x = x;
    }
}

template <typename Portable, typename Exact>
Worst sweep(const char* name, const Portable& portable, const Exact& exact) {
    const int n_threads = 2;
    const std::int64_t count = static_cast<std::int64_t>((kPatterns + stride - 1) / stride);
    const Blocks tasks{count, 1 << 16};
    std::vector<Worst> workers(worker_count(tasks.count(), n_threads));
    parallel_for(tasks.count(), n_threads, [&](std::int64_t task, int worker) {
        for (std::int64_t i = tasks.begin(task); i < tasks.end(task); ++i) {
            const float x = float_from_bits(static_cast<std::uint32_t>(i * stride));
            compare(x, portable(x), exact(double{flush_subnormals(x)}), workers[worker]);
        }
    });
    Worst all;
    for (const Worst& worst : workers) {
        const std::int64_t n_wrong = all.n_wrong + worst.n_wrong;
        all = worst.ulps > all.ulps ? worst : all;
        all.n_wrong = n_wrong;
    }
    std::cout << name << ": at most " << all.ulps << " ulp, at " << all.x << "\n";
    return all;
}

}  // namespace

TEST(exp_is_exact_within_an_ulp) {
    const Worst worst = sweep("exp", portable_exp, [](double x) { return std::exp(x); });
    CHECK(worst.ulps < 0.9);
    CHECK_EQUAL(worst.n_wrong, 0);
}

TEST(log_is_exact_within_an_ulp) {
    const Worst worst = sweep("log", portable_log, [](double x) {
        return x == 0.0 ? -std::numeric_limits<double>::infinity() : std::log(x);
    });
    CHECK(worst.ulps < 0.9);
    CHECK_EQUAL(worst.n_wrong, 0);
}

TEST(log1p_is_exact_within_an_ulp) {
    const Worst worst = sweep("log1p", portable_log1p, [](double x) { return std::log1p(x); });
    CHECK(worst.ulps < 0.9);
    CHECK_EQUAL(worst.n_wrong, 0);
}

TEST(log1p_keeps_what_is_lost_where_1_plus_x_rounds_up_to_three_halves) {
    Worst worst;
    for (float x = 0.5f; x > 0.4999f; x = std::nextafter(x, 0.0f)) {
        compare(x, portable_log1p(x), std::log1p(double{x}), worst);
    }
    CHECK(worst.ulps < 0.9);
}

TEST(exp_ends_where_float32_does) {
    const float largest = 88.7228317f, smallest = -87.3365402f;
    CHECK(is_finite(portable_exp(largest)));
    CHECK_EQUAL(portable_exp(std::nextafter(largest, kInfinity)), kInfinity);
    CHECK(portable_exp(smallest) >= kSmallestNormal);
    CHECK_EQUAL(float_bits(portable_exp(std::nextafter(smallest, -kInfinity))), 0u);
    CHECK_EQUAL(portable_exp(kInfinity), kInfinity);
    CHECK_EQUAL(float_bits(portable_exp(-kInfinity)), 0u);
}

TEST(what_is_exact_in_real_numbers_is_exact) {
    CHECK_EQUAL(portable_exp(0.0f), 1.0f);
    CHECK_EQUAL(portable_exp(-0.0f), 1.0f);
    CHECK_EQUAL(float_bits(portable_log(1.0f)), 0u);
    CHECK_EQUAL(float_bits(portable_log1p(0.0f)), 0u);
    CHECK_EQUAL(float_bits(portable_log1p(-0.0f)), 0u);
}

TEST(logarithms_begin_at_their_pole) {
    CHECK_EQUAL(portable_log(0.0f), -kInfinity);
    CHECK_EQUAL(portable_log(-0.0f), -kInfinity);
    CHECK_EQUAL(portable_log(kInfinity), kInfinity);
    CHECK_EQUAL(portable_log1p(-1.0f), -kInfinity);
    CHECK_EQUAL(portable_log1p(kInfinity), kInfinity);
    for (const float x : {-kSmallestNormal, -1.0f, -kInfinity}) {
        CHECK_EQUAL(float_bits(portable_log(x)), float_bits(not_a_number()));
    }
    for (const float x : {std::nextafter(-1.0f, -kInfinity), -2.0f, -kInfinity}) {
        CHECK_EQUAL(float_bits(portable_log1p(x)), float_bits(not_a_number()));
    }
}

TEST(inputs_below_the_smallest_normal_number_are_zero) {
    const float below = std::nextafter(kSmallestNormal, 0.0f);
    for (const float x : {below, -below, 1e-45f, -1e-45f}) {
        CHECK_EQUAL(portable_exp(x), 1.0f);
        CHECK_EQUAL(portable_log(x), -kInfinity);
        CHECK_EQUAL(float_bits(portable_log1p(x)), 0u);
    }
    CHECK_EQUAL(portable_log1p(kSmallestNormal), kSmallestNormal);
    CHECK_EQUAL(portable_log1p(-kSmallestNormal), -kSmallestNormal);
}

TEST(there_is_one_nan) {
    for (const std::uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, float_bits(-kNan)}) {
        const float x = float_from_bits(bits);
        CHECK_EQUAL(float_bits(portable_exp(x)), float_bits(not_a_number()));
        CHECK_EQUAL(float_bits(portable_log(x)), float_bits(not_a_number()));
        CHECK_EQUAL(float_bits(portable_log1p(x)), float_bits(not_a_number()));
    }
}

int main(int argc, char** argv) {
    stride = argc > 1 && std::strcmp(argv[1], "--all") == 0 ? 1 : stride;
    return check::run_all();
}
