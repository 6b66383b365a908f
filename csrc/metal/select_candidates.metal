// Joins the candidates of a node's features: those that reach the largest lower rank of all, at
// most 8; of candidates that gain the same bit for bit only the first.
//
// Constants: none.
#include "metal/split_search.h"
#include "metal/turns.h"

using namespace torchgbdt;

#define GROUP_THREADS 256
#define NO_POSITION 0xffffffffu

// The sums of a candidate's left side; its count decides nothing.
inline NodeSums left_of(device const int* words) {
    NodeSums left;
    left.count = 0;
    left.gradient = long_of_words(words[CANDIDATE_GRADIENT], words[CANDIDATE_GRADIENT + 1]);
    left.hessian = long_of_words(words[CANDIDATE_HESSIAN], words[CANDIDATE_HESSIAN + 1]);
    return left;
}

// The node's sums, its count left out likewise.
inline NodeSums parent_of(constant int* node_sums, uint node) {
    constant int* sums = node_sums + LIST_WORDS * node;
    NodeSums parent;
    parent.count = 0;
    parent.gradient = long_of_words(sums[0], sums[1]);
    parent.hessian = long_of_words(sums[2], sums[3]);
    return parent;
}

// Layout: metal/split_search.h has the words of the lists, summaries, candidates and results.
// Grid:   one group of 256 threads per node.
// Writes: each group the result of its node.
[[max_total_threads_per_threadgroup(GROUP_THREADS)]] kernel void select_candidates(
    device const int* summaries [[buffer(0)]],   // IN int32 (n_nodes, n_features, 4)
    device const int* candidates [[buffer(1)]],  // IN int32 (n_nodes, n_features, 8, 8)
    device int* results [[buffer(2)]],           // OUT int32 (n_nodes, 68)
    constant int* search [[buffer(3)]],          // IN (9,): sizes, rules, nonce
    constant int* node_sums [[buffer(4)]],       // IN (n_nodes, 4): gradient, Hessian
    device atomic_uint* last_turn [[buffer(5)]], constant int& turn [[buffer(6)]],  // see turns.h
    uint node [[threadgroup_position_in_grid]], uint index [[thread_index_in_threadgroup]]) {
    threadgroup atomic_uint largest_lower;  // a rank's bits, which are in its order
    threadgroup atomic_uint any_fault;
    threadgroup atomic_uint any_overflow;
    threadgroup atomic_uint chosen[MAX_CANDIDATES + 1];  // positions among the node's candidates
    take_turn(last_turn, turn, node | index);

    const uint n_features = search[SEARCH_N_FEATURES];
    device const int* summary = summaries + ulong(node) * n_features * SUMMARY_WORDS;
    device const int* list =
        candidates + ulong(node) * n_features * (MAX_CANDIDATES * CANDIDATE_WORDS);

    if (index == 0) {
        atomic_store_explicit(&largest_lower, 0u, memory_order_relaxed);
        atomic_store_explicit(&any_fault, 0u, memory_order_relaxed);
        atomic_store_explicit(&any_overflow, 0u, memory_order_relaxed);
    }
    if (index <= MAX_CANDIDATES) {
        atomic_store_explicit(&chosen[index], NO_POSITION, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    for (uint feature = index; feature < n_features; feature += GROUP_THREADS) {
        device const int* words = summary + feature * SUMMARY_WORDS;
        atomic_fetch_max_explicit(&largest_lower, uint(words[0]), memory_order_relaxed);
        if (words[2] == MARK_FAULT || words[3] != search[SEARCH_NONCE]) {
            atomic_store_explicit(&any_fault, 1u, memory_order_relaxed);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const uint enough = atomic_load_explicit(&largest_lower, memory_order_relaxed);
    for (uint feature = index; feature < n_features; feature += GROUP_THREADS) {
        device const int* words = summary + feature * SUMMARY_WORDS;
        if (words[2] == MARK_OVERFLOW && uint(words[1]) >= enough) {
            atomic_store_explicit(&any_overflow, 1u, memory_order_relaxed);
        }
    }

    // In each turn the first candidate that is not tied with those chosen before. One turn more
    // than there is room tells whether some are left.
    const NodeSums parent = parent_of(node_sums, node);
    uint n_chosen = 0;
    bool is_over = false;
    while (!is_over) {
        uint first = NO_POSITION;
        for (uint position = index; position < n_features * MAX_CANDIDATES && first == NO_POSITION;
             position += GROUP_THREADS) {
            const int n_candidates = summary[position / MAX_CANDIDATES * SUMMARY_WORDS + 2];
            device const int* words = list + ulong(position) * CANDIDATE_WORDS;
            if (int(position % MAX_CANDIDATES) < n_candidates && uint(words[0]) >= enough) {
                const NodeSums left = left_of(words);
                bool is_tied = false;
                for (uint i = 0; i < n_chosen; ++i) {
                    const uint other = atomic_load_explicit(&chosen[i], memory_order_relaxed);
                    const NodeSums other_left = left_of(list + ulong(other) * CANDIDATE_WORDS);
                    is_tied = is_tied || are_equal(left, other_left) ||
                              are_equal(left, subtract(parent, other_left));
                }
                first = is_tied ? NO_POSITION : position;
            }
        }
        atomic_fetch_min_explicit(&chosen[n_chosen], first, memory_order_relaxed);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        is_over = atomic_load_explicit(&chosen[n_chosen], memory_order_relaxed) == NO_POSITION;
        n_chosen += is_over ? 0 : 1;
        is_over = is_over || n_chosen > MAX_CANDIDATES;
    }

    device int* result = results + ulong(node) * RESULT_WORDS;
    const bool is_overfull =
        n_chosen > MAX_CANDIDATES || atomic_load_explicit(&any_overflow, memory_order_relaxed) != 0;
    if (index == 0) {
        result[0] = is_overfull ? MARK_OVERFLOW : int(n_chosen);
        result[1] = int(atomic_load_explicit(&any_fault, memory_order_relaxed));
        result[2] = search[SEARCH_NONCE];
        result[3] = 0;
    }
    if (index < MAX_CANDIDATES * CANDIDATE_WORDS) {
        const uint i = index / CANDIDATE_WORDS;
        const uint word = index % CANDIDATE_WORDS;
        int value = 0;
        if (!is_overfull && i < n_chosen) {
            const uint position = atomic_load_explicit(&chosen[i], memory_order_relaxed);
            value = word == 0 ? int(position / MAX_CANDIDATES)
                              : list[ulong(position) * CANDIDATE_WORDS + word];
        }
        result[RESULT_HEADER + index] = value;
    }
}
