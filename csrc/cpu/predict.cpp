// Prediction on raw values: x <= threshold goes left, NaN where the split sends missing rows.
//
// Values are compared as float64, to which every float32, float16 and integer up to 2^53 converts
// exactly; so the same numbers in another type take the same way.
#include "cpu/kernels.h"
#include "cpu/leaf_values.h"
#include "cpu/thread_pool.h"
#include "cpu/traversal.h"

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

namespace torchgbdt {
namespace {

constexpr std::int64_t kMaxBlockRows = 128;
constexpr std::int64_t kBlockBytes = 256 << 10;  // the block's values stay in L2 for all trees

// Calls visit(tree, rows' first index, rows, leaves) for each block of rows and each tree in order.
using VisitLeaves = std::function<void(std::int64_t tree, std::int64_t begin, std::int64_t count,
                                       const std::int32_t* leaves)>;

void for_each_block(const ForestView& forest, const MatrixView& matrix, int n_threads,
                    const VisitLeaves& visit) {
    const std::int64_t n_features = matrix.n_features;
    std::vector<PackedTree<ValueStep>> trees;
    trees.reserve(static_cast<std::size_t>(forest.n_trees));
    for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
        trees.push_back(pack_for_values(forest.tree(tree), n_features));
    }
    const std::int64_t fitting = kBlockBytes / (std::max<std::int64_t>(n_features, 1) * 8);
    const Blocks blocks{matrix.n_rows, std::clamp<std::int64_t>(fitting, 1, kMaxBlockRows)};
    std::vector<std::vector<double>> values(worker_count(blocks.count(), n_threads));
    parallel_for(blocks.count(), n_threads, [&](std::int64_t block, int worker) {
        const std::int64_t begin = blocks.begin(block);
        const std::int64_t count = blocks.end(block) - begin;
        std::vector<double>& rows = values[worker];
        rows.resize(static_cast<std::size_t>(blocks.size * n_features));
        for (std::int64_t feature = 0; feature < n_features; ++feature) {
            load_feature(matrix, feature, nullptr, begin, count, rows.data() + feature, n_features);
        }
        std::array<std::int32_t, kMaxBlockRows> leaves;
        for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
            find_leaves(trees[static_cast<std::size_t>(tree)], rows.data(), n_features, count,
                        leaves.data());
            visit(tree, begin, count, leaves.data());
        }
    });
}

}  // namespace

// Layout: X as it lies; sums (n_rows, n_columns).
// Grid:   one task per block of at most kMaxBlockRows rows; in it, tree by tree.
// Writes: each task the sums of its rows.
void predict(const ForestView& forest, const MatrixView& matrix, std::int64_t n_columns,
             float* sums, int n_threads) {
    for_each_block(
        forest, matrix, n_threads,
        [&](std::int64_t tree, std::int64_t begin, std::int64_t count, const std::int32_t* leaves) {
            add_leaf_values(forest.tree(tree), leaves, count, tree % n_columns, n_columns,
                            sums + begin * n_columns);
        });
}

// Layout: X as it lies; leaves (n_rows, n_trees).
// Grid:   one task per block of at most kMaxBlockRows rows; in it, tree by tree.
// Writes: each task the leaves of its rows.
void predict_leaves(const ForestView& forest, const MatrixView& matrix, std::int32_t* leaves,
                    int n_threads) {
    for_each_block(forest, matrix, n_threads,
                   [&](std::int64_t tree, std::int64_t begin, std::int64_t count,
                       const std::int32_t* of_block) {
                       for (std::int64_t i = 0; i < count; ++i) {
                           leaves[(begin + i) * forest.n_trees + tree] = of_block[i];
                       }
                   });
}

}  // namespace torchgbdt
