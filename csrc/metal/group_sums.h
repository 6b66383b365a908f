// Exact sums over a threadgroup; simd functions take no 64-bit numbers.
#pragma once

namespace torchgbdt {

constant uint group_size = 256;

// The sum of all threads' values, for thread 0. cells: group_size of them, not in use. All threads
// of the group must come; afterwards cells may be used again.
inline long sum_over_group(long value, threadgroup long* cells, uint index) {
    cells[index] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint half_size = group_size / 2; half_size > 0; half_size /= 2) {
        if (index < half_size) {
            cells[index] += cells[index + half_size];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    const long sum = cells[0];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return sum;
}

}  // namespace torchgbdt
