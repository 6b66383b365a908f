#include "cpu/coded_forest.h"

#include "cpu/check_tree.h"
#include "cpu/forest_cuts.h"

#include <algorithm>

namespace torchgbdt {

std::optional<CodedForest> CodedForest::make(const ForestView& forest, const MatrixView& matrix) {
    std::vector<int> depths;
    for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
        depths.push_back(check_tree(forest.tree(tree), matrix.n_features));
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
        const std::int64_t first = forest.offsets[index];
        std::vector<CodeTest> tests;
        for (std::int64_t node = 0; node < tree.n_nodes; ++node) {
            const auto place = static_cast<std::size_t>(first + node);
            if (tree.is_leaf(node)) {
                tests.push_back(CodeTest::always_left());
                continue;
            }
            tests.emplace_back(cuts->columns[place], cuts->ranks[place], kMissingCode,
                               tree.missing_left(node));
        }
        coded.trees_.emplace_back(tree, depths[static_cast<std::size_t>(index)], tests);
        coded.n_slots_ = std::max(coded.n_slots_, coded.trees_.back().n_slots());
    }
    return coded;
}

void CodedForest::load(std::int64_t begin, std::int64_t count, CodedRows& rows) const {
    rows.resize(n_columns(), n_slots_);
    for (std::int64_t column = 0; column < n_columns(); ++column) {
        features_[static_cast<std::size_t>(column)].find(nullptr, begin, count,
                                                         rows.codes.data() + column * kCodedRows);
    }
}

}  // namespace torchgbdt
