// For each feature and node, the candidates that may be the split that gains most: usually one.
// It compares float32 ranks whose error is bounded; the host computes the gains of those that are
// left in float64 (torchgbdt/backends/split_candidates.py), and they decide. metal/split_bound.h
// has the proof. One output per tree.
//
// Constants: CONSTANT_HESSIAN 0 or 1: histograms have no Hessians, that of a cell is count * unit.
#include "metal/feature_scan.h"

using namespace torchgbdt;

#define LANES 32
#define GROUP_SIMDGROUPS 8
#define LANE_BINS 8  // 255 value bins at most, shared out among 32 lanes

// Layout: metal/split_search.h has the words of the lists, summaries and candidates.
// Grid:   one simdgroup of 32 lanes per (node, feature), feature fastest; groups of 256 threads,
//         surplus simdgroups leave. Each lane has up to 8 neighbouring value bins.
// Writes: each simdgroup the summary and the candidates of its node and feature.
kernel void scan_splits(
    device const long* histograms [[buffer(0)]],  // IN int64 (n_slots, 1 + n_words, total_bins)
    device const int* features [[buffer(1)]],     // IN int32 (n_features, 2)
    device int* summaries [[buffer(2)]],          // OUT int32 (n_nodes, n_features, 4)
    device int* candidates [[buffer(3)]],         // OUT int32 (n_nodes, n_features, 8, 8)
    constant int* search [[buffer(4)]],           // IN (9,): sizes, rules, nonce
    constant int* nodes [[buffer(5)]],            // IN (n_nodes, 4): slot, count
    constant int* node_sums [[buffer(6)]],        // IN (n_nodes, 4): gradient, Hessian
    constant int* node_ratios [[buffer(7)]],      // IN (n_nodes, 4): mean gradient, lambda
    constant int* node_limits [[buffer(8)]],  // IN (n_nodes, 4): tolerance, smallest rank, units
    uint group [[threadgroup_position_in_grid]], uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    const uint n_features = search[SEARCH_N_FEATURES];
    const uint pair = group * GROUP_SIMDGROUPS + simdgroup;
    if (pair >= uint(search[SEARCH_N_NODES]) * n_features) {
        return;  // the whole simdgroup
    }
    const uint node = pair / n_features;
    const uint feature = pair % n_features;
    const NodeSums totals = node_sums_of(nodes, node_sums, node);
    const RankTerms terms = rank_terms_of(node_ratios, node_limits, node);
    const float tolerance = as_type<float>(node_limits[LIST_WORDS * node]);
    const float smallest_rank = as_type<float>(node_limits[LIST_WORDS * node + 1]);
    const SplitRules rules = split_rules_of(search);
    const int n_bins = features[2 * feature + 1];
    const FeatureCells cells =
        feature_cells(histograms, search, nodes[LIST_WORDS * node], features[2 * feature]);

    // What lies before this lane's bins, and whether everything adds up to the node.
    const int lane_bins = (n_bins + LANES - 1) / LANES;
    const int begin = min(int(lane) * lane_bins, n_bins);
    const int end = min(begin + lane_bins, n_bins);
    const NodeSums missing = cell_sums(cells, n_bins);
    NodeSums own = no_sums();
    bool is_faulty = is_impossible(missing, totals);
    for (int bin = begin; bin < end; ++bin) {
        const NodeSums cell = cell_sums(cells, bin);
        is_faulty = is_faulty || is_impossible(cell, totals);
        own = add(own, cell);
    }
    const NodeSums through = sums_through_lane(own, lane);
    const NodeSums all = add(sums_of_lane(through, LANES - 1), missing);
    is_faulty = is_faulty || !are_equal(all, totals);
    is_faulty = simd_max(uint(is_faulty)) != 0;

    // Ranks of this lane's candidates: for each bin, missing rows right and left; -1 for none.
    const bool has_missing = missing.count > 0;
    float ranks[2 * LANE_BINS];
    float lower = smallest_rank;
    float upper = 0.0f;
    NodeSums left = subtract(through, own);
    for (int bin = begin; bin < end; ++bin) {
        const NodeSums cell = cell_sums(cells, bin);
        left = add(left, cell);
        // An empty bin has the candidates of the bin before it, which win the tie.
        const bool is_asked = bin == 0 || cell.count > 0;
        for (int side = 0; side < 2; ++side) {
            const NodeSums sums = side == 0 ? left : add(left, missing);
            float rank = -1.0f;
            if (is_asked && (side == 0 || has_missing) && is_allowed(sums, totals, rules)) {
                rank = split_rank(sums, subtract(totals, sums), terms);
                lower = max(lower, lower_rank(rank, tolerance));
                upper = max(upper, upper_rank(rank, tolerance));
            }
            ranks[2 * (bin - begin) + side] = rank;
        }
    }
    lower = simd_max_rank(lower);
    upper = simd_max_rank(upper);

    // Those that reach the largest lower bound, in the order of bins and sides.
    uint n_own = 0;
    for (int i = 0; i < 2 * (end - begin); ++i) {
        n_own += may_win(ranks[i], lower, tolerance);
    }
    const uint n_earlier = simd_prefix_exclusive_sum(n_own);
    const uint n_candidates = simd_sum(n_own);
    const bool is_overfull = n_candidates > MAX_CANDIDATES;

    if (lane == 0) {
        device int* summary = summaries + ulong(pair) * SUMMARY_WORDS;
        summary[0] = as_type<int>(lower);
        summary[1] = as_type<int>(upper);
        summary[2] = is_faulty ? MARK_FAULT : is_overfull ? MARK_OVERFLOW : int(n_candidates);
        summary[3] = search[SEARCH_NONCE];
    }
    if (is_faulty || is_overfull) {
        return;
    }
    left = subtract(through, own);
    device int* next = candidates + (ulong(pair) * MAX_CANDIDATES + n_earlier) * CANDIDATE_WORDS;
    for (int bin = begin; bin < end; ++bin) {
        left = add(left, cell_sums(cells, bin));
        for (int side = 0; side < 2; ++side) {
            const float rank = ranks[2 * (bin - begin) + side];
            if (may_win(rank, lower, tolerance)) {
                const int code = bin | side << 8 | int(has_missing) << 9;
                write_candidate(next, upper_rank(rank, tolerance), code,
                                side == 0 ? left : add(left, missing));
                next += CANDIDATE_WORDS;
            }
        }
    }
}
