// For each feature and node, the candidates that may be the split that gains most: usually one.
// It compares float32 ranks whose error is bounded; the host computes the gains of those that are
// left in float64 (torchgbdt/backends/split_candidates.py), and they decide. metal/split_bound.h
// has the proof. One output per tree.
//
// Constants: CONSTANT_HESSIAN 0 or 1: histograms have no Hessians, that of a cell is count * unit.
#include "metal/split_search.h"

using namespace torchgbdt;

// Layout: metal/split_search.h has the words of the lists, summaries and candidates.
// Grid:   one simdgroup of 32 lanes per (node, feature), feature fastest; groups of 256 threads,
//         surplus simdgroups leave.
// Writes: each simdgroup the summary and the candidates of its node and feature.
kernel void scan_splits(
    device const long* histograms [[buffer(0)]],  // IN int64 (n_slots, 1 + n_words, total_bins)
    device const int* features [[buffer(1)]],     // IN int32 (n_features, 2)
    device int* summaries [[buffer(2)]],          // OUT int32 (n_nodes, n_features, 4)
    device int* candidates [[buffer(3)]],         // OUT int32 (n_nodes, n_features, 8, 8)
    constant int* search [[buffer(4)]],           // IN (10,): sizes, rules, nonce
    constant int* nodes [[buffer(5)]],            // IN (n_nodes, 4): slot, count, exponents
    constant int* node_sums [[buffer(6)]],        // IN (n_nodes, 4): gradient, Hessian
    constant int* node_ratios [[buffer(7)]],      // IN (n_nodes, 4): mean gradient, lambda
    constant int* node_limits [[buffer(8)]],      // IN (n_nodes, 2): tolerance, smallest rank
    uint group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
}
