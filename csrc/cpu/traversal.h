// Trees packed for traversal: all rows of a block take one step down at a time, so that their loads
// overlap and no branch depends on the data. Leaves step to themselves.
#pragma once

#include "cpu/check_tree.h"
#include "cpu/code_test.h"
#include "cpu/views.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace torchgbdt {

constexpr std::int64_t kMaxStepColumns = 1 << 16;

// A node that compares codes, which lie in columns of 256; 8 bytes, read at once: left, column,
// shift, bound.
class CodeStep {
  public:
    CodeStep(std::int32_t left, const CodeTest& test)
        : word_((static_cast<std::uint64_t>(left) << 32) |
                (static_cast<std::uint64_t>(test.column) << 16) |
                (static_cast<std::uint64_t>(test.shift) << 8) | test.bound) {}

    static constexpr std::int64_t kRows = 256;  // of a column: what `next` shifts by

    // codes: of the row in column 0.
    std::int32_t next(const std::uint8_t* codes) const {
        const std::uint64_t word = word_;
        const auto column_begin = (word >> 8) & (std::uint64_t{0xffff} << 8);
        const auto turned = static_cast<std::uint8_t>(codes[column_begin] + (word >> 8));
        return static_cast<std::int32_t>(word >> 32) +
               (turned > static_cast<std::uint8_t>(word) ? 1 : 0);
    }

  private:
    std::uint64_t word_;
};

// A node that compares raw values as float64.
struct ValueStep {
    double threshold;
    std::int32_t left;
    std::uint32_t feature : 31;
    std::uint32_t missing_left : 1;

    std::int32_t next(const double* row) const {
        const double x = row[feature];
        return left + static_cast<std::int32_t>((x > threshold) | ((x != x) & (missing_left == 0)));
    }
};

template <typename Step>
struct PackedTree {
    std::vector<Step> steps;
    int depth = 0;
};

// Of a tree that was checked. depth: how many steps down are taken at most; tests: of the nodes, on
// at most kMaxStepColumns columns.
inline PackedTree<CodeStep> pack_for_codes(const TreeView& tree, int depth,
                                           const std::vector<CodeTest>& tests) {
    PackedTree<CodeStep> packed;
    packed.depth = depth;
    packed.steps.reserve(static_cast<std::size_t>(tree.n_nodes));
    for (std::int32_t node = 0; node < tree.n_nodes; ++node) {
        const CodeTest& test = tests[static_cast<std::size_t>(node)];
        packed.steps.emplace_back(tree.is_leaf(node) ? node : tree.left[node], test);
    }
    return packed;
}

// Checks the tree first. Without branches on what a node is, since that decides how long a
// prediction of one row takes.
inline PackedTree<ValueStep> pack_for_values(const TreeView& tree, std::int64_t n_features) {
    PackedTree<ValueStep> packed;
    packed.depth = check_tree(tree, n_features);
    packed.steps.resize(static_cast<std::size_t>(tree.n_nodes));
    for (std::int32_t node = 0; node < tree.n_nodes; ++node) {
        const bool leaf = tree.is_leaf(node);
        ValueStep& step = packed.steps[static_cast<std::size_t>(node)];
        step.threshold = leaf ? std::numeric_limits<double>::infinity() : tree.threshold[node];
        step.left = leaf ? node : tree.left[node];
        step.feature = leaf ? 0 : static_cast<std::uint32_t>(tree.feature[node]) & 0x7fffffffu;
        step.missing_left = leaf || tree.missing_left(node) ? 1 : 0;
    }
    return packed;
}

// nodes[i]: of row i; IN: where it is, OUT: the leaf below. Row i lies at rows + i * row_stride.
//
// A few rows go down together, with their nodes in registers; they stop where all have arrived.
template <typename Step, typename Value>
void walk_down(const PackedTree<Step>& tree, const Value* rows, std::int64_t row_stride,
               std::int64_t n_rows, std::int32_t* nodes) {
    constexpr std::int64_t kTogether = 8;
    constexpr int kStretch = 4;  // levels between two looks whether all have arrived
    const Step* steps = tree.steps.data();
    std::int64_t i = 0;
    for (; i + kTogether <= n_rows; i += kTogether) {
        const Value* row = rows + i * row_stride;
        std::int32_t at[kTogether];
        std::copy(nodes + i, nodes + i + kTogether, at);
        const auto step_down = [&] {
            for (std::int64_t k = 0; k < kTogether; ++k) {
                at[k] = steps[at[k]].next(row + k * row_stride);
            }
        };
        int level = 0;
        for (; level + kStretch <= tree.depth; level += kStretch) {
            for (int of_stretch = 0; of_stretch < kStretch - 1; ++of_stretch) {
                step_down();
            }
            std::int32_t before[kTogether], moved = 0;
            std::copy(at, at + kTogether, before);
            step_down();
            for (std::int64_t k = 0; k < kTogether; ++k) {
                moved |= at[k] ^ before[k];
            }
            if (moved == 0) {
                break;
            }
        }
        for (; level < tree.depth; ++level) {
            step_down();
        }
        std::copy(at, at + kTogether, nodes + i);
    }
    for (; i < n_rows; ++i) {
        for (int level = 0; level < tree.depth; ++level) {
            nodes[i] = steps[nodes[i]].next(rows + i * row_stride);
        }
    }
}

// nodes[i] = leaf of row i, from the root.
template <typename Step, typename Value>
void find_leaves(const PackedTree<Step>& tree, const Value* rows, std::int64_t row_stride,
                 std::int64_t n_rows, std::int32_t* nodes) {
    std::fill(nodes, nodes + n_rows, 0);
    walk_down(tree, rows, row_stride, n_rows, nodes);
}

}  // namespace torchgbdt
