// Extremes of float32 numbers over all rows, as integers: without their sign, the bits of float32
// numbers are ordered like the numbers, infinity and then NaN on top, so that a maximum also tells
// what is not finite. Maxima have no order; 0 is the least word, so buffers start as zeros.
#pragma once

#include "shared/fixed_point.h"

namespace torchgbdt {

inline uint magnitude_word(float x) {
    return float_bits(x) & 0x7fffffffu;
}

// Largest for the smallest number. ~word is ordered like the numbers: it has all bits of negative
// numbers inverted, and the sign of others.
inline uint smallness_word(float x) {
    const uint bits = float_bits(x);
    return ~(bits ^ ((bits & 0x80000000u) != 0 ? 0xffffffffu : 0x80000000u));
}

// Joins the words of a simdgroup's threads into one of the buffer; all threads must come.
inline void join_largest(device atomic_uint* largest, uint word, uint lane) {
    const uint of_lanes = simd_max(word);
    if (lane == 0) {
        atomic_fetch_max_explicit(largest, of_lanes, memory_order_relaxed);
    }
}

}  // namespace torchgbdt
