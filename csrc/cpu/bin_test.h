// Which side of a split a bin code goes to; asked by routing and by traversal.
#pragma once

#include <algorithm>
#include <cstdint>

namespace torchgbdt {

// Value bins <= split_bin go left; the missing code, the largest of its feature, goes where the
// split sends it, whatever split_bin is. No branch: both questions are always asked.
class BinTest {
  public:
    BinTest(std::int32_t split_bin, std::int32_t missing_code, bool missing_left)
        : last_left_bin_(static_cast<std::int16_t>(std::min(split_bin, missing_code - 1))),
          missing_left_code_(static_cast<std::int16_t>(missing_left ? missing_code : kNoCode)) {}

    // The test of a leaf: every code goes left.
    static BinTest always_left() { return BinTest(kLargestCode, kLargestCode + 1, false); }

    bool goes_right(std::uint8_t code) const {
        return (code > last_left_bin_) & (code != missing_left_code_);
    }

  private:
    static constexpr std::int32_t kNoCode = -1;
    static constexpr std::int32_t kLargestCode = 255;

    std::int16_t last_left_bin_;
    std::int16_t missing_left_code_;
};

}  // namespace torchgbdt
