// Metrics: losses of rows in float32. The definition is core.metrics.
//
// Constants:
//   METRIC       MetricKind: 0 squared error, 1 absolute error, 2 logistic loss, 3 logistic error,
//                4 softmax loss, 5 softmax error
//   HAS_WEIGHTS  0 or 1
//   HAS_MARGINS  0 or 1; 0 for metrics 0 and 1, whose labels have them
#include "metal/extremes.h"
#include "metal/raw_predictions.h"
#include "metal/turns.h"
#include "shared/metric_math.h"

using namespace torchgbdt;

// A label that is no class gives NaN, as does a prediction that is NaN.
inline float softmax_loss_of_row(RawPredictions rows, long row, int n_outputs, float label) {
    const LargestPrediction largest = find_largest(rows, row, n_outputs);
    const float rest = sum_other_terms(rows, row, n_outputs, largest);
    float own = not_a_number();
    for (int column = 0; column < n_outputs; ++column) {
        own = label == static_cast<float>(column) ? read_raw(rows, row, column) : own;
    }
    return softmax_loss(largest.value, rest, own);
}

// The predicted class is the first that has the largest prediction.
inline float softmax_error_of_row(RawPredictions rows, long row, int n_outputs, float label) {
    const LargestPrediction largest = find_largest(rows, row, n_outputs);
    float nan = 0.0f;
    for (int column = 0; column < n_outputs; ++column) {
        const float x = read_raw(rows, row, column);
        nan = x == x ? nan : x;
    }
    return softmax_error(largest.column, label, nan);
}

// Before weights.
inline float loss_of_row(RawPredictions rows, long row, int n_outputs, float label) {
    switch (static_cast<MetricKind>(METRIC)) {
        case MetricKind::squared_error:
            return squared_error_loss(rows.sums[row], label);
        case MetricKind::absolute_error:
            return absolute_error_loss(rows.sums[row], label);
        case MetricKind::logistic_loss:
            return logistic_loss(read_raw(rows, row, 0), label);
        case MetricKind::logistic_error:
            return logistic_error(read_raw(rows, row, 0), label);
        case MetricKind::softmax_loss:
            return softmax_loss_of_row(rows, row, n_outputs, label);
        case MetricKind::softmax_error:
            break;
    }
    return softmax_error_of_row(rows, row, n_outputs, label);
}

// Layout: all column-major.
// Grid:   whole groups of 256 threads, any number of them; rows are shared out in turn.
// Writes: each thread the losses of its rows; each simdgroup joins the largest.
//
// largest_loss must be zero before. Afterwards it has the bits of the largest loss, a float; from
// 0x7f800000 on, a loss is not finite.
[[max_total_threads_per_threadgroup(256)]] kernel void compute_losses(
    device const float* predictions [[buffer(0)]],   // IN  float32 (n_outputs, n_rows)
    device const float* labels [[buffer(1)]],        // IN  float32 (n_rows,)
    device const float* weights [[buffer(2)]],       // IN  float32 (n_rows,); else any tensor
    device const float* margins [[buffer(3)]],       // IN  as predictions; else any tensor
    device const float* baseline [[buffer(4)]],      // IN  float32 (n_outputs, 2): high, low part;
                                                     //     any tensor for metrics 0 and 1
    device float* losses [[buffer(5)]],              // OUT float32 (n_rows,): times weight
    device atomic_uint* largest_loss [[buffer(6)]],  // IN-OUT int32 (1,)
    constant int& n_rows [[buffer(7)]], constant int& n_outputs [[buffer(8)]],
    device atomic_uint* last_turn [[buffer(9)]], constant int& turn [[buffer(10)]],  // see turns.h
    uint position [[thread_position_in_grid]], uint n_threads [[threads_per_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
    take_turn(last_turn, turn, position);
    const RawPredictions rows = {predictions, margins, baseline, n_rows};
    uint largest = 0;
    for (long row = position; row < n_rows; row += n_threads) {
        float loss = loss_of_row(rows, row, n_outputs, labels[row]);
        loss = HAS_WEIGHTS ? weighted(loss, weights[row]) : loss;
        losses[row] = loss;
        largest = max(largest, magnitude_word(loss));
    }
    join_largest(largest_loss, largest, lane);
}
