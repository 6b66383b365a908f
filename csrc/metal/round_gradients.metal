// Rounds gradients to fixed point, once per tree. The definition is core.fixed_point.
//
// Constants:
//   CONSTANT_HESSIAN  0 or 1: all Hessians are 1 and have no words
#include "metal/group_sums.h"
#include "metal/turns.h"
#include "shared/fixed_point.h"

using namespace torchgbdt;

// Layout: all column-major; words g0 h0 g1 h1 .., or g0 g1 .. where the Hessian is constant.
// Grid:   whole groups of 256 threads, 1..256 groups; rows are shared out in turn.
// Writes: each thread the words of its rows; each group its partials.
//
// Of each group, partials hold: for each output the sum of gradients and the sum of Hessians (also
// where these are constant), then the number of Hessians that were raised to 1.
[[max_total_threads_per_threadgroup(256)]] kernel void round_gradients(
    device const float* gradients [[buffer(0)]],  // IN  float32 (tree_outputs, n_rows)
    device const float* hessians [[buffer(1)]],   // IN  the same; any tensor if constant
    device uint* row_order [[buffer(2)]],         // OUT int32 (n_rows,): 0, 1, ..
    device int* fixed_point [[buffer(3)]],        // OUT int32 (n_words, n_rows)
    device long* partials [[buffer(4)]],          // OUT int64 (n_groups, 2 * tree_outputs + 1)
    constant int& n_rows [[buffer(5)]], constant int& tree_outputs [[buffer(6)]],
    constant int* scales [[buffer(7)]],  // per output: of gradients, of Hessians; exponents of two
    device atomic_uint* last_turn [[buffer(8)]], constant int& turn [[buffer(9)]],  // see turns.h
    uint position [[thread_position_in_grid]], uint n_threads [[threads_per_grid]],
    uint group [[threadgroup_position_in_grid]], uint index [[thread_index_in_threadgroup]]) {
    threadgroup long cells[group_size];
    take_turn(last_turn, turn, position);
    const int n_sums = 2 * tree_outputs + 1;
    device long* of_group = partials + static_cast<long>(group) * n_sums;
    for (long row = position; row < n_rows; row += n_threads) {
        row_order[row] = static_cast<uint>(row);
    }
    long n_raised = 0;
    for (int output = 0; output < tree_outputs; ++output) {
        const float of_gradient = power_of_two(scales[2 * output]);
        const float of_hessian = power_of_two(scales[2 * output + 1]);
        const int word = CONSTANT_HESSIAN ? output : 2 * output;
        device int* gradient_words = fixed_point + static_cast<long>(word) * n_rows;
        const long first = static_cast<long>(output) * n_rows;
        long gradient_sum = 0, hessian_sum = 0;
        for (long row = position; row < n_rows; row += n_threads) {
            const float hessian = CONSTANT_HESSIAN ? 1.0f : hessians[first + row];
            const int fixed_gradient = round_gradient(gradients[first + row], of_gradient);
            const int fixed_hessian = round_hessian(hessian, of_hessian);
            gradient_words[row] = fixed_gradient;
            if (!CONSTANT_HESSIAN) {
                gradient_words[n_rows + row] = fixed_hessian;
            }
            gradient_sum += fixed_gradient;
            hessian_sum += fixed_hessian;
            n_raised += fixed_hessian - round_gradient(hessian, of_hessian);
        }
        gradient_sum = sum_over_group(gradient_sum, cells, index);
        hessian_sum = sum_over_group(hessian_sum, cells, index);
        if (index == 0) {
            of_group[2 * output] = gradient_sum;
            of_group[2 * output + 1] = hessian_sum;
        }
    }
    n_raised = sum_over_group(n_raised, cells, index);
    if (index == 0) {
        of_group[n_sums - 1] = n_raised;
    }
}
