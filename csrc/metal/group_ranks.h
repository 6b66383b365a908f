// Sums over the 256 threads of a group, 8 simdgroups of 32.
#pragma once

namespace torchgbdt {

constant uint n_simdgroups = 8;

// The sum of value over all threads, on every thread. Nobody may write totals[0..n_simdgroups)
// until all threads have passed another barrier.
inline uint group_sum(uint value, uint lane, uint simdgroup, threadgroup uint* totals) {
    const uint total = simd_sum(value);
    if (lane == 0) {
        totals[simdgroup] = total;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint sum = 0;
    for (uint i = 0; i < n_simdgroups; ++i) {
        sum += totals[i];
    }
    return sum;
}

// The sum of value over the threads before this one; sum: over all of them. totals as above.
inline uint group_prefix(uint value, uint lane, uint simdgroup, threadgroup uint* totals,
                         thread uint& sum) {
    const uint before = simd_prefix_exclusive_sum(value);
    sum = group_sum(value, lane, simdgroup, totals);
    uint earlier = 0;
    for (uint i = 0; i < simdgroup; ++i) {
        earlier += totals[i];
    }
    return earlier + before;
}

}  // namespace torchgbdt
