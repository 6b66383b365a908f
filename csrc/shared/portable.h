// What differs between C++ and Metal in the headers of this folder: integer names and bit access.
#pragma once

#ifdef __METAL_VERSION__
#include <metal_stdlib>
#else
#include <cstdint>
#include <cstring>
#endif

namespace torchgbdt {

#ifdef __METAL_VERSION__

inline uint32_t float_bits(float x) {
    return as_type<uint32_t>(x);
}

inline float float_from_bits(uint32_t bits) {
    return as_type<float>(bits);
}

#else

using std::int32_t;
using std::uint32_t;

inline uint32_t float_bits(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

inline float float_from_bits(uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

#endif

}  // namespace torchgbdt
