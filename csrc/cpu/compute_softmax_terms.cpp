// What the softmax gradients of all classes share, so that K trees take 2 K exponentials per row,
// not K^2. The definition is core.probabilities.
#include "cpu/kernels.h"
#include "cpu/own_stretches.h"
#include "cpu/row_blocks.h"

#include <algorithm>

namespace torchgbdt {

void find_largest(const RowBlock& block, SoftmaxBlock& terms) {
    FloatBlock x;
    read_predictions(block, 0, terms.largest);
    terms.column.fill(0);
    for (std::int64_t column = 1; column < block.rows.n_columns; ++column) {
        read_predictions(block, column, x);
        for (std::int64_t i = 0; i < block.count; ++i) {
            const LargestPrediction largest = larger_prediction(
                {terms.largest[i], terms.column[i]}, x[i], static_cast<std::int32_t>(column));
            terms.largest[i] = largest.value;
            terms.column[i] = largest.column;
        }
    }
}

void read_softmax_terms(const RowBlock& block, SoftmaxBlock& terms) {
    FloatBlock x;
    find_largest(block, terms);
    terms.rest.fill(0.0f);
    for (std::int64_t column = 0; column < block.rows.n_columns; ++column) {
        read_predictions(block, column, x);
        for (std::int64_t i = 0; i < block.count; ++i) {
            terms.rest[i] = add_softmax_term(terms.rest[i], x[i], static_cast<std::int32_t>(column),
                                             {terms.largest[i], terms.column[i]});
        }
    }
}

// Layout: predictions (n_rows, n_columns); terms (2, n_rows).
// Grid:   one task per kTaskRows rows.
// Writes: each task the terms of its rows.
void compute_softmax_terms(const ObjectiveRows& rows, float* terms, int n_threads) {
    const Blocks tasks = row_tasks(rows.n_rows);
    parallel_for_stretches(tasks.count(), n_threads, [&](std::int64_t task, int) {
        SoftmaxBlock found;
        for_each_block(rows, tasks.begin(task), tasks.end(task), [&](const RowBlock& block) {
            read_softmax_terms(block, found);
            std::copy_n(found.largest.data(), block.count, terms + block.begin);
            std::copy_n(found.rest.data(), block.count, terms + rows.n_rows + block.begin);
        });
    });
}

}  // namespace torchgbdt
