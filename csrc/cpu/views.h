// Views of the buffers that kernels read and write. numpy owns every buffer; nothing here does.
#pragma once

#include <cstddef>
#include <cstdint>

namespace torchgbdt {

// A row number. 32 bits: a data set has at most 2^32 rows, and half the bytes of int64 are moved.
using RowId = std::uint32_t;

// Bin codes of a data set, row-major: codes[row * n_features + feature].
struct BinMatrix {
    const std::uint8_t* codes;
    std::int64_t n_rows;
    std::int64_t n_features;
};

// The same codes column-major: codes[feature * n_rows + row].
struct BinColumns {
    const std::uint8_t* codes;
    std::int64_t n_rows;
    std::int64_t n_features;
};

// Bins of each feature. Feature f has value bins 0..n_value_bins[f]-1 and the missing code
// n_value_bins[f]; in a histogram its cells are bin_offsets[f]..bin_offsets[f + 1]-1.
struct FeatureBins {
    const std::int32_t* n_value_bins;
    const std::int64_t* bin_offsets;
    std::int64_t n_features;

    std::int64_t total_bins() const { return bin_offsets[n_features]; }
};

// Thresholds of all features: thresholds of feature f are values[offsets[f]..offsets[f + 1]-1].
struct Thresholds {
    const double* values;
    const std::int64_t* offsets;
    const std::int32_t* n_value_bins;
};

// What one row adds to a histogram besides a count of 1, and the layout of a histogram cell:
//
//     general Hessian:    count | g0 h0 | g1 h1 | ...     n_words = 2 * n_outputs
//     constant Hessian:   count | g0 | g1 | ...           n_words = n_outputs
//
// fixed_point[row * n_words + word] is int32, cells[bin * (1 + n_words) + word] is int64. Cells are
// interleaved so that one row touches one cache line per feature.
struct Words {
    int n_outputs;
    bool constant_hessian;

    int count() const { return constant_hessian ? n_outputs : 2 * n_outputs; }
    int per_cell() const { return 1 + count(); }
    int gradient(int output) const { return constant_hessian ? output : 2 * output; }
    int hessian(int output) const { return 2 * output + 1; }

    // What every row adds to the Hessian where it is constant: round_hessian(1), for scale <= 30.
    static std::int64_t hessian_unit(std::int64_t scale) {
        return scale > 0 ? std::int64_t{1} << scale : 1;
    }
};

// NODE_DTYPE of core/backend.py.
struct NodeRecord {
    std::int64_t begin;
    std::int64_t n_rows;
    std::int64_t count;
    std::int32_t node;
    std::int32_t slot;
    std::int32_t sibling_slot;
    bool build;
};
static_assert(sizeof(NodeRecord) == 40 && offsetof(NodeRecord, build) == 36, "as NODE_DTYPE");

// SPLIT_DTYPE of core/splits.py.
struct SplitRecord {
    double gain;
    std::int64_t left_count;
    std::int64_t right_count;
    std::int32_t feature;
    std::int32_t split_bin;
    bool found;
    bool missing_left;
};
static_assert(sizeof(SplitRecord) == 40 && offsetof(SplitRecord, missing_left) == 33,
              "as SPLIT_DTYPE");

// Flags of tree nodes: NodeFlag of core/tree.py.
constexpr std::uint8_t kLeaf = 1;
constexpr std::uint8_t kMissingLeft = 2;

// The arrays of core.tree.Tree that a kernel needs. Children of a split are left and left + 1.
struct TreeView {
    const std::int32_t* feature;
    const std::int32_t* split_bin;  // null in a forest: raw values are compared
    const double* threshold;        // null where bins are compared
    const std::int32_t* left;
    const std::uint8_t* flags;
    const float* value;  // (n_nodes, n_outputs)
    std::int64_t n_nodes;
    std::int64_t n_outputs;

    bool is_leaf(std::int64_t node) const { return (flags[node] & kLeaf) != 0; }
    bool missing_left(std::int64_t node) const { return (flags[node] & kMissingLeft) != 0; }
};

// Trees laid end to end; nodes of tree t are offsets[t]..offsets[t + 1]-1.
struct ForestView {
    TreeView nodes;
    const std::int64_t* offsets;
    std::int64_t n_trees;

    TreeView tree(std::int64_t index) const {
        TreeView view = nodes;
        const std::int64_t first = offsets[index];
        view.feature += first;
        view.threshold += first;
        view.left += first;
        view.flags += first;
        view.value += first * nodes.n_outputs;
        view.n_nodes = offsets[index + 1] - first;
        return view;
    }
};

}  // namespace torchgbdt
