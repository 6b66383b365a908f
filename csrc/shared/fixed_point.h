// How float32 gradients become integers whose sums have no order; twin of core/fixed_point.py.
//
// float32 suffices: a product with a power of two is exact unless it falls below 2^-126, and what
// falls there rounds to 0 whether or not the device flushes it.
#pragma once

#include "shared/portable.h"

namespace torchgbdt {

// Replaces every magnitude below 2^-126, and -0, by +0; infinities and NaN pass through.
inline float flush_subnormals(float x) {
    return (float_bits(x) & 0x7f800000u) == 0 ? 0.0f : x;
}

inline bool is_finite(float x) {
    return (float_bits(x) & 0x7f800000u) != 0x7f800000u;
}

inline float magnitude(float x) {
    return float_from_bits(float_bits(x) & 0x7fffffffu);
}

// 2^exponent for -126 <= exponent <= 127.
inline float power_of_two(int32_t exponent) {
    return float_from_bits(static_cast<uint32_t>(exponent + 127) << 23);
}

// The nearest integer, ties to the even one. Adding 2^23 leaves no fraction bits, so the addition
// itself rounds; from 2^23 on every float32 is an integer. Needs round-to-nearest arithmetic.
// Selections only, no branches: both signs and both sizes are common.
inline float round_half_even(float x) {
    const float no_fraction = 8388608.0f;  // 2^23
    const float size = magnitude(x);
    const float rounded = (size + no_fraction) - no_fraction;
    const float result = size < no_fraction ? rounded : size;
    return float_from_bits(float_bits(result) | (float_bits(x) & 0x80000000u));
}

// q = round_half_even(g * 2^scale); |g| * 2^scale <= 2^30.
inline int32_t round_gradient(float gradient, float power_of_scale) {
    return static_cast<int32_t>(round_half_even(gradient * power_of_scale));
}

// The same for h >= 0; a positive Hessian never becomes 0.
inline int32_t round_hessian(float hessian, float power_of_scale) {
    const int32_t rounded = round_gradient(hessian, power_of_scale);
    return hessian > 0.0f && rounded < 1 ? 1 : rounded;
}

}  // namespace torchgbdt
