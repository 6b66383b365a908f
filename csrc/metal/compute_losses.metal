// Metrics: losses of rows in float32, and their exact sum in fixed point. See core.metrics.
//
// Constants:
//   METRIC       MetricKind: 0 squared error, 1 absolute error, 2 logistic loss, 3 logistic error,
//                4 softmax loss, 5 softmax error
//   HAS_WEIGHTS  0 or 1
//   HAS_MARGINS  0 or 1; 0 for metrics 0 and 1, whose labels have them
#include "metal/extremes.h"
#include "metal/group_sums.h"
#include "metal/raw_predictions.h"
#include "shared/metric_math.h"

using namespace torchgbdt;

// Layout: all column-major.
// Grid:   whole groups of 256 threads, any number of them; rows are shared out in turn.
// Writes: each thread the losses of its rows; each simdgroup joins the largest.
//
// extremes must be zeros (tensor.zero_()) before. Afterwards, as bits:
//   [0]  the largest loss, a float; from 0x7f800000 on, a loss is not finite
//   [1]  the nonce
[[max_total_threads_per_threadgroup(256)]] kernel void compute_losses(
    device const float* predictions [[buffer(0)]],  // IN  float32 (n_outputs, n_rows)
    device const float* labels [[buffer(1)]],       // IN  float32 (n_rows,)
    device const float* weights [[buffer(2)]],      // IN  float32 (n_rows,); else any tensor
    device const float* margins [[buffer(3)]],      // IN  as predictions; else any tensor
    device const float* baseline [[buffer(4)]],     // IN  float32 (n_outputs, 2): high, low part;
                                                    //     any tensor for metrics 0 and 1
    device float* losses [[buffer(5)]],             // OUT float32 (n_rows,): times weight
    device atomic_uint* extremes [[buffer(6)]],     // IN-OUT int32 (2,)
    constant int& n_rows [[buffer(7)]], constant int& n_outputs [[buffer(8)]],
    constant int& nonce [[buffer(9)]], uint position [[thread_position_in_grid]],
    uint n_threads [[threads_per_grid]], uint lane [[thread_index_in_simdgroup]]) {}

// Layout: losses (n_rows,).
// Grid:   whole groups of 256 threads, 1..256 groups; rows are shared out in turn.
// Writes: each group its sum of round_half_even(loss * 2^scale).
[[max_total_threads_per_threadgroup(256)]] kernel void sum_losses(
    device const float* losses [[buffer(0)]],  // IN  float32 (n_rows,), finite
    device long* partials [[buffer(1)]],       // OUT int64 (n_groups + 1,): sums; last, the nonce
    constant int& n_rows [[buffer(2)]],
    constant int& scale [[buffer(3)]],  // exponent of two, -126..120
    constant int& nonce [[buffer(4)]], uint position [[thread_position_in_grid]],
    uint n_threads [[threads_per_grid]], uint group [[threadgroup_position_in_grid]],
    uint n_groups [[threadgroups_per_grid]], uint thread [[thread_index_in_threadgroup]]) {}
