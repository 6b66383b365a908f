// Rows that objectives and metrics handle together: a few arrays of this length stay in L1, and
// loops over them vectorize whatever the layout of predictions is.
#pragma once

#include "cpu/kernels.h"

#include <array>
#include <cstdint>

namespace torchgbdt {

constexpr std::int64_t kBlockRows = 256;

using FloatBlock = std::array<float, kBlockRows>;

// Rows begin .. begin + count - 1; count <= kBlockRows.
struct RowBlock {
    const ObjectiveRows& rows;
    std::int64_t begin;
    std::int64_t count;
};

// Calls run(block) for the blocks of rows begin..end-1.
template <typename Run>
void for_each_block(const ObjectiveRows& rows, std::int64_t begin, std::int64_t end,
                    const Run& run) {
    for (; begin < end; begin += kBlockRows) {
        run(RowBlock{rows, begin, end - begin < kBlockRows ? end - begin : kBlockRows});
    }
}

// What the objective sees of one column: raw predictions, or sums where labels are centred.
inline void read_predictions(const RowBlock& block, std::int64_t column, FloatBlock& predictions) {
    const ObjectiveRows& rows = block.rows;
    const std::int64_t stride = rows.n_columns;
    const std::int64_t first = block.begin * stride + column;
    const float* sums = rows.predictions + first;
    if (rows.baseline == nullptr) {
        for (std::int64_t i = 0; i < block.count; ++i) {
            predictions[i] = sums[i * stride];
        }
        return;
    }
    const float high = rows.baseline[2 * column], low = rows.baseline[2 * column + 1];
    if (rows.margins == nullptr) {
        for (std::int64_t i = 0; i < block.count; ++i) {
            predictions[i] = raw_prediction(sums[i * stride], 0.0f, high, low);
        }
        return;
    }
    const float* margins = rows.margins + first;
    for (std::int64_t i = 0; i < block.count; ++i) {
        predictions[i] = raw_prediction(sums[i * stride], margins[i * stride], high, low);
    }
}

// Multiplies what was computed for the block's rows by their weights, if there are any.
inline void multiply_by_weights(const RowBlock& block, float* values) {
    if (block.rows.weights != nullptr) {
        const float* weights = block.rows.weights + block.begin;
        for (std::int64_t i = 0; i < block.count; ++i) {
            values[i] = weighted(values[i], weights[i]);
        }
    }
}

// Of each row: the largest raw prediction, the first column that has it, and the sum of the other
// columns' softmax terms in ascending order.
struct SoftmaxBlock {
    FloatBlock largest;
    std::array<std::int32_t, kBlockRows> column;
    FloatBlock rest;
};

void find_largest(const RowBlock& block, SoftmaxBlock& terms);  // all but rest
void read_softmax_terms(const RowBlock& block, SoftmaxBlock& terms);

}  // namespace torchgbdt
