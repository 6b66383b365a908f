// The steps of scan_splits: cells of a feature, prefix sums over a simdgroup, what makes a split
// allowed (core/splits.py has the definition; integers only), and writing a candidate.
#pragma once

#include "metal/split_search.h"

namespace torchgbdt {

struct SplitRules {
    long min_samples_leaf;
    long min_hessian;
};

inline SplitRules split_rules_of(constant int* search) {
    SplitRules rules;
    rules.min_samples_leaf = long_of_words(search[SEARCH_MIN_SAMPLES_LEAF],  //
                                           search[SEARCH_MIN_SAMPLES_LEAF + 1]);
    rules.min_hessian = long_of_words(search[SEARCH_MIN_HESSIAN],  //
                                      search[SEARCH_MIN_HESSIAN + 1]);
    return rules;
}

inline NodeSums node_sums_of(constant int* nodes, constant int* node_sums, uint node) {
    constant int* counts = nodes + LIST_WORDS * node + 1;
    constant int* sums = node_sums + LIST_WORDS * node;
    NodeSums totals;
    totals.count = long_of_words(counts[0], counts[1]);
    totals.gradient = long_of_words(sums[0], sums[1]);
    totals.hessian = long_of_words(sums[2], sums[3]);
    return totals;
}

inline RankTerms rank_terms_of(constant int* node_ratios, constant int* node_limits, uint node) {
    constant int* ratios = node_ratios + LIST_WORDS * node;
    RankTerms terms;
    terms.mean.high = as_type<float>(ratios[0]);
    terms.mean.low = as_type<float>(ratios[1]);
    terms.reg_lambda.high = as_type<float>(ratios[2]);
    terms.reg_lambda.low = as_type<float>(ratios[3]);
    terms.gradient_exponent = node_limits[LIST_WORDS * node + 2];
    terms.hessian_exponent = node_limits[LIST_WORDS * node + 3];
    return terms;
}

// --- cells ---------------------------------------------------------------------------------------

// The cells of one feature of one node, planes of counts, gradients and Hessians.
struct FeatureCells {
    device const long* counts;
    ulong plane;         // cells of a plane
    ulong hessian_unit;  // of a row; where Hessians are constant
};

inline FeatureCells feature_cells(device const long* histograms, constant int* search, int slot,
                                  int first_cell) {
#if CONSTANT_HESSIAN
    const ulong n_planes = 2;
#else
    const ulong n_planes = 3;
#endif
    FeatureCells cells;
    cells.plane = search[SEARCH_TOTAL_BINS];
    cells.counts = histograms + ulong(slot) * n_planes * cells.plane + ulong(first_cell);
    cells.hessian_unit = search[SEARCH_HESSIAN_UNIT];
    return cells;
}

inline NodeSums cell_sums(FeatureCells cells, int bin) {
    NodeSums sums;
    sums.count = cells.counts[bin];
    sums.gradient = cells.counts[cells.plane + bin];
#if CONSTANT_HESSIAN
    sums.hessian = long(ulong(sums.count) * cells.hessian_unit);
#else
    sums.hessian = cells.counts[2 * cells.plane + bin];
#endif
    return sums;
}

// Whether no rows of the node can have these sums: |gradient| <= 2^30 and Hessian <= 2^29 each.
inline bool is_impossible(NodeSums cell, NodeSums totals) {
    const ulong count = cell.count;
    return count > ulong(totals.count) || magnitude(cell.gradient) > count << 30 ||
           ulong(cell.hessian) > count << 29;
}

inline NodeSums no_sums() {
    NodeSums sums;
    sums.count = 0;
    sums.gradient = 0;
    sums.hessian = 0;
    return sums;
}

// --- sums over a simdgroup, whose functions take no 64-bit numbers -------------------------------

inline long from_lane_before(long value, ushort distance) {
    const uint low = simd_shuffle_up(uint(ulong(value)), distance);
    const uint high = simd_shuffle_up(uint(ulong(value) >> 32), distance);
    return long_of_words(low, high);
}

inline long from_lane(long value, ushort lane) {
    const uint low = simd_shuffle(uint(ulong(value)), lane);
    const uint high = simd_shuffle(uint(ulong(value) >> 32), lane);
    return long_of_words(low, high);
}

inline NodeSums sums_of_lane(NodeSums sums, ushort lane) {
    sums.count = from_lane(sums.count, lane);
    sums.gradient = from_lane(sums.gradient, lane);
    sums.hessian = from_lane(sums.hessian, lane);
    return sums;
}

// Sums of the lanes 0..lane.
inline NodeSums sums_through_lane(NodeSums sums, uint lane) {
    for (ushort distance = 1; distance < 32; distance *= 2) {
        NodeSums before;
        before.count = from_lane_before(sums.count, distance);
        before.gradient = from_lane_before(sums.gradient, distance);
        before.hessian = from_lane_before(sums.hessian, distance);
        if (lane >= distance) {
            sums = add(sums, before);
        }
    }
    return sums;
}

// The largest of numbers >= 0, whose bits are in the same order.
inline float simd_max_rank(float rank) {
    return float_from_bits(simd_max(float_bits(rank)));
}

// --- candidates ----------------------------------------------------------------------------------

inline bool is_allowed(NodeSums left, NodeSums totals, SplitRules rules) {
    const NodeSums right = subtract(totals, left);
    return min(left.count, right.count) >= rules.min_samples_leaf &&
           min(left.hessian, right.hessian) >= rules.min_hessian &&
           !equal_products(left.gradient, totals.hessian, totals.gradient, left.hessian);
}

// Whether a candidate of this rank (-1: there is none) reaches the largest lower bound.
inline bool may_win(float rank, float lower, float tolerance) {
    return rank >= 0.0f && upper_rank(rank, tolerance) >= lower;
}

inline void write_candidate(device int* words, float upper, int code, NodeSums left) {
    words[0] = as_type<int>(upper);
    words[CANDIDATE_CODE] = code;
    words[CANDIDATE_COUNT] = int(uint(ulong(left.count)));
    words[CANDIDATE_COUNT + 1] = int(uint(ulong(left.count) >> 32));
    words[CANDIDATE_GRADIENT] = int(uint(ulong(left.gradient)));
    words[CANDIDATE_GRADIENT + 1] = int(uint(ulong(left.gradient) >> 32));
    words[CANDIDATE_HESSIAN] = int(uint(ulong(left.hessian)));
    words[CANDIDATE_HESSIAN + 1] = int(uint(ulong(left.hessian) >> 32));
}

}  // namespace torchgbdt
