#include "cpu/coded_tree.h"

#include <algorithm>

namespace torchgbdt {
namespace {

// Splits above the walks of large trees: so many that both halves take about as long.
constexpr std::int64_t kUpperSplits = 63;

std::int64_t program_splits(const TreeView& tree) {
    const std::int64_t n_splits = tree.n_nodes / 2;
    return n_splits <= kMaxProgramSplits ? n_splits : kUpperSplits;
}

// Splits between the root and a node.
int level_of(const TreeView& tree, std::int64_t node) {
    int level = 0;
    std::int64_t level_end = 1, next_child = 1;
    for (std::int64_t before = 0; before <= node; ++before) {
        if (before == level_end) {
            level_end = next_child;
            ++level;
        }
        next_child += tree.is_leaf(before) ? 0 : 2;
    }
    return level;
}

// The first leaf of a program that is a split of the tree; there is one.
std::int32_t first_unfinished(const TreeView& tree, const TreeProgram& program) {
    const std::vector<std::int32_t>& leaves = program.leaf_nodes();
    return *std::find_if(leaves.begin(), leaves.end(),
                         [&](std::int32_t node) { return !tree.is_leaf(node); });
}

}  // namespace

CodedTree::CodedTree(const TreeView& tree, int depth, const std::vector<CodeTest>& tests)
    : upper_(tree, program_splits(tree), tests) {
    if (program_splits(tree) < tree.n_nodes / 2) {
        // No walk begins above the first split that the program left out.
        depth -= level_of(tree, first_unfinished(tree, upper_));
        lower_ = pack_for_codes(tree, depth, tests);
    }
}

std::vector<float> CodedTree::leaf_values(const TreeView& tree, std::int64_t output) const {
    std::vector<float> values;
    const auto add = [&](std::int64_t node) {
        values.push_back(tree.value[node * tree.n_outputs + output]);
    };
    if (lower_.steps.empty()) {
        std::for_each(upper_.leaf_nodes().begin(), upper_.leaf_nodes().end(), add);
    } else {
        for (std::int64_t node = 0; node < tree.n_nodes; ++node) {
            add(node);
        }
    }
    return values;
}

}  // namespace torchgbdt
