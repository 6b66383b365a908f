// Adds a finished tree to the predictions of a data set that is binned.
#include "cpu/check_tree.h"
#include "cpu/coded_tree.h"
#include "cpu/kernels.h"
#include "cpu/leaf_values.h"
#include "cpu/own_stretches.h"

#include <algorithm>
#include <vector>

namespace torchgbdt {
namespace {

// There are more columns than a processor foresees the reading of: the next block is asked for.
constexpr std::int64_t kLineBytes = 64;

// The features that a tree splits on are its columns; tests: of its nodes.
struct SplitFeatures {
    std::vector<std::int64_t> features;
    std::vector<CodeTest> tests;
};

SplitFeatures find_split_features(const TreeView& tree, std::int64_t n_features,
                                  const std::int32_t* n_value_bins) {
    SplitFeatures found;
    std::vector<std::int32_t> column_of(static_cast<std::size_t>(n_features), -1);
    for (std::int64_t node = 0; node < tree.n_nodes; ++node) {
        if (tree.is_leaf(node)) {
            found.tests.push_back(CodeTest::always_left());
            continue;
        }
        const std::int32_t feature = tree.feature[node];
        std::int32_t& column = column_of[static_cast<std::size_t>(feature)];
        if (column < 0) {
            column = static_cast<std::int32_t>(found.features.size());
            found.features.push_back(feature);
        }
        found.tests.emplace_back(column, tree.split_bin[node], n_value_bins[feature],
                                 tree.missing_left(node));
    }
    return found;
}

// One row, step by step: what a tree on more features than a step can name is left with.
std::int32_t walk_row(const BinColumns& columns, const TreeView& tree, const SplitFeatures& splits,
                      std::int64_t row) {
    std::int32_t node = 0;
    while (!tree.is_leaf(node)) {
        const std::uint8_t code = columns.codes[tree.feature[node] * columns.n_rows + row];
        const CodeTest& test = splits.tests[static_cast<std::size_t>(node)];
        node = tree.left[node] + (test.goes_right(code) ? 1 : 0);
    }
    return node;
}

}  // namespace

// Layout: columns (n_features, n_rows); predictions (n_rows, n_columns).
// Grid:   one task per kTaskRows rows; in it, blocks of rows that find their leaves together.
// Writes: each task the predictions of its rows.
void update_predictions(const BinColumns& columns, const std::int32_t* n_value_bins,
                        const TreeView& tree, std::int64_t output, std::int64_t n_columns,
                        float* predictions, int n_threads) {
    const int depth = check_tree(tree, columns.n_features);
    check_split_bins(tree);
    const SplitFeatures splits = find_split_features(tree, columns.n_features, n_value_bins);
    const auto n_split_features = static_cast<std::int64_t>(splits.features.size());
    const Blocks tasks = row_tasks(columns.n_rows);
    if (n_split_features > kMaxStepColumns) {
        parallel_for_stretches(tasks.count(), n_threads, [&](std::int64_t task, int) {
            for (std::int64_t row = tasks.begin(task); row < tasks.end(task); ++row) {
                const std::int32_t leaf = walk_row(columns, tree, splits, row);
                add_leaf_values(tree, &leaf, 1, output, n_columns, predictions + row * n_columns);
            }
        });
        return;
    }
    const CodedTree coded(tree, depth, splits.tests);
    std::vector<std::vector<float>> values;  // of each output, by leaf
    for (std::int64_t i = 0; i < tree.n_outputs; ++i) {
        values.push_back(coded.leaf_values(tree, i));
    }
    std::vector<CodedRows> workers(worker_count(tasks.count(), n_threads));
    parallel_for_stretches(tasks.count(), n_threads, [&](std::int64_t task, int worker) {
        CodedRows& rows = workers[static_cast<std::size_t>(worker)];
        rows.resize(n_split_features, coded.n_slots());
        for (std::int64_t begin = tasks.begin(task); begin < tasks.end(task); begin += kCodedRows) {
            const std::int64_t count = std::min(kCodedRows, tasks.end(task) - begin);
            for (std::int64_t column = 0; column < n_split_features; ++column) {
                const std::int64_t feature = splits.features[static_cast<std::size_t>(column)];
                const std::uint8_t* codes = columns.codes + feature * columns.n_rows + begin;
                std::copy_n(codes, count, rows.codes.data() + column * kCodedRows);
                for (std::int64_t line = 0; line < kCodedRows; line += kLineBytes) {
                    __builtin_prefetch(codes + kCodedRows + line);
                }
            }
            coded.visit_leaves(count, rows, [&](const auto* leaves) {
                if (n_columns == 1) {
                    add_to_column<kCodedRows>(values[0].data(), leaves, count, predictions + begin);
                    return;
                }
                for (std::int64_t i = 0; i < tree.n_outputs; ++i) {
                    const std::int64_t column = tree.n_outputs == 1 ? output : i;
                    add_to_strided(values[static_cast<std::size_t>(i)].data(), leaves, count,
                                   n_columns, predictions + begin * n_columns + column);
                }
            });
        }
    });
}

}  // namespace torchgbdt
