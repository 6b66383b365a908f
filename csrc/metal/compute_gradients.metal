// Gradients and Hessians of one output, and their extremes. The definition is core.objectives.
//
// Constants:
//   OBJECTIVE         ObjectiveKind: 0 squared error, 1 logistic, 2 softmax
//   HAS_WEIGHTS       0 or 1
//   HAS_MARGINS       0 or 1; 0 for squared error, whose labels have them
//   CONSTANT_HESSIAN  0 or 1: all Hessians are 1 and not stored
#include "metal/extremes.h"
#include "metal/raw_predictions.h"
#include "metal/turns.h"

using namespace torchgbdt;

// Before weights.
inline GradientAndHessian gradient_of_row(RawPredictions rows, device const float* labels,
                                          device const float* softmax_terms, long row, int output) {
    const float label = labels[row];
    if (OBJECTIVE == 0) {
        return {squared_error_residual(rows.sums[output * rows.n_rows + row], label), 1.0f};
    }
    const float x = read_raw(rows, row, output);
    if (OBJECTIVE == 1) {
        return logistic_gradient(x, label);
    }
    const float largest = softmax_terms[row], rest = softmax_terms[rows.n_rows + row];
    return softmax_gradient(x, largest, rest, label == static_cast<float>(output));
}

// Layout: all column-major.
// Grid:   whole groups of 256 threads, any number of them; rows are shared out in turn.
// Writes: each thread the gradients and Hessians of its rows; each simdgroup joins its extremes.
//
// extremes must be zeros before. Afterwards, as bits:
//   [0]  max |g|, [1] max |h|: floats; from 0x7f800000 on, something is not finite
//   [2]  of min h: see smallness_word
[[max_total_threads_per_threadgroup(256)]] kernel void compute_gradients(
    device const float* predictions [[buffer(0)]],    // IN  float32 (n_outputs, n_rows)
    device const float* labels [[buffer(1)]],         // IN  float32 (n_rows,)
    device const float* weights [[buffer(2)]],        // IN  float32 (n_rows,); else any tensor
    device const float* margins [[buffer(3)]],        // IN  as predictions; else any tensor
    device const float* baseline [[buffer(4)]],       // IN  float32 (n_outputs, 2): high, low part;
                                                      //     any tensor for squared error
    device const float* softmax_terms [[buffer(5)]],  // IN  float32 (2, n_rows); else any tensor
    device float* gradients [[buffer(6)]],            // OUT float32 (n_rows,)
    device float* hessians [[buffer(7)]],             // OUT float32 (n_rows,); any if constant
    device atomic_uint* extremes [[buffer(8)]],       // IN-OUT int32 (3,)
    constant int& n_rows [[buffer(9)]],
    constant int& output [[buffer(10)]],  // column of predictions
    device atomic_uint* last_turn [[buffer(11)]], constant int& turn [[buffer(12)]],  // see turns.h
    uint position [[thread_position_in_grid]], uint n_threads [[threads_per_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
    take_turn(last_turn, turn, position);
    const RawPredictions rows = {predictions, margins, baseline, n_rows};
    uint largest_gradient = 0, largest_hessian = 0, smallest_hessian = 0;
    for (long row = position; row < n_rows; row += n_threads) {
        GradientAndHessian both = gradient_of_row(rows, labels, softmax_terms, row, output);
        if (HAS_WEIGHTS) {
            both.gradient = weighted(both.gradient, weights[row]);
            both.hessian = weighted(both.hessian, weights[row]);
        }
        gradients[row] = both.gradient;
        if (!CONSTANT_HESSIAN) {
            hessians[row] = both.hessian;
        }
        largest_gradient = max(largest_gradient, magnitude_word(both.gradient));
        largest_hessian = max(largest_hessian, magnitude_word(both.hessian));
        smallest_hessian = max(smallest_hessian, smallness_word(both.hessian));
    }
    join_largest(extremes, largest_gradient, lane);
    join_largest(extremes + 1, largest_hessian, lane);
    join_largest(extremes + 2, smallest_hessian, lane);
}
