// The check that lets every traversal trust its tree.
#pragma once

#include "cpu/views.h"

namespace torchgbdt {

// Throws std::invalid_argument unless every split is on one of the features and its children are
// the next two nodes that are no child yet, as in core/tree.py: so each node is reached once at
// most, and none is outside the tree. Returns the splits on the longest path from the root.
int check_tree(const TreeView& tree, std::int64_t n_features);

// Every split of a tree that compares bins is at one.
void check_split_bins(const TreeView& tree);

}  // namespace torchgbdt
