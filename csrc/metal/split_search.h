// What scan_splits and select_candidates share: the words that the host passes and those that they
// hand on. torchgbdt/backends/split_candidates.py writes and reads the same words.
#pragma once

#include "metal/split_bound.h"

namespace torchgbdt {

// The list `search`.
#define SEARCH_N_NODES 0
#define SEARCH_N_FEATURES 1
#define SEARCH_TOTAL_BINS 2
#define SEARCH_HESSIAN_UNIT 3      // of a row; where Hessians are constant
#define SEARCH_MIN_SAMPLES_LEAF 4  // two words, as the next
#define SEARCH_MIN_HESSIAN 6       // at least 1
#define SEARCH_NONCE 8             // tells the results of this search from older ones

// Words of a node in the lists about nodes; 64-bit numbers as two words, float32 as their bits.
//     nodes        slot, count (2), 0
//     node_sums    gradient (2), Hessian (2)
//     node_ratios  mean gradient, reg_lambda: float32, high and low part each
//     node_limits  tolerance, smallest rank: float32; exponents of gradients and Hessians
#define LIST_WORDS 4

#define MAX_CANDIDATES 8  // per node and feature, and per node

// Between the kernels, per node and feature: the largest lower rank and the largest upper rank
// (float32, >= 0), the number of candidates or one of the marks below, the nonce.
#define SUMMARY_WORDS 4
#define MARK_OVERFLOW -1  // more candidates than fit
#define MARK_FAULT -2     // the histogram contradicts the node

// A candidate. Between the kernels the first word is its upper rank; in results, its feature.
#define CANDIDATE_WORDS 8
#define CANDIDATE_CODE 1   // bin | missing rows go left << 8 | there are missing rows << 9
#define CANDIDATE_COUNT 2  // of the left side; two words, as the next
#define CANDIDATE_GRADIENT 4
#define CANDIDATE_HESSIAN 6

// A result: the number of candidates or MARK_OVERFLOW, 1 for a fault else 0, the nonce, 0; then
// the candidates, in the order in which ties are broken.
#define RESULT_HEADER 4
#define RESULT_WORDS (RESULT_HEADER + MAX_CANDIDATES * CANDIDATE_WORDS)

// Sums of a faulty histogram may wrap: unsigned.
inline NodeSums add(NodeSums a, NodeSums b) {
    a.count = long(ulong(a.count) + ulong(b.count));
    a.gradient = long(ulong(a.gradient) + ulong(b.gradient));
    a.hessian = long(ulong(a.hessian) + ulong(b.hessian));
    return a;
}

inline NodeSums subtract(NodeSums a, NodeSums b) {
    a.count = long(ulong(a.count) - ulong(b.count));
    a.gradient = long(ulong(a.gradient) - ulong(b.gradient));
    a.hessian = long(ulong(a.hessian) - ulong(b.hessian));
    return a;
}

inline bool are_equal(NodeSums a, NodeSums b) {
    return a.count == b.count && a.gradient == b.gradient && a.hessian == b.hessian;
}

}  // namespace torchgbdt
