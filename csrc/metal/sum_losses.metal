// Metrics: the exact sum of losses, in fixed point. See core.metrics.
//
// Constants: none.
#include "metal/group_sums.h"
#include "metal/turns.h"
#include "shared/fixed_point.h"

using namespace torchgbdt;

// Of an integer >= 0 in float32, below 2^63. By its bits: not every device converts to 64 bits.
inline long long_of_float(float x) {
    const int exponent = static_cast<int>(float_bits(x) >> 23) - 127 - 23;  // of the last bit
    const long mantissa = static_cast<long>((float_bits(x) & 0x007fffffu) | 0x00800000u);
    return exponent < 0 ? mantissa >> min(-exponent, 24) : mantissa << exponent;
}

// Layout: losses (n_rows,).
// Grid:   whole groups of 256 threads, 1..256 groups; rows are shared out in turn.
// Writes: each group its sum of round_half_even(loss * 2^scale).
[[max_total_threads_per_threadgroup(256)]] kernel void sum_losses(
    device const float* losses [[buffer(0)]],  // IN  float32 (n_rows,), finite
    device long* partials [[buffer(1)]],       // OUT int64 (n_groups,)
    constant int& n_rows [[buffer(2)]],
    constant int& scale [[buffer(3)]],  // exponent of two, -126..120
    device atomic_uint* last_turn [[buffer(4)]], constant int& turn [[buffer(5)]],  // see turns.h
    uint position [[thread_position_in_grid]], uint n_threads [[threads_per_grid]],
    uint group [[threadgroup_position_in_grid]], uint index [[thread_index_in_threadgroup]]) {
    threadgroup long cells[group_size];
    take_turn(last_turn, turn, position);
    const float power = power_of_two(scale);
    long sum = 0;
    for (long row = position; row < n_rows; row += n_threads) {
        sum += long_of_float(round_half_even(losses[row] * power));
    }
    sum = sum_over_group(sum, cells, index);
    if (index == 0) {
        partials[group] = sum;
    }
}
