// Integers beyond 64 bits, and those that the host passes as words of 32 bits.
#pragma once

#include "metal/long_words.h"

namespace torchgbdt {

inline ulong magnitude(long value) {
    return value < 0 ? ulong(0) - ulong(value) : ulong(value);
}

struct WideProduct {
    ulong high;
    ulong low;
};

// a * b in 128 bits, from products of 32-bit halves.
inline WideProduct wide_product(ulong a, ulong b) {
    const ulong half_mask = 0xffffffffu;
    const ulong a_high = a >> 32;
    const ulong a_low = a & half_mask;
    const ulong b_high = b >> 32;
    const ulong b_low = b & half_mask;
    const ulong bottom = a_low * b_low;
    const ulong cross = a_high * b_low + (bottom >> 32);  // below 2^64, as is the next
    const ulong middle = a_low * b_high + (cross & half_mask);
    WideProduct product;
    product.high = a_high * b_high + (cross >> 32) + (middle >> 32);
    product.low = (middle << 32) | (bottom & half_mask);
    return product;
}

// a * b == c * d, for b and d >= 0.
inline bool equal_products(long a, long b, long c, long d) {
    const WideProduct ab = wide_product(magnitude(a), ulong(b));
    const WideProduct cd = wide_product(magnitude(c), ulong(d));
    const bool is_zero = (ab.high | ab.low) == 0;
    return ab.high == cd.high && ab.low == cd.low && (is_zero || (a < 0) == (c < 0));
}

}  // namespace torchgbdt
