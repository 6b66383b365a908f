// Which side of a split a code of a forest's own cuts goes to; see cpu/forest_cuts.h.
#pragma once

#include <cstdint>

namespace torchgbdt {

constexpr std::uint8_t kMissingCode = 255;  // of every column

// Whether a code is beyond a bound, after all codes were turned around the circle of bytes so far
// that the missing code lies at the end where the split sends it:
//
//     missing right, rank 2:      0 1 2 | 3 4 ... 254 255
//     missing left,  rank 2:  255 0 1 2 | 3 4 ... 254
//
// One addition and one comparison of bytes, without a branch.
struct CodeTest {
    CodeTest(std::int32_t column, std::uint8_t rank, bool missing_left)
        : column(column),
          shift(missing_left ? 1 : 0),
          bound(static_cast<std::uint8_t>(rank + shift)) {}

    // The test of a leaf.
    static CodeTest always_left() { return {0, kMissingCode, false}; }

    bool goes_right(std::uint8_t code) const {
        return static_cast<std::uint8_t>(code + shift) > bound;
    }

    std::int32_t column;
    std::uint8_t shift;
    std::uint8_t bound;
};

}  // namespace torchgbdt
