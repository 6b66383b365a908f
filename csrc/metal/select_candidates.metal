// Joins the candidates of a node's features: those that reach the largest lower bound of all, at
// most 8; of candidates that gain the same bit for bit only the first.
//
// Constants: none.
#include "metal/split_search.h"

using namespace torchgbdt;

// Layout: metal/split_search.h has the words of the lists, summaries, candidates and results.
// Grid:   one group of 256 threads per node.
// Writes: each group the result of its node.
kernel void select_candidates(
    device const int* summaries [[buffer(0)]],   // IN int32 (n_nodes, n_features, 4)
    device const int* candidates [[buffer(1)]],  // IN int32 (n_nodes, n_features, 8, 8)
    device int* results [[buffer(2)]],           // OUT int32 (n_nodes, 68)
    constant int* search [[buffer(3)]],          // IN (10,): sizes, rules, nonce
    constant int* node_sums [[buffer(4)]],       // IN (n_nodes, 4): gradient, Hessian
    uint node [[threadgroup_position_in_grid]], uint thread [[thread_index_in_threadgroup]]) {
}
