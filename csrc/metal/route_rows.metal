// Stable partition of each split node's rows into left and right, in two dispatches: threadgroups
// hand nothing to each other within one.
//
// Constants: none.
#include "metal/faults.h"
#include "metal/group_ranks.h"
#include "metal/node_chunks.h"
#include "metal/split_side.h"
#include "metal/turns.h"

using namespace torchgbdt;

constant uint n_threads = 256;
constant uint split_words = 3;
constant uint n_totals = 4 * n_simdgroups;

// Layout: columns (n_features, n_rows); sides in row order.
// Grid:   one group per chunk.
// Writes: each group the sides of its chunk's places in row order, 1 is left, and their sum.
[[max_total_threads_per_threadgroup(256)]] kernel void route_count(
    device const uchar* columns [[buffer(0)]],   // IN uint8 (n_features, n_rows)
    device const uint* row_order [[buffer(1)]],  // IN int32 (n_rows,)
    device const int* features [[buffer(2)]],    // IN int32 (n_features, 2)
    device uchar* sides [[buffer(3)]],           // OUT uint8 (n_rows,)
    device uint* chunk_counts [[buffer(4)]],     // OUT int32 (n_chunks,)
    constant int* nodes [[buffer(5)]],           // IN (n_nodes, 3): begin, n_rows, first chunk
    constant int* splits [[buffer(6)]],          // IN (n_nodes, 3): feature, split_bin, 1 where
                                                 //    missing values go left
    constant int& n_nodes [[buffer(7)]],         // of this slab that are split
    constant int& rows_per_chunk [[buffer(8)]], constant int& n_rows [[buffer(9)]],   // of the run
    device atomic_uint* last_turn [[buffer(10)]], constant int& turn [[buffer(11)]],  // see turns.h
    uint group [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup uint totals[n_simdgroups];
    take_turn(last_turn, turn, group | thread_index);
    const Chunk chunk = find_chunk(nodes, n_nodes, rows_per_chunk, group);
    constant int* split = splits + split_words * chunk.node;
    const int missing_code = features[2 * split[0] + 1];
    device const uchar* column = columns + ulong(split[0]) * n_rows;
    uint n_left = 0;
    for (uint place = chunk.begin + thread_index; place < chunk.end; place += n_threads) {
        const int code = column[row_order[place]];
        const bool left = code_goes_left(code, split[1], missing_code, split[2] != 0);
        sides[place] = left ? 1 : 0;
        n_left += left ? 1 : 0;
    }
    const uint sum = group_sum(n_left, lane, simdgroup, totals);
    if (thread_index == 0) {
        chunk_counts[group] = sum;
    }
}

// Layout: as in route_count; fixed_point (n_words, n_rows).
// Grid:   one group per chunk, chunks as in route_count.
// Writes: each group the places in the routed buffers of its chunk's rows; a node's first chunk
//         left_counts; whoever finds one, a fault.
[[max_total_threads_per_threadgroup(256)]] kernel void route_scatter(
    device const uint* row_order [[buffer(0)]],     // IN int32 (n_rows,)
    device const int* fixed_point [[buffer(1)]],    // IN int32 (n_words, n_rows)
    device const uchar* sides [[buffer(2)]],        // IN uint8 (n_rows,), from route_count
    device const uint* chunk_counts [[buffer(3)]],  // IN int32 (n_chunks,), from route_count
    device uint* routed_order [[buffer(4)]],        // OUT int32 (n_rows,)
    device int* routed_fixed_point [[buffer(5)]],   // OUT int32 (n_words, n_rows)
    device uint* left_counts [[buffer(6)]],         // OUT int32 (n_nodes,): rows that went left
    device atomic_uint* faults [[buffer(7)]],       // IN-OUT int32 (1,), see faults.h
    constant int* nodes [[buffer(8)]],              // IN (n_nodes, 3): begin, n_rows, first chunk
    constant int* expected_left [[buffer(9)]],      // IN (n_nodes,): left_counts, -1 if not known
    constant int& n_nodes [[buffer(10)]], constant int& rows_per_chunk [[buffer(11)]],
    constant int& n_rows [[buffer(12)]],   // of the run
    constant int& n_words [[buffer(13)]],  // of fixed_point
    device atomic_uint* last_turn [[buffer(14)]], constant int& turn [[buffer(15)]],  // see turns.h
    uint group [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]],
    uint thread_index [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup uint totals[n_totals];
    take_turn(last_turn, turn, group | thread_index);
    const Chunk chunk = find_chunk(nodes, n_nodes, rows_per_chunk, group);
    const uint node_begin = nodes[node_words * chunk.node];
    const uint node_rows = nodes[node_words * chunk.node + 1];
    const uint first = nodes[node_words * chunk.node + 2];
    const uint end = chunk.node + 1 < uint(n_nodes) ? nodes[node_words * (chunk.node + 1) + 2]
                                                    : groups;  // of the node's chunks
    uint in_node = 0;  // of this thread's share of the node's chunks, how many rows go left
    uint in_earlier = 0;
    for (uint i = first + thread_index; i < end; i += n_threads) {
        in_node += chunk_counts[i];
        in_earlier += i < group ? chunk_counts[i] : 0;
    }
    const uint n_left = group_sum(in_node, lane, simdgroup, totals);
    uint left_before = group_sum(in_earlier, lane, simdgroup, totals + n_simdgroups);

    bool is_even = true;
    for (uint begin = chunk.begin; begin < chunk.end; begin += n_threads) {
        const uint from = begin + thread_index;
        const bool is_row = from < chunk.end;
        const bool is_left = is_row && sides[from] != 0;
        uint left_in_block = 0;
        // Two stretches of totals by turns: whoever still reads one has not passed the barrier
        // behind which the next but one block writes it.
        is_even = !is_even;
        const uint left_rows =
            left_before + group_prefix(is_left ? 1 : 0, lane, simdgroup,
                                       totals + (is_even ? 2 : 3) * n_simdgroups, left_in_block);
        const uint right_rows = from - node_begin - left_rows;
        const uint rank = is_left ? left_rows : n_left + right_rows;
        // Counts of a failed dispatch must not make rows overwrite what is not theirs.
        if (is_row && rank < node_rows) {
            const uint to = node_begin + rank;
            routed_order[to] = row_order[from];
            for (int word = 0; word < n_words; ++word) {
                const ulong column = ulong(word) * n_rows;
                routed_fixed_point[column + to] = fixed_point[column + from];
            }
        }
        left_before += left_in_block;
    }

    if (thread_index == 0 && group == first) {
        left_counts[chunk.node] = n_left;
        const int expected = expected_left[chunk.node];
        if (expected >= 0 && n_left != uint(expected)) {
            atomic_fetch_or_explicit(faults, fault_left_count, memory_order_relaxed);
        }
    }
}
