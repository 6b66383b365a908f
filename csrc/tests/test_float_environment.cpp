#include "cpu/float_environment.h"
#include "cpu/kernels.h"
#include "cpu/thread_pool.h"
#include "tests/check.h"
#include "tests/random_data.h"

#include <atomic>
#include <cfenv>
#include <limits>
#include <vector>

using namespace torchgbdt_tests;

namespace {

// What a caller may do to its thread: round upwards and, on x86, treat subnormals as 0.
class HostileFloatEnvironment {
  public:
    HostileFloatEnvironment() {
        std::fesetround(FE_UPWARD);
#if defined(__SSE2__)
        saved_ = _mm_getcsr();
        _mm_setcsr(saved_ | 0x8040);  // flush to zero, denormals are zero
#endif
    }
    ~HostileFloatEnvironment() {
#if defined(__SSE2__)
        _mm_setcsr(saved_);
#endif
        std::fesetround(FE_TONEAREST);
    }

  private:
    unsigned saved_ = 0;
};

bool rounds_to_nearest() {
    volatile double one = 1.0;
    volatile double less_than_half_an_ulp = 1e-17;
    return one + less_than_half_an_ulp == 1.0;
}

bool keeps_subnormals() {
    volatile double subnormal = std::numeric_limits<double>::denorm_min();
    return subnormal * 1.0 > 0.0;
}

std::vector<std::uint8_t> bins_of_subnormal_values() {
    const double tiny = std::numeric_limits<double>::denorm_min();
    const std::vector<double> x{0.0, tiny, 2 * tiny, 3 * tiny, -tiny};
    const std::vector<double> cuts{-tiny, tiny, 2 * tiny};
    const std::vector<std::int64_t> offsets{0, 3};
    const std::vector<std::int32_t> n_value_bins{4};
    std::vector<std::uint8_t> bins(x.size());
    const MatrixView matrix{
        reinterpret_cast<const char*>(x.data()), 5, 1, 8, 8, ElementType::float64};
    bin_features(matrix, nullptr, 5, {cuts.data(), offsets.data(), n_value_bins.data()},
                 bins.data(), 1);
    return bins;
}

std::vector<std::int32_t> fixed_point_of_fractions() {
    const std::vector<float> gradients{0.1f, 0.5f, 1.5f, -0.1f, -2.5f, 2.25f};
    const std::vector<std::int64_t> scales{0, 28};
    std::vector<std::int32_t> fixed(gradients.size());
    std::vector<std::int64_t> totals(2);
    round_gradients(gradients.data(), nullptr, 6, Words{1, true}, scales.data(), fixed.data(),
                    totals.data(), 2);
    return fixed;
}

}  // namespace

TEST(the_guard_gives_the_default_and_restores_what_was) {
    const HostileFloatEnvironment hostile;
    CHECK(!rounds_to_nearest());
    {
        const DefaultFloatEnvironment environment;
        CHECK(rounds_to_nearest());
        CHECK(keeps_subnormals());
    }
    CHECK(!rounds_to_nearest());
}

TEST(every_task_runs_in_the_default_environment) {
    std::atomic<int> failures{0};
    {
        const HostileFloatEnvironment hostile;
        for (const int n_threads : {1, 2, 5}) {  // new threads inherit what is hostile
            parallel_for(100, n_threads, [&](std::int64_t, int) {
                failures += rounds_to_nearest() && keeps_subnormals() ? 0 : 1;
            });
        }
        CHECK(!rounds_to_nearest());  // and the caller gets back what it had
    }
    CHECK_EQUAL(failures.load(), 0);
}

TEST(kernels_give_the_same_bits_in_a_hostile_environment) {
    std::vector<std::uint8_t> bins;
    std::vector<std::int32_t> fixed;
    {
        const HostileFloatEnvironment hostile;
        bins = bins_of_subnormal_values();
        fixed = fixed_point_of_fractions();
    }
    CHECK(bins == (std::vector<std::uint8_t>{1, 1, 2, 3, 0}));
    CHECK(fixed == (std::vector<std::int32_t>{0, 0, 2, 0, -2, 2}));
    CHECK(bins == bins_of_subnormal_values());
}

TEST_MAIN()
