// What the softmax gradients of all classes share. The definition is core.probabilities.
//
// Constants:
//   HAS_MARGINS  0 or 1
#include "metal/raw_predictions.h"
#include "metal/turns.h"

using namespace torchgbdt;

// Layout: all column-major.
// Grid:   n_rows threads, one per row; no barriers.
// Writes: each thread the terms of its row.
kernel void compute_softmax_terms(
    device const float* predictions [[buffer(0)]],  // IN  float32 (n_outputs, n_rows)
    device const float* margins [[buffer(1)]],      // IN  the same; any tensor without margins
    device const float* baseline [[buffer(2)]],     // IN  float32 (n_outputs, 2): high, low part
    device float* softmax_terms [[buffer(3)]],      // OUT float32 (2, n_rows): largest, rest
    constant int& n_rows [[buffer(4)]], constant int& n_outputs [[buffer(5)]],
    device atomic_uint* last_turn [[buffer(6)]], constant int& turn [[buffer(7)]],  // see turns.h
    uint position [[thread_position_in_grid]]) {
    take_turn(last_turn, turn, position);
    const long row = static_cast<long>(position);
    const RawPredictions rows = {predictions, margins, baseline, n_rows};
    const LargestPrediction largest = find_largest(rows, row, n_outputs);
    softmax_terms[row] = largest.value;
    softmax_terms[n_rows + row] = sum_other_terms(rows, row, n_outputs, largest);
}
