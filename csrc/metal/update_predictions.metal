// Adds a finished tree to the predictions of a data set that is binned.
//
// Constants: none.
#include "metal/split_side.h"
#include "metal/tree_nodes.h"
#include "metal/turns.h"
#include "shared/leaf_values.h"

using namespace torchgbdt;

// Whether all dispatches before this one had their turn. One lane asks for its simdgroup: a load
// per row of one word is much for a device.
inline bool is_in_turn(device atomic_uint* last_turn, int turn, uint lane) {
    uint found = 0;
    if (lane == 0) {
        found = atomic_load_explicit(last_turn, memory_order_relaxed);
    }
    found = simd_max(found);
    return found == uint(turn) || found == uint(turn) - 1u;
}

// Layout: columns and predictions column-major.
// Grid:   n_rows threads, one per row; no barriers.
// Writes: each thread the predictions of its row.
kernel void update_predictions(
    device const uchar* columns [[buffer(0)]],  // IN  uint8 (n_features, n_rows)
    device const int* nodes [[buffer(1)]],      // IN  int32 (n_nodes, 3): feature (-1: leaf), left
                                                //     child, whether missing rows go left
    device const int* codes [[buffer(2)]],     // IN  int32 (n_nodes, 2): split_bin, missing code of
                                               //     the feature; leaves any
    device const float* values [[buffer(3)]],  // IN  float32 (n_nodes, n_values)
    device float* predictions [[buffer(4)]],   // IN-OUT float32 (n_outputs, n_rows)
    constant int& n_rows [[buffer(5)]],
    constant int& output [[buffer(6)]],    // what a tree with one value per leaf adds to
    constant int& n_values [[buffer(7)]],  // per leaf: n_outputs or 1
    device atomic_uint* last_turn [[buffer(8)]], constant int& turn [[buffer(9)]],  // see turns.h
    uint position [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    take_turn(last_turn, turn, position);
    if (!is_in_turn(last_turn, turn, lane)) {
        return;  // the tree may not have been written, and what lies there may have no end
    }
    const long row = static_cast<long>(position);
    int index = 0;
    TreeNode node = read_node(nodes, index);
    while (!node.is_leaf()) {
        const int code = columns[static_cast<long>(node.feature) * n_rows + row];
        device const int* split = codes + 2 * static_cast<long>(index);
        index = child_of(node, code_goes_left(code, split[0], split[1], node.missing_left));
        node = read_node(nodes, index);
    }
    const int first = n_values == 1 ? output : 0;
    for (int i = 0; i < n_values; ++i) {
        device float& sum = predictions[static_cast<long>(first + i) * n_rows + row];
        sum = add_leaf_value(sum, values[static_cast<long>(index) * n_values + i]);
    }
}
