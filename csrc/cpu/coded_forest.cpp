#include "cpu/coded_forest.h"

namespace torchgbdt {
namespace {

// Splits above the walks of large trees: so many that both halves take about as long.
constexpr std::int64_t kUpperSplits = 63;

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

std::optional<CodedForest> CodedForest::make(const ForestView& forest, const MatrixView& matrix) {
    for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
        check_tree(forest.tree(tree), matrix.n_features);
    }
    const std::optional<ForestCuts> cuts = collect_cuts(forest, matrix.n_features);
    if (!cuts || cuts->n_columns() > kMaxStepColumns) {
        return std::nullopt;
    }
    CodedForest coded;
    for (std::int64_t column = 0; column < cuts->n_columns(); ++column) {
        const std::int64_t first = cuts->offsets[static_cast<std::size_t>(column)];
        const std::int64_t end = cuts->offsets[static_cast<std::size_t>(column) + 1];
        coded.features_.emplace_back(matrix, cuts->features[static_cast<std::size_t>(column)],
                                     cuts->cuts.data() + first, end - first, kMissingCode);
    }
    for (std::int64_t index = 0; index < forest.n_trees; ++index) {
        const TreeView tree = forest.tree(index);
        const std::int32_t* columns = cuts->columns.data() + forest.offsets[index];
        const std::uint8_t* ranks = cuts->ranks.data() + forest.offsets[index];
        const std::int64_t n_splits = tree.n_nodes / 2;
        const bool is_whole = n_splits <= kMaxProgramSplits;
        coded.trees_.push_back(
            {TreeProgram(tree, is_whole ? n_splits : kUpperSplits, columns, ranks), {}});
        if (!is_whole) {
            coded.trees_.back().lower = pack_for_codes(tree, matrix.n_features, columns, ranks);
            // No walk begins above the first split that the program left out.
            coded.trees_.back().lower.depth -=
                level_of(tree, first_unfinished(tree, coded.trees_.back().upper));
        }
        coded.n_slots_ = std::max(coded.n_slots_, coded.trees_.back().upper.n_slots());
    }
    return coded;
}

void CodedForest::load(std::int64_t begin, std::int64_t count, Scratch& scratch) const {
    scratch.codes.resize(static_cast<std::size_t>(n_columns() * kBlockRows));
    scratch.slots.resize(static_cast<std::size_t>(n_slots_ * kBlockRows));
    scratch.nodes.resize(static_cast<std::size_t>(kBlockRows));
    for (std::int64_t column = 0; column < n_columns(); ++column) {
        features_[static_cast<std::size_t>(column)].find(
            nullptr, begin, count, scratch.codes.data() + column * kBlockRows);
    }
}

}  // namespace torchgbdt
