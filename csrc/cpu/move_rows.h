// Moving the rows of a block to their sides: a good part of what routing takes.
#pragma once

#include "cpu/views.h"

#include <cstdint>

namespace torchgbdt {

// Moves each row to the next place of its side, 0 left or 1 right. Nothing is written beyond these
// places, which other blocks' places follow.
//
//     rows  5 2 8 1 9      left  5 8 9      right  2 1
//     sides 0 1 0 1 0
void move_rows(const RowId* rows, const std::uint8_t* sides, std::int64_t n_rows, RowId* left,
               RowId* right);

}  // namespace torchgbdt
