// Adding the values of leaves that rows have reached to their prediction sums.
#pragma once

#include "cpu/views.h"
#include "shared/leaf_values.h"

#include <cstdint>

namespace torchgbdt {

// Adds values[leaves[i]], one value per leaf, to sums that lie so far apart.
template <typename Leaf>
inline void add_to_strided(const float* values, const Leaf* leaves, std::int64_t n_rows,
                           std::int64_t stride, float* sums) {
    for (std::int64_t i = 0; i < n_rows; ++i) {
        sums[i * stride] = add_leaf_value(sums[i * stride], values[leaves[i]]);
    }
}

// sums: (n_rows, n_columns); leaves are node ids. A tree with one value per leaf adds to `column`,
// another to all columns.
inline void add_leaf_values(const TreeView& tree, const std::int32_t* leaves, std::int64_t n_rows,
                            std::int64_t column, std::int64_t n_columns, float* sums) {
    if (tree.n_outputs == 1) {
        add_to_strided(tree.value, leaves, n_rows, n_columns, sums + column);
        return;
    }
    for (std::int64_t i = 0; i < n_rows; ++i) {
        const float* values = tree.value + leaves[i] * tree.n_outputs;
        for (std::int64_t output = 0; output < tree.n_outputs; ++output) {
            float& sum = sums[i * n_columns + output];
            sum = add_leaf_value(sum, values[output]);
        }
    }
}

// The same for a contiguous column of sums and a table of one value per leaf; n_rows <= kRows.
// Values are looked up before they are added, so that the additions vectorize.
template <std::int64_t kRows, typename Leaf>
inline void add_to_column(const float* values, const Leaf* leaves, std::int64_t n_rows,
                          float* sums) {
    float found[kRows];
    for (std::int64_t i = 0; i < n_rows; ++i) {
        found[i] = values[leaves[i]];
    }
    for (std::int64_t i = 0; i < n_rows; ++i) {
        sums[i] = add_leaf_value(sums[i], found[i]);
    }
}

}  // namespace torchgbdt
