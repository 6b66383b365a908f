#include "cpu/check_tree.h"

#include "cpu/checks.h"

#include <limits>
#include <stdexcept>

namespace torchgbdt {

// Breadth-first: nodes of one depth lie side by side, and their children after them. No branch
// depends on what a node is: this is most of the time that a prediction of one row takes.
int check_tree(const TreeView& tree, std::int64_t n_features) {
    if (tree.n_nodes < 1 || tree.n_nodes > std::numeric_limits<std::int32_t>::max()) {
        throw std::invalid_argument("a tree has no nodes, or too many");
    }
    int depth = 0;
    std::int64_t level_end = 1, next_child = 1;
    bool children_fit = true, features_fit = true;
    for (std::int64_t node = 0; node < tree.n_nodes; ++node) {
        if (node == level_end) {
            level_end = next_child;
            ++depth;
        }
        const std::int64_t feature = tree.feature[node];
        const bool leaf = tree.is_leaf(node);
        features_fit &= leaf | ((feature >= 0) & (feature < n_features));
        children_fit &= (leaf | (tree.left[node] == next_child)) & (node < next_child);
        next_child += leaf ? 0 : 2;
    }
    if (!children_fit || next_child != tree.n_nodes) {
        throw std::invalid_argument("a tree has a child out of range");
    }
    if (!features_fit) {
        throw std::invalid_argument("a tree splits on a feature that the data lacks");
    }
    return depth;
}

void check_split_bins(const TreeView& tree) {
    for (std::int64_t node = 0; node < tree.n_nodes; ++node) {
        require(tree.is_leaf(node) || tree.split_bin[node] >= 0, "a tree splits at a negative bin");
    }
}

}  // namespace torchgbdt
