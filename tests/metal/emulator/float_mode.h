// Subnormal float32 numbers as a GPU may treat them: 0, on the way in and out.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// While it lives, the thread's floating-point unit flushes subnormals, or does not.
class FloatMode {
  public:
    explicit FloatMode(bool flush) : before_(read()) {
        write(flush ? before_ | flush_bits : before_ & ~flush_bits);
    }
    ~FloatMode() { write(before_); }
    FloatMode(const FloatMode&) = delete;
    FloatMode& operator=(const FloatMode&) = delete;

  private:
#if defined(__x86_64__)
    static constexpr unsigned long flush_bits = 0x8040;  // MXCSR: flush to zero, denormals are zero
    static unsigned long read() { return _mm_getcsr(); }
    static void write(unsigned long mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
    static constexpr unsigned long flush_bits = 1ul << 24;  // FPCR.FZ
    static unsigned long read() {
        unsigned long mode;
        asm volatile("mrs %0, fpcr" : "=r"(mode));
        return mode;
    }
    static void write(unsigned long mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
#error "how subnormals are flushed on this processor is not known"
#endif
    unsigned long before_;
};
