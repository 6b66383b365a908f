// What objectives and metrics of classes see of a row: raw predictions, and softmax terms.
//
// Constant: HAS_MARGINS  0 or 1
#pragma once

#include "shared/objective_math.h"

namespace torchgbdt {

struct RawPredictions {
    device const float* sums;      // (n_outputs, n_rows): predictions
    device const float* margins;   // (n_outputs, n_rows), read where HAS_MARGINS
    device const float* baseline;  // (n_outputs, 2): high and low part
    long n_rows;
};

inline float read_raw(RawPredictions rows, long row, int column) {
    const long place = column * rows.n_rows + row;
    const float margin = HAS_MARGINS ? rows.margins[place] : 0.0f;
    const float high = rows.baseline[2 * column], low = rows.baseline[2 * column + 1];
    return raw_prediction(rows.sums[place], margin, high, low);
}

inline LargestPrediction find_largest(RawPredictions rows, long row, int n_outputs) {
    LargestPrediction largest = {read_raw(rows, row, 0), 0};
    for (int column = 1; column < n_outputs; ++column) {
        largest = larger_prediction(largest, read_raw(rows, row, column), column);
    }
    return largest;
}

// The other columns' softmax terms, added in ascending order.
inline float sum_other_terms(RawPredictions rows, long row, int n_outputs,
                             LargestPrediction largest) {
    float rest = 0.0f;
    for (int column = 0; column < n_outputs; ++column) {
        rest = add_softmax_term(rest, read_raw(rows, row, column), column, largest);
    }
    return rest;
}

}  // namespace torchgbdt
