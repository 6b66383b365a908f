// Which side of a split a code goes to, in one addition and one comparison of bytes: what trees
// over columns of codes ask, be they bins or codes of a forest's own cuts (cpu/forest_cuts.h).
#pragma once

#include <algorithm>
#include <cstdint>

namespace torchgbdt {

constexpr std::uint8_t kMissingCode = 255;  // of every column of a forest's own cuts

// Whether a code is beyond a bound, after all codes were turned around the circle of bytes so far
// that the missing code lies at the end where the split sends it:
//
//     missing right, rank 2:      0 1 2 | 3 4 ... 254 255
//     missing left,  rank 2:  255 0 1 2 | 3 4 ... 254
struct CodeTest {
    // Codes 0..rank go left, and the missing code, larger than all others, where it is sent; it
    // does not go left by its size, whatever the rank; rank >= 0, missing_code 0..255.
    CodeTest(std::int32_t column, std::int32_t rank, std::int32_t missing_code, bool missing_left)
        : column(column) {
        const std::int32_t last_left = std::min(rank, missing_code - 1);
        if (missing_left) {
            shift = static_cast<std::uint8_t>(256 - missing_code);  // the missing code becomes 0
            bound = static_cast<std::uint8_t>(last_left + 256 - missing_code);
        } else if (last_left >= 0) {
            bound = static_cast<std::uint8_t>(last_left);
        } else {  // there is the missing code alone, which is 0, goes right, and becomes 255
            shift = 255;
            bound = 254;
        }
    }

    // The test of a leaf.
    static CodeTest always_left() { return {0, 254, kMissingCode, true}; }

    bool goes_right(std::uint8_t code) const {
        return static_cast<std::uint8_t>(code + shift) > bound;
    }

    std::int32_t column;
    std::uint8_t shift = 0;
    std::uint8_t bound = 0;
};

}  // namespace torchgbdt
