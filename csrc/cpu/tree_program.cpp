#include "cpu/tree_program.h"

#include "cpu/vectorize.h"

#include <algorithm>

namespace torchgbdt {
namespace {

using Children = TreeProgram::Children;
using Step = TreeProgram::Step;

// CodeTest::goes_right on signed bytes, whose comparison every processor has for vectors: 128 less
// on both sides. The subtraction of codes is part of their shift.
struct SignedTest {
    explicit SignedTest(const CodeTest& test)
        : shift(static_cast<std::uint8_t>(test.shift + 128)),
          bound(static_cast<std::int8_t>(test.bound - 128)) {}

    bool goes_right(std::uint8_t code) const {
        return static_cast<std::int8_t>(static_cast<std::uint8_t>(code + shift)) > bound;
    }

    std::uint8_t shift;
    std::int8_t bound;
};

// Slots are distinct, so nothing that is written is read in the same step.
TORCHGBDT_VECTORIZE
void run_steps(const Step* steps, std::int64_t n_steps, const std::uint8_t* codes,
               std::uint8_t* slots) {
    for (const Step* step = steps; step != steps + n_steps; ++step) {
        const Step s = *step;
        const SignedTest test(s.test);
        const std::uint8_t* __restrict code = codes + s.test.column * kProgramRows;
        const std::uint8_t* __restrict left = slots + s.left * kProgramRows;
        const std::uint8_t* __restrict right = slots + s.right * kProgramRows;
        std::uint8_t* __restrict result = slots + s.result * kProgramRows;
        switch (s.children) {
            case Children::leaves:
                for (std::int64_t i = 0; i < kProgramRows; ++i) {
                    result[i] = test.goes_right(code[i]) ? s.leaves[1] : s.leaves[0];
                }
                break;
            case Children::slots:
                for (std::int64_t i = 0; i < kProgramRows; ++i) {
                    result[i] = test.goes_right(code[i]) ? right[i] : left[i];
                }
                break;
            case Children::slot_and_leaf:
                for (std::int64_t i = 0; i < kProgramRows; ++i) {
                    result[i] = test.goes_right(code[i]) ? s.leaves[1] : left[i];
                }
                break;
            case Children::leaf_and_slot:
                for (std::int64_t i = 0; i < kProgramRows; ++i) {
                    result[i] = test.goes_right(code[i]) ? right[i] : s.leaves[0];
                }
                break;
            case Children::splits: {
                const SignedTest left_test(s.left_test), right_test(s.right_test);
                const std::uint8_t* __restrict left_code =
                    codes + s.left_test.column * kProgramRows;
                const std::uint8_t* __restrict right_code =
                    codes + s.right_test.column * kProgramRows;
                for (std::int64_t i = 0; i < kProgramRows; ++i) {
                    const std::uint8_t on_left =
                        left_test.goes_right(left_code[i]) ? s.leaves[1] : s.leaves[0];
                    const std::uint8_t on_right =
                        right_test.goes_right(right_code[i]) ? s.leaves[3] : s.leaves[2];
                    result[i] = test.goes_right(code[i]) ? on_right : on_left;
                }
                break;
            }
        }
    }
}

}  // namespace

// Emits the steps of a tree, children first, and gives out slots.
class TreeProgram::Compiler {
  public:
    Compiler(const TreeView& tree, std::int64_t n_splits, const std::vector<CodeTest>& tests,
             TreeProgram& program)
        : tree_(tree), tests_(tests), program_(program) {
        std::int64_t splits_left = n_splits;
        for (std::int32_t node = 0; node <= 2 * n_splits; ++node) {
            const bool is_split = !tree.is_leaf(node) && splits_left-- > 0;
            is_leaf_.push_back(!is_split);
            leaf_of_node_.push_back(static_cast<std::uint8_t>(program.leaf_nodes_.size()));
            if (!is_split) {
                program.leaf_nodes_.push_back(node);
            }
        }
    }

    // Returns the slot that holds the leaves of the rows at a split.
    std::uint8_t emit(std::int32_t node) {
        const std::int32_t left = tree_.left[node], right = left + 1;
        Step step(test_of(node));
        if (is_small(left) && is_small(right) && !(is_leaf(left) && is_leaf(right))) {
            step.children = Children::splits;
            step.left_test = leaves_below(left, step.leaves);
            step.right_test = leaves_below(right, step.leaves + 2);
        } else {
            step.children = emit_children(left, right, step);
        }
        step.result = take_slot();
        if (reads_left(step)) {
            free_slots_.push_back(step.left);
        }
        if (reads_right(step)) {
            free_slots_.push_back(step.right);
        }
        program_.steps_.push_back(step);
        return step.result;
    }

  private:
    Children emit_children(std::int32_t left, std::int32_t right, Step& step) {
        if (is_leaf(left)) {
            step.leaves[0] = leaf_of(left);
        } else {
            step.left = emit(left);
        }
        if (is_leaf(right)) {
            step.leaves[1] = leaf_of(right);
        } else {
            step.right = emit(right);
        }
        if (is_leaf(left)) {
            return is_leaf(right) ? Children::leaves : Children::leaf_and_slot;
        }
        return is_leaf(right) ? Children::slot_and_leaf : Children::slots;
    }

    bool is_leaf(std::int32_t node) const { return is_leaf_[static_cast<std::size_t>(node)]; }
    std::uint8_t leaf_of(std::int32_t node) const {
        return leaf_of_node_[static_cast<std::size_t>(node)];
    }

    static bool reads_left(const Step& step) {
        return step.children == Children::slots || step.children == Children::slot_and_leaf;
    }
    static bool reads_right(const Step& step) {
        return step.children == Children::slots || step.children == Children::leaf_and_slot;
    }

    const CodeTest& test_of(std::int32_t node) const {
        return tests_[static_cast<std::size_t>(node)];
    }

    // A leaf, or a split of two leaves.
    bool is_small(std::int32_t node) const {
        return is_leaf(node) || (is_leaf(tree_.left[node]) && is_leaf(tree_.left[node] + 1));
    }

    // The test of a small node, and the leaves on its sides: a leaf has itself on both.
    CodeTest leaves_below(std::int32_t node, std::uint8_t* leaves) const {
        if (is_leaf(node)) {
            leaves[0] = leaves[1] = leaf_of(node);
            return CodeTest::always_left();
        }
        leaves[0] = leaf_of(tree_.left[node]);
        leaves[1] = leaf_of(tree_.left[node] + 1);
        return test_of(node);
    }

    std::uint8_t take_slot() {
        if (free_slots_.empty()) {
            return static_cast<std::uint8_t>(program_.n_slots_++);
        }
        const std::uint8_t slot = free_slots_.back();
        free_slots_.pop_back();
        return slot;
    }

    const TreeView& tree_;
    const std::vector<CodeTest>& tests_;
    TreeProgram& program_;
    std::vector<bool> is_leaf_;
    std::vector<std::uint8_t> leaf_of_node_;  // of leaves
    std::vector<std::uint8_t> free_slots_;
};

TreeProgram::TreeProgram(const TreeView& tree, std::int64_t n_splits,
                         const std::vector<CodeTest>& tests) {
    Compiler compiler(tree, n_splits, tests, *this);
    if (n_splits > 0) {
        n_slots_ = 0;
        compiler.emit(0);
    }
}

const std::uint8_t* TreeProgram::find_leaves(const std::uint8_t* codes, std::uint8_t* slots) const {
    if (steps_.empty()) {
        std::fill(slots, slots + kProgramRows, std::uint8_t{0});
        return slots;
    }
    run_steps(steps_.data(), static_cast<std::int64_t>(steps_.size()), codes, slots);
    return slots + steps_.back().result * kProgramRows;
}

}  // namespace torchgbdt
