// One source, several instruction sets: the processor's best is chosen when the module is loaded.
#pragma once

#include <cstdint>  // any header of the C library: only then is it known whether it is glibc

// Put before the definition of a function whose loops gain from wide vectors. All versions give the
// same bits: -ffp-contract=off holds for each, and no sum of floating-point numbers is reordered.
// What the function calls must be inlined into it, or runs as for the least processor; a lambda's
// body does not count as inlined.
//
// It takes GCC 12 (names of levels of x86-64) and a loader that chooses (glibc). Elsewhere, and
// under sanitizers, which intercept calls before the choice can be made, there is one version, for
// the least processor of the architecture.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    __GNUC__ >= 12 && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TORCHGBDT_VECTORIZE \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TORCHGBDT_VECTORIZE
#endif
