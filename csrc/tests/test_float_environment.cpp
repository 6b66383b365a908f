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

// Registers that say how a thread computes, beyond what <cfenv> can.
#if defined(__SSE2__)
using Control = unsigned;
constexpr Control kFlushSubnormals = 0x8040;  // MXCSR: flush to zero, denormals are zero
Control control() {
    return _mm_getcsr();
}
void set_control(Control bits) {
    _mm_setcsr(bits);
}
#elif defined(__aarch64__)
using Control = std::uint64_t;
constexpr Control kFlushSubnormals = 1u << 24;  // FPCR: flush to zero
Control control() {
    Control bits;
    asm volatile("mrs %0, fpcr" : "=r"(bits));
    return bits;
}
void set_control(Control bits) {
    asm volatile("msr fpcr, %0" : : "r"(bits));
}
#else
using Control = unsigned;
constexpr Control kFlushSubnormals = 0;
Control control() {
    return 0;
}
void set_control(Control) {}
#endif

// What a caller may do to its thread: round upwards, treat subnormals as 0.
class HostileFloatEnvironment {
  public:
    HostileFloatEnvironment() : saved_(control()) {
        std::fesetround(FE_UPWARD);
        set_control(control() | kFlushSubnormals);
    }
    ~HostileFloatEnvironment() {
        std::fesetround(FE_TONEAREST);
        set_control(saved_);
    }

  private:
    Control saved_;
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
