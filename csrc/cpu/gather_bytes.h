// Rows of a stretch of row order: whether they lie side by side, and copying where they do not.
#pragma once

#include "cpu/views.h"

#include <cstdint>
#include <cstring>

namespace torchgbdt {

// Whether rows[i] = rows[0] + i.
inline bool are_side_by_side(const RowId* rows, std::int64_t n_rows) {
    RowId differences = 0;
    for (std::int64_t i = 0; i < n_rows; ++i) {
        differences |= (rows[i] - rows[0]) ^ static_cast<RowId>(i);
    }
    return differences == 0;
}

// Copies `width` bytes of each row side by side; row r lies at bytes + r * row_stride.
inline void gather_bytes(const std::uint8_t* bytes, std::int64_t row_stride, std::int64_t width,
                         const RowId* rows, std::int64_t n_rows, std::uint8_t* out) {
    constexpr std::int64_t kPiece = 16;
    for (std::int64_t i = 0; i < n_rows; ++i, out += width) {
        const std::uint8_t* row = bytes + rows[i] * row_stride;
        if (width < kPiece) {
            std::memcpy(out, row, static_cast<std::size_t>(width));
            continue;
        }
        for (std::int64_t place = 0; place < width - kPiece; place += kPiece) {
            std::memcpy(out + place, row + place, kPiece);
        }
        std::memcpy(out + width - kPiece, row + width - kPiece, kPiece);  // may overlap the last
    }
}

}  // namespace torchgbdt
