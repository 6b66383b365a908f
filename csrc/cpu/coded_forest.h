// A forest over codes of one byte: what prediction on many rows runs.
#pragma once

#include "cpu/feature_codes.h"
#include "cpu/forest_cuts.h"
#include "cpu/traversal.h"
#include "cpu/tree_program.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace torchgbdt {

class CodedForest {
  public:
    static constexpr std::int64_t kBlockRows = kProgramRows;

    // What one worker needs for a block of rows.
    struct Scratch {
        std::vector<std::uint8_t> codes;  // (n_columns, kBlockRows)
        std::vector<std::uint8_t> slots;  // of programs
        std::vector<std::int32_t> nodes;  // of walks
    };

    // Checks the trees. None where a feature has too many thresholds for codes.
    static std::optional<CodedForest> make(const ForestView& forest, const MatrixView& matrix);

    // Calls visit(tree, leaves) for each tree in order; leaves: of each row of the block, uint8
    // for small trees, whose nodes are leaf_nodes(tree)[leaf], or int32, node ids, for others.
    template <typename Visit>
    void visit_leaves(std::int64_t begin, std::int64_t count, Scratch& scratch,
                      const Visit& visit) const {
        load(begin, count, scratch);
        for (std::int64_t index = 0; index < n_trees(); ++index) {
            const CodedTree& tree = trees_[static_cast<std::size_t>(index)];
            const std::uint8_t* leaves =
                tree.upper.find_leaves(scratch.codes.data(), scratch.slots.data());
            if (tree.lower.steps.empty()) {
                visit(index, leaves);
                continue;
            }
            std::int32_t* nodes = scratch.nodes.data();
            for (std::int64_t i = 0; i < count; ++i) {
                nodes[i] = tree.upper.leaf_nodes()[leaves[i]];
            }
            walk_down(tree.lower, scratch.codes.data(), 1, count, nodes);
            visit(index, static_cast<const std::int32_t*>(nodes));
        }
    }

    // Null for trees whose leaves are given as node ids.
    const std::int32_t* leaf_nodes(std::int64_t index) const {
        const CodedTree& tree = trees_[static_cast<std::size_t>(index)];
        return tree.lower.steps.empty() ? tree.upper.leaf_nodes().data() : nullptr;
    }

  private:
    // Large trees are walked down from where the program of their upper splits ends.
    struct CodedTree {
        TreeProgram upper;
        PackedTree<CodeStep> lower;  // empty where the program is the whole tree
    };

    CodedForest() = default;
    std::int64_t n_trees() const { return static_cast<std::int64_t>(trees_.size()); }
    std::int64_t n_columns() const { return static_cast<std::int64_t>(features_.size()); }
    void load(std::int64_t begin, std::int64_t count, Scratch& scratch) const;

    std::vector<FeatureCodes> features_;
    std::vector<CodedTree> trees_;
    int n_slots_ = 1;
};

}  // namespace torchgbdt
