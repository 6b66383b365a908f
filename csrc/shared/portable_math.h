// exp, log and log1p in float32, the same bits on every device; twin of core/portable_math.py.
//
// Only additions, subtractions and multiplications that IEEE 754 rounds, comparisons, and integer
// operations on bits: no float64, no fused multiply-add, no table. Selections instead of branches,
// so that loops vectorize; what a selection drops may be any number.
//
// Largest error over all float32 numbers: exp 0.899 ulp, log and log1p 0.888 ulp. Inputs below
// 2^-126 count as +0, results below it are +0, and there is one NaN, whichever comes in.
//
// The coefficients are minimax over the interval stated: found by linear programming on residuals
// of 160 bits, and rounded to float32 one by one, lowest power first, the others fitted again.
#pragma once

#include "shared/fixed_point.h"

namespace torchgbdt {

inline float infinity() {
    return float_from_bits(0x7f800000u);
}

inline float not_a_number() {
    return float_from_bits(0x7fc00000u);
}

// n * ln 2 = high + low for integers |n| <= 128. high is exact: its constant has 15 bits.
struct Ln2Multiple {
    float high;
    float low;
};

inline Ln2Multiple times_ln2(float n) {
    return {n * 0.693145752f, n * 1.42860677e-6f};
}

// x = n ln 2 + r, |r| <= 0.34658; exp(x) = 2^n (1 + r + r^2 q(r)), q of degree 4: relative error
// 2^-28.03. r is kept as high - low, so that its rounding meets r^2 only.
inline float portable_exp(float x) {
    const float largest = 88.7228317f;    // above it exp(x) exceeds float32
    const float smallest = -87.3365402f;  // below it exp(x) < 2^-126
    const float log2_e = 1.44269502f;
    const float shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, the low bits
    const float shifted = x * log2_e + shift;
    const float n = shifted - shift;
    const Ln2Multiple ln2 = times_ln2(n);
    const float high = x - ln2.high;
    const float r = high - ln2.low;
    float q = 1.38634094e-3f;
    q = q * r + 8.36743135e-3f;
    q = q * r + 4.16672416e-2f;
    q = q * r + 0.166665345f;
    q = q * r + 0.5f;
    const float power = 1.0f + (high + (r * r * q - ln2.low));
    float result = float_from_bits(float_bits(power) + (float_bits(shifted) << 23));
    result = x > largest ? infinity() : result;
    result = x < smallest ? 0.0f : result;
    return x == x ? result : not_a_number();
}

// m and e of x = m * 2^e, 3/4 < m <= 3/2, for x >= 2^-126. The border lies a little above 3/4 and
// 3/2: numbers below 1/2 to which 1 was added, and rounded to 3/2, must have e = 0 in log1p.
struct MantissaAndExponent {
    float mantissa;
    int32_t exponent;
};

inline MantissaAndExponent split_exponent(float x) {
    const uint32_t border = 0x3f400002u;                              // 3/4 + 2^-23
    const uint32_t shifted = float_bits(x) + (0x3f800000u - border);  // the border becomes 1
    return {float_from_bits((shifted & 0x007fffffu) + border),
            static_cast<int32_t>(shifted >> 23) - 127};
}

// log((1 + f) * 2^exponent) = exponent ln 2 + (f - f^2/2 + f^3 R(f)) for -1/4 < f <= 1/2, R of
// degree 7: relative error 2^-27.59.
inline float log_of_parts(float f, int32_t exponent) {
    const Ln2Multiple ln2 = times_ln2(static_cast<float>(exponent));
    const float square = f * f;
    float r = -4.51523438e-2f;
    r = r * f + 0.104725577f;
    r = r * f - 0.131639376f;
    r = r * f + 0.144776300f;
    r = r * f - 0.166468784f;
    r = r * f + 0.199908480f;
    r = r * f - 0.250001103f;
    r = r * f + 0.333334506f;
    return ln2.high + (f - (0.5f * square - (square * f * r + ln2.low)));
}

inline float portable_log(float x) {
    const MantissaAndExponent parts = split_exponent(x);
    float result = log_of_parts(parts.mantissa - 1.0f, parts.exponent);
    result = x == infinity() ? infinity() : result;
    result = x < 0.0f ? not_a_number() : result;
    result = magnitude(x) < power_of_two(-126) ? -infinity() : result;
    return x == x ? result : not_a_number();
}

// 1 + x = (1 + f) * 2^e with f = x * 2^-e + (2^-e - 1): exact where e < 25, though 1 + x is not.
inline float portable_log1p(float x) {
    const int32_t exponent = split_exponent(1.0f + x).exponent;
    const uint32_t exponent_bits = static_cast<uint32_t>(exponent) << 23;
    const float scaled = float_from_bits(float_bits(x) - exponent_bits);
    const float power = float_from_bits(0x3f800000u - exponent_bits);  // of two, if exponent < 127
    const float f = scaled + (exponent < 25 ? power - 1.0f : -1.0f);
    float result = log_of_parts(f, exponent);
    result = x == infinity() ? infinity() : result;
    result = x == -1.0f ? -infinity() : result;
    result = x < -1.0f ? not_a_number() : result;
    result = magnitude(x) < power_of_two(-126) ? 0.0f : result;
    return x == x ? result : not_a_number();
}

}  // namespace torchgbdt
