// The floating-point environment that the numerics contract assumes: IEEE 754 defaults.
#pragma once

#include <cfloat>

#if defined(__SSE2__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace torchgbdt {

static_assert(FLT_EVAL_METHOD == 0, "float32 results must not be kept in wider registers");

// Round to nearest, subnormals kept, no traps, for as long as the object lives on this thread.
// A caller may have changed any of it: torch.set_flush_denormal(True) does, and a new thread
// inherits it.
class DefaultFloatEnvironment {
  public:
    DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
    DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

#if defined(__SSE2__)
    DefaultFloatEnvironment() : saved_(_mm_getcsr()) { _mm_setcsr(kDefaultControl); }
    ~DefaultFloatEnvironment() { _mm_setcsr(saved_); }

  private:
    static constexpr unsigned kDefaultControl = 0x1f80;  // MXCSR after a reset: all traps masked
    unsigned saved_;
#else
    DefaultFloatEnvironment() {
        std::fegetenv(&saved_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~DefaultFloatEnvironment() { std::fesetenv(&saved_); }

  private:
    std::fenv_t saved_;
#endif
};

}  // namespace torchgbdt
