// Prediction on raw values: x <= threshold goes left, NaN where the split sends missing rows. The
// definition is core.backend.ComputeBackend.predict.
//
// Constants: those of metal/feature_keys.h.
#include "metal/feature_keys.h"
#include "metal/tree_nodes.h"
#include "metal/turns.h"
#include "shared/leaf_values.h"

using namespace torchgbdt;

// The leaf of a row; nodes and keys: of the tree.
inline int find_leaf(device const int* nodes, device const KEY* keys, device const VALUE* x,
                     Strides strides, long row) {
    int index = 0;
    TreeNode node = read_node(nodes, index);
    while (!node.is_leaf()) {
        const KEY key = read_key(x, strides, row, node.feature);
        const bool goes_left = is_missing(key) ? node.missing_left : key <= keys[index];
        index = child_of(node, goes_left);
        node = read_node(nodes, index);
    }
    return index;
}

// Layout: X as it lies; sums row-major.
// Grid:   n_rows threads, one per row; no barriers.
// Writes: each thread the sums of its row, tree by tree.
kernel void predict(
    device const VALUE* x [[buffer(0)]],       // IN  as VALUE, from the tensor's first element
    device const int* nodes [[buffer(1)]],     // IN  int32 (n_nodes, 3): feature (-1: leaf), left
                                               //     child, whether missing rows go left
    device const KEY* keys [[buffer(2)]],      // IN  KEY (n_nodes,): of thresholds; leaves any
    device const float* values [[buffer(3)]],  // IN  float32 (n_nodes, n_values)
    device const int* offsets [[buffer(4)]],   // IN  int32 (n_trees + 1,): nodes of each tree
    device float* sums [[buffer(5)]],          // IN-OUT float32 (n_rows, n_outputs)
    constant int* strides [[buffer(6)]],       // row stride, column stride: 2 words each, low first
    constant int& first_tree [[buffer(7)]],    // adds trees first_tree..end_tree-1
    constant int& end_tree [[buffer(8)]],
    constant int& n_values [[buffer(9)]],  // per leaf: n_outputs; or 1: t adds to t % n_outputs
    constant int& n_outputs [[buffer(10)]], device atomic_uint* last_turn [[buffer(11)]],
    constant int& turn [[buffer(12)]],  // see turns.h
    uint position [[thread_position_in_grid]]) {
    take_turn(last_turn, turn, position);
    const long row = static_cast<long>(position);
    const Strides steps = read_strides(strides);
    device float* of_row = sums + row * n_outputs;
    for (int tree = first_tree; tree < end_tree; ++tree) {
        const long root = offsets[tree];
        const int leaf = find_leaf(nodes + 3 * root, keys + root, x, steps, row);
        const int first = n_values == 1 ? tree % n_outputs : 0;
        for (int i = 0; i < n_values; ++i) {
            of_row[first + i] =
                add_leaf_value(of_row[first + i], values[(root + leaf) * n_values + i]);
        }
    }
}

// Layout: X as it lies; leaves row-major.
// Grid:   n_rows threads, one per row; no barriers.
// Writes: each thread the leaves of its row.
kernel void predict_leaves(
    device const VALUE* x [[buffer(0)]],      // IN  as in predict, and so nodes, keys and offsets
    device const int* nodes [[buffer(1)]],    // IN
    device const KEY* keys [[buffer(2)]],     // IN
    device const int* offsets [[buffer(3)]],  // IN
    device int* leaves [[buffer(4)]],         // OUT int32 (n_rows, n_trees): nodes of each tree
    constant int* strides [[buffer(5)]],      // as in predict
    constant int& first_tree [[buffer(6)]],   // writes columns first_tree..end_tree-1
    constant int& end_tree [[buffer(7)]], constant int& n_trees [[buffer(8)]],
    device atomic_uint* last_turn [[buffer(9)]], constant int& turn [[buffer(10)]],  // see turns.h
    uint position [[thread_position_in_grid]]) {
    take_turn(last_turn, turn, position);
    const long row = static_cast<long>(position);
    const Strides steps = read_strides(strides);
    for (int tree = first_tree; tree < end_tree; ++tree) {
        const long root = offsets[tree];
        leaves[row * n_trees + tree] = find_leaf(nodes + 3 * root, keys + root, x, steps, row);
    }
}
