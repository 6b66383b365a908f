// A tree over columns of codes: rows of a block find their leaves together.
#pragma once

#include "cpu/traversal.h"
#include "cpu/tree_program.h"

#include <cstdint>
#include <vector>

namespace torchgbdt {

constexpr std::int64_t kCodedRows = kProgramRows;  // of a block
static_assert(kCodedRows == CodeStep::kRows, "programs and walks read the same columns");

// Memory of one worker.
struct CodedRows {
    std::vector<std::uint8_t> codes;  // (n_columns, kCodedRows)
    std::vector<std::uint8_t> slots;  // of programs
    std::vector<std::int32_t> nodes;  // of walks

    void resize(std::int64_t n_columns, int n_slots) {
        codes.resize(static_cast<std::size_t>(n_columns * kCodedRows));
        slots.resize(static_cast<std::size_t>(n_slots * kCodedRows));
        nodes.resize(static_cast<std::size_t>(kCodedRows));
    }
};

// Large trees are walked down from where the program of their upper splits ends.
class CodedTree {
  public:
    // depth: from check_tree. tests: of each node, on at most kMaxStepColumns columns.
    CodedTree(const TreeView& tree, int depth, const std::vector<CodeTest>& tests);

    int n_slots() const { return upper_.n_slots(); }

    // Calls visit(leaves) with the leaf of each of the first `count` rows of the block: uint8 for
    // small trees, whose nodes are leaf_nodes()[leaf], or int32, node ids, for others.
    template <typename Visit>
    void visit_leaves(std::int64_t count, CodedRows& rows, const Visit& visit) const {
        const std::uint8_t* leaves = upper_.find_leaves(rows.codes.data(), rows.slots.data());
        if (lower_.steps.empty()) {
            visit(leaves);
            return;
        }
        std::int32_t* nodes = rows.nodes.data();
        for (std::int64_t i = 0; i < count; ++i) {
            nodes[i] = upper_.leaf_nodes()[leaves[i]];
        }
        walk_down(lower_, rows.codes.data(), 1, count, nodes);
        visit(static_cast<const std::int32_t*>(nodes));
    }

    // Null for trees whose leaves are given as node ids.
    const std::int32_t* leaf_nodes() const {
        return lower_.steps.empty() ? upper_.leaf_nodes().data() : nullptr;
    }

    // The values of one output by leaf, as leaves are given.
    std::vector<float> leaf_values(const TreeView& tree, std::int64_t output) const;

  private:
    TreeProgram upper_;
    PackedTree<CodeStep> lower_;  // empty where the program is the whole tree
};

}  // namespace torchgbdt
