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

// The smallest number; NaN is passed over.
class Smallest {
  public:
    void add(const float* numbers, std::int64_t count, std::int64_t stride) {
        for (std::int64_t i = 0; i < count; ++i) {
            value_ = std::min(value_, numbers[i * stride]);
        }
    }

    void join(const Smallest& other) { value_ = std::min(value_, other.value_); }

    float value() const { return value_; }

  private:
    float value_ = std::numeric_limits<float>::infinity();
};

}  // namespace torchgbdt
