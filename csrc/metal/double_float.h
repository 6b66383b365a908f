// Numbers with about 48 bits as unevaluated sums of two float32: Metal has no float64.
//
// Exact but for what is said, in round-to-nearest float32 without contraction, as long as nothing
// falls below 2^-126. What does, is lost or kept, as the device likes; metal/split_bound.h counts
// it.
#pragma once

#include "metal/wide_integers.h"
#include "shared/fixed_point.h"

namespace torchgbdt {

// high + low; |low| is at most half a unit in the last place of high.
struct DoubleFloat {
    float high;
    float low;
};

// a + b, exactly, if a is 0 or |a| >= |b| (Dekker 1971).
inline DoubleFloat quick_sum(float a, float b) {
    DoubleFloat sum;
    sum.high = a + b;
    sum.low = b - (sum.high - a);
    return sum;
}

// a + b, exactly (Knuth).
inline DoubleFloat two_sum(float a, float b) {
    DoubleFloat sum;
    sum.high = a + b;
    const float b_part = sum.high - a;
    const float a_part = sum.high - b_part;
    sum.low = (a - a_part) + (b - b_part);
    return sum;
}

// A factor as two halves of at most 12 bits each, so that products of halves are exact (Veltkamp).
inline DoubleFloat halves(float a) {
    const float shifted = 4097.0f * a;  // 2^12 + 1
    DoubleFloat parts;
    parts.high = shifted - (shifted - a);
    parts.low = a - parts.high;
    return parts;
}

// a * b, exactly (Dekker 1971).
inline DoubleFloat two_product(float a, float b) {
    const DoubleFloat x = halves(a);
    const DoubleFloat y = halves(b);
    DoubleFloat product;
    product.high = a * b;
    product.low =
        ((x.high * y.high - product.high) + x.high * y.low + x.low * y.high) + x.low * y.low;
    return product;
}

// value * 2^-exponent, up to 2^-47 of it. Pieces of at most 24 bits are converted exactly, whatever
// way the device rounds when it converts integers.
inline DoubleFloat double_float(long value, int exponent) {
    const ulong size = magnitude(value);
    const float top = float(uint(size >> 40)) * power_of_two(40 - exponent);
    const float middle = float(uint(size >> 16) & 0xffffffu) * power_of_two(16 - exponent);
    const float bottom = float(uint(size) & 0xffffu) * power_of_two(-exponent);
    const DoubleFloat upper = quick_sum(top, middle);
    DoubleFloat result = quick_sum(upper.high, upper.low + bottom);
    if (value < 0) {
        result.high = -result.high;
        result.low = -result.low;
    }
    return result;
}

// a + b, up to 2^-46 of it, if both are >= 0.
inline DoubleFloat add_positive(DoubleFloat a, DoubleFloat b) {
    const DoubleFloat sum = two_sum(a.high, b.high);
    return quick_sum(sum.high, sum.low + (a.low + b.low));
}

// a * b, up to 2^-45 of it.
inline DoubleFloat multiply(DoubleFloat a, DoubleFloat b) {
    const DoubleFloat product = two_product(a.high, b.high);
    return quick_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

// a - b in float32, up to 2^-24 of it and 2^-46 (|a| + |b|).
inline float difference(DoubleFloat a, DoubleFloat b) {
    const DoubleFloat rest = two_sum(a.high, -b.high);
    return rest.high + (rest.low + (a.low - b.low));
}

}  // namespace torchgbdt
