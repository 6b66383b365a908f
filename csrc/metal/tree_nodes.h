// Trees as kernels walk down them. The right child of a split is left + 1: trees are breadth-first,
// those that are loaded too (core/tree.py checks it).
#pragma once

namespace torchgbdt {

// One row of int32 (n_nodes, 3); children count from their own tree's root.
struct TreeNode {
    int feature;  // -1: a leaf
    int left;
    bool missing_left;

    bool is_leaf() const { return feature < 0; }
};

inline TreeNode read_node(device const int* nodes, long node) {
    device const int* words = nodes + 3 * node;
    return {words[0], words[1], words[2] != 0};
}

inline int child_of(TreeNode node, bool goes_left) {
    return goes_left ? node.left : node.left + 1;
}

}  // namespace torchgbdt
