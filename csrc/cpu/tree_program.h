// The upper splits of a tree as a program over columns of codes: each is asked of every row.
//
// Those are more questions than a walk down the tree asks, but each takes one load, one comparison
// and one selection of 16 to 64 rows at a time, with no address that depends on the data; for trees
// of 64 leaves it is several times as fast. A step finds, for all rows of a block, the leaf that
// they reach from one node, of what its children's steps found:
//
//             0
//           /   \          slot 0 = leaf of the rows at node 2
//          1     2         slot 1 = leaf of the rows at node 1
//        /  \   / \        slot 2 = right at node 0 ? slot 0 : slot 1
//       3    4 5   6
#pragma once

#include "cpu/code_test.h"
#include "cpu/views.h"

#include <cstdint>
#include <vector>

namespace torchgbdt {

constexpr std::int64_t kMaxProgramSplits = 255;
constexpr std::int64_t kProgramRows = 256;  // of a block; columns and slots are so many bytes long

class TreeProgram {
  public:
    // Of the first n_splits splits, breadth-first, at most kMaxProgramSplits; those below them are
    // leaves of the program. tests: of the tree's nodes. The tree must have been checked.
    TreeProgram(const TreeView& tree, std::int64_t n_splits, const std::vector<CodeTest>& tests);

    // The node of each leaf, in node order. Programs name a leaf by its place here.
    const std::vector<std::int32_t>& leaf_nodes() const { return leaf_nodes_; }

    int n_slots() const { return n_slots_; }

    // Returns the leaf of each row: one of the slots. codes: (n_columns, kProgramRows); slots:
    // (n_slots, kProgramRows). All rows of the block are computed, whatever their codes are.
    const std::uint8_t* find_leaves(const std::uint8_t* codes, std::uint8_t* slots) const;

    // What the children of a step's node are.
    enum class Children : std::uint8_t {
        leaves,         // leaves[0], leaves[1]
        slots,          // slots left and right
        slot_and_leaf,  // slot left; leaves[1]
        leaf_and_slot,  // leaves[0]; slot right
        splits,         // two splits of two leaves each: leaves[0..1], leaves[2..3]
    };
    struct Step {
        explicit Step(const CodeTest& test) : test(test) {}

        Children children = Children::leaves;
        std::uint8_t result = 0;
        std::uint8_t left = 0;
        std::uint8_t right = 0;
        std::uint8_t leaves[4] = {};
        CodeTest test;
        CodeTest left_test = CodeTest::always_left();
        CodeTest right_test = CodeTest::always_left();
    };

  private:
    class Compiler;

    std::vector<Step> steps_;
    std::vector<std::int32_t> leaf_nodes_;
    int n_slots_ = 1;
};

}  // namespace torchgbdt
