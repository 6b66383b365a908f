// Extremes of float32 numbers, joined over blocks and threads in any order.
#pragma once

#include "shared/fixed_point.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace torchgbdt {

// The largest magnitude. Without their sign, the bits of float32 numbers are ordered like the
// numbers, with infinity and then NaN on top; so one integer maximum also tells what is not finite.
class LargestMagnitude {
  public:
    void add(const float* numbers, std::int64_t count, std::int64_t stride) {
        std::int32_t largest = bits_;
        for (std::int64_t i = 0; i < count; ++i) {
            const float size = magnitude(numbers[i * stride]);
            largest = std::max(largest, static_cast<std::int32_t>(float_bits(size)));
        }
        bits_ = largest;
    }

    void join(const LargestMagnitude& other) { bits_ = std::max(bits_, other.bits_); }

    // 0 without numbers, infinity or NaN if one of them is.
    float value() const { return float_from_bits(static_cast<std::uint32_t>(bits_)); }
    bool all_finite() const { return is_finite(value()); }

  private:
    std::int32_t bits_ = 0;
};

// The smallest number. The bits of negative float32 numbers are ordered the wrong way round; with
// all but the sign inverted, all bits are ordered like the numbers. Integers, because a minimum of
// floats that minds NaN and -0 does not vectorize; here NaN counts as beyond infinity.
class Smallest {
  public:
    void add(const float* numbers, std::int64_t count, std::int64_t stride) {
        std::int32_t smallest = key_;
        for (std::int64_t i = 0; i < count; ++i) {
            smallest = std::min(smallest, key(float_bits(numbers[i * stride])));
        }
        key_ = smallest;
    }

    void join(const Smallest& other) { key_ = std::min(key_, other.key_); }

    // Infinity without numbers; NaN only if one of them is.
    float value() const {
        return float_from_bits(static_cast<std::uint32_t>(key(static_cast<std::uint32_t>(key_))));
    }

  private:
    static std::int32_t key(std::uint32_t bits) {  // its own inverse
        const auto signed_bits = static_cast<std::int32_t>(bits);
        return signed_bits < 0 ? signed_bits ^ 0x7fffffff : signed_bits;
    }

    std::int32_t key_ = 0x7f800000;  // infinity
};

}  // namespace torchgbdt
