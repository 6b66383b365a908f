// Prediction on raw values: x <= threshold goes left, NaN where the split sends missing rows.
//
//     many rows:  X --codes of the forest's own cuts-->  CodedForest  >  leaves  -->  sums
//     few rows:   X --as float64---------------------->  PackedTree   >
//
// Both compare exactly what float64 holds: every float32, float16 and integer up to 2^53 does so,
// and the same numbers in another type take the same way.
#include "cpu/coded_forest.h"
#include "cpu/kernels.h"
#include "cpu/leaf_values.h"
#include "cpu/thread_pool.h"
#include "cpu/traversal.h"

#include <algorithm>
#include <array>
#include <vector>

namespace torchgbdt {
namespace {

constexpr std::int64_t kBlockRows = kCodedRows;
constexpr std::int64_t kBlockBytes = 256 << 10;  // a block as float64 stays in L2 for all trees

// Sorting a forest's thresholds costs about as much per node as a step down a tree of raw values
// costs for so many rows more than one of codes.
constexpr std::int64_t kRowsPerNode = 4;

bool is_worth_coding(const ForestView& forest, std::int64_t n_rows) {
    return n_rows * forest.n_trees >= kRowsPerNode * forest.nodes.n_nodes;
}

// Calls visit(begin, count, tree, leaves) for each block of rows, of at most kBlockRows, and each
// tree in order; leaves are node ids.
template <typename Visit>
void walk_values(const ForestView& forest, const MatrixView& matrix, int n_threads,
                 const Visit& visit) {
    const std::int64_t n_features = matrix.n_features;
    std::vector<PackedTree<ValueStep>> trees;
    trees.reserve(static_cast<std::size_t>(forest.n_trees));
    for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
        trees.push_back(pack_for_values(forest.tree(tree), n_features));
    }
    const std::int64_t fitting = kBlockBytes / (std::max<std::int64_t>(n_features, 1) * 8);
    const Blocks blocks{matrix.n_rows, std::clamp<std::int64_t>(fitting, 1, kBlockRows / 2)};
    std::vector<std::vector<double>> values(worker_count(blocks.count(), n_threads));
    parallel_for(blocks.count(), n_threads, [&](std::int64_t block, int worker) {
        const std::int64_t begin = blocks.begin(block);
        const std::int64_t count = blocks.end(block) - begin;
        std::vector<double>& rows = values[static_cast<std::size_t>(worker)];
        rows.resize(static_cast<std::size_t>(blocks.size * n_features));
        for (std::int64_t feature = 0; feature < n_features; ++feature) {
            load_feature(matrix, feature, nullptr, begin, count, rows.data() + feature, n_features);
        }
        std::array<std::int32_t, kBlockRows> leaves;
        for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
            find_leaves(trees[static_cast<std::size_t>(tree)], rows.data(), n_features, count,
                        leaves.data());
            visit(begin, count, tree, leaves.data());
        }
    });
}

// A block's sums lie column by column meanwhile, so that additions vectorize.
void predict_coded(const ForestView& forest, const CodedForest& coded, std::int64_t n_rows,
                   std::int64_t n_columns, float* sums, int n_threads) {
    struct Worker {
        CodedRows rows;
        std::vector<float> sums;
    };
    const std::int64_t n_outputs = forest.nodes.n_outputs;
    std::vector<std::vector<float>> values;  // of each tree and output, by leaf
    for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
        for (std::int64_t output = 0; output < n_outputs; ++output) {
            values.push_back(coded.tree(tree).leaf_values(forest.tree(tree), output));
        }
    }
    const Blocks blocks{n_rows, kBlockRows};
    std::vector<Worker> workers(worker_count(blocks.count(), n_threads));
    parallel_for(blocks.count(), n_threads, [&](std::int64_t block, int index) {
        Worker& worker = workers[static_cast<std::size_t>(index)];
        const std::int64_t begin = blocks.begin(block);
        const std::int64_t count = blocks.end(block) - begin;
        float* of_block = sums + begin * n_columns;
        worker.sums.resize(static_cast<std::size_t>(n_columns * kBlockRows));
        const auto column = [&](std::int64_t c) { return worker.sums.data() + c * kBlockRows; };
        for (std::int64_t c = 0; c < n_columns; ++c) {
            for (std::int64_t i = 0; i < count; ++i) {
                column(c)[i] = of_block[i * n_columns + c];
            }
        }
        coded.load(begin, count, worker.rows);
        for (std::int64_t tree = 0; tree < forest.n_trees; ++tree) {
            coded.tree(tree).visit_leaves(count, worker.rows, [&](const auto* leaves) {
                for (std::int64_t output = 0; output < n_outputs; ++output) {
                    const std::int64_t c = n_outputs == 1 ? tree % n_columns : output;
                    const auto table = static_cast<std::size_t>(tree * n_outputs + output);
                    add_to_column<kBlockRows>(values[table].data(), leaves, count, column(c));
                }
            });
        }
        for (std::int64_t c = 0; c < n_columns; ++c) {
            for (std::int64_t i = 0; i < count; ++i) {
                of_block[i * n_columns + c] = column(c)[i];
            }
        }
    });
}

void leaves_of_coded(const CodedForest& coded, std::int64_t n_rows, std::int64_t n_trees,
                     std::int32_t* leaves, int n_threads) {
    const Blocks blocks{n_rows, kBlockRows};
    std::vector<CodedRows> workers(worker_count(blocks.count(), n_threads));
    parallel_for(blocks.count(), n_threads, [&](std::int64_t block, int worker) {
        CodedRows& rows = workers[static_cast<std::size_t>(worker)];
        const std::int64_t begin = blocks.begin(block);
        const std::int64_t count = blocks.end(block) - begin;
        coded.load(begin, count, rows);
        for (std::int64_t tree = 0; tree < n_trees; ++tree) {
            const std::int32_t* nodes = coded.tree(tree).leaf_nodes();
            coded.tree(tree).visit_leaves(count, rows, [&](const auto* of_block) {
                for (std::int64_t i = 0; i < count; ++i) {
                    const std::int32_t leaf = of_block[i];
                    leaves[(begin + i) * n_trees + tree] = nodes == nullptr ? leaf : nodes[leaf];
                }
            });
        }
    });
}

}  // namespace

// Layout: X as it lies; sums (n_rows, n_columns).
// Grid:   one task per block of at most kBlockRows rows; in it, tree by tree.
// Writes: each task the sums of its rows.
void predict(const ForestView& forest, const MatrixView& matrix, std::int64_t n_columns,
             float* sums, int n_threads) {
    if (is_worth_coding(forest, matrix.n_rows)) {
        if (const auto coded = CodedForest::make(forest, matrix)) {
            return predict_coded(forest, *coded, matrix.n_rows, n_columns, sums, n_threads);
        }
    }
    walk_values(
        forest, matrix, n_threads,
        [&](std::int64_t begin, std::int64_t count, std::int64_t tree, const std::int32_t* leaves) {
            add_leaf_values(forest.tree(tree), leaves, count, tree % n_columns, n_columns,
                            sums + begin * n_columns);
        });
}

// Layout: X as it lies; leaves (n_rows, n_trees).
// Grid:   one task per block of at most kBlockRows rows; in it, tree by tree.
// Writes: each task the leaves of its rows.
void predict_leaves(const ForestView& forest, const MatrixView& matrix, std::int32_t* leaves,
                    int n_threads) {
    if (is_worth_coding(forest, matrix.n_rows)) {
        if (const auto coded = CodedForest::make(forest, matrix)) {
            return leaves_of_coded(*coded, matrix.n_rows, forest.n_trees, leaves, n_threads);
        }
    }
    walk_values(forest, matrix, n_threads,
                [&](std::int64_t begin, std::int64_t count, std::int64_t tree,
                    const std::int32_t* of_block) {
                    for (std::int64_t i = 0; i < count; ++i) {
                        leaves[(begin + i) * forest.n_trees + tree] = of_block[i];
                    }
                });
}

}  // namespace torchgbdt
