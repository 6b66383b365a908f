// Adding leaf values to prediction sums: the one place where a sum grows.
#pragma once

#include "cpu/views.h"
#include "shared/fixed_point.h"

#include <cstdint>

namespace torchgbdt {

// sums: (n_rows, n_columns), flushed after each addition. A tree with one value per leaf adds to
// `column`, another to all columns.
inline void add_leaf_values(const TreeView& tree, const std::int32_t* leaves, std::int64_t n_rows,
                            std::int64_t column, std::int64_t n_columns, float* sums) {
    if (tree.n_outputs == 1) {
        for (std::int64_t i = 0; i < n_rows; ++i) {
            float& sum = sums[i * n_columns + column];
            sum = flush_subnormals(sum + tree.value[leaves[i]]);
        }
        return;
    }
    for (std::int64_t i = 0; i < n_rows; ++i) {
        const float* values = tree.value + leaves[i] * tree.n_outputs;
        for (std::int64_t output = 0; output < tree.n_outputs; ++output) {
            float& sum = sums[i * n_columns + output];
            sum = flush_subnormals(sum + values[output]);
        }
    }
}

}  // namespace torchgbdt
