// Adds a finished tree to the predictions of the rows that were routed through it.
#include "cpu/check_tree.h"
#include "cpu/checks.h"
#include "cpu/code_test.h"
#include "cpu/kernels.h"
#include "cpu/leaf_values.h"
#include "cpu/own_stretches.h"

#include <algorithm>
#include <array>
#include <vector>

namespace torchgbdt {
namespace {

constexpr std::int64_t kFoundRows = 256;  // whose leaves are found together
using Leaves = std::array<std::int32_t, kFoundRows>;

// Where the rows of a node lie in row_order.
struct Place {
    std::int64_t begin = 0;
    std::int64_t n_rows = 0;
    std::int32_t node = 0;
    bool is_end = false;  // rows lie here now: at a leaf, or at a split they were not routed by

    std::int64_t end() const { return begin + n_rows; }
};

// The nodes where rows lie now, in the order of their places; none if rows were routed by other
// splits than this tree's.
std::vector<Place> find_ends(const TreeView& tree, const RoutedNodes& routed,
                             std::int64_t n_ordered) {
    std::vector<Place> places(static_cast<std::size_t>(tree.n_nodes));
    places[0] = {0, n_ordered, 0, true};
    for (std::int64_t i = 0; i < routed.n_nodes; ++i) {
        const NodeRecord& from = routed.nodes[i];
        const SplitRecord& split = routed.splits[i];
        if (from.node < 0 || from.node >= tree.n_nodes || tree.is_leaf(from.node) ||
            tree.feature[from.node] != split.feature ||
            tree.split_bin[from.node] != split.split_bin ||
            tree.missing_left(from.node) != split.missing_left) {
            return {};
        }
        Place& place = places[static_cast<std::size_t>(from.node)];
        const std::int64_t n_left = routed.left_rows[i];
        if (!place.is_end || place.begin != from.begin || place.n_rows != from.n_rows ||
            n_left < 0 || n_left > from.n_rows) {
            return {};
        }
        place.is_end = false;
        const std::int32_t left = tree.left[from.node];
        places[static_cast<std::size_t>(left)] = {from.begin, n_left, left, true};
        places[static_cast<std::size_t>(left) + 1] = {from.begin + n_left, from.n_rows - n_left,
                                                      left + 1, true};
    }
    const auto holds_none = [](const Place& place) { return !place.is_end || place.n_rows == 0; };
    places.erase(std::remove_if(places.begin(), places.end(), holds_none), places.end());
    std::sort(places.begin(), places.end(),
              [](const Place& a, const Place& b) { return a.begin < b.begin; });
    return places;
}

struct AskedTree {
    const BinColumns& columns;
    const std::int32_t* n_value_bins;
    const TreeView& tree;

    // The children of a node for some rows at it.
    void ask(std::int32_t node, const RowId* rows, std::int64_t count, Leaves& children) const {
        const std::int32_t feature = tree.feature[node], left = tree.left[node];
        const CodeTest test(0, tree.split_bin[node], n_value_bins[feature],
                            tree.missing_left(node));
        const std::uint8_t* column = columns.codes + feature * columns.n_rows;
        for (std::int64_t i = 0; i < count; ++i) {
            children[i] = left + (test.goes_right(column[rows[i]]) ? 1 : 0);
        }
    }

    // The leaves of some rows at a node.
    void find_leaves(std::int32_t node, const RowId* rows, std::int64_t count,
                     Leaves& leaves) const {
        if (tree.is_leaf(node)) {
            std::fill_n(leaves.begin(), count, node);
            return;
        }
        ask(node, rows, count, leaves);
        if (tree.is_leaf(tree.left[node]) && tree.is_leaf(tree.left[node] + 1)) {
            return;
        }
        Leaves below;
        for (std::int64_t i = 0; i < count; ++i) {
            while (!tree.is_leaf(leaves[i])) {
                ask(leaves[i], rows + i, 1, below);
                leaves[i] = below[0];
            }
        }
    }
};

// Adds each row's leaf; the rows lie anywhere.
void add_leaves(const TreeView& tree, const Leaves& leaves, const RowId* rows, std::int64_t count,
                std::int64_t output, std::int64_t n_columns, float* predictions) {
    if (tree.n_outputs > 1) {
        for (std::int64_t i = 0; i < count; ++i) {
            add_leaf_values(tree, &leaves[i], 1, output, n_columns,
                            predictions + rows[i] * n_columns);
        }
        return;
    }
    const float* values = tree.value;
    for (std::int64_t i = 0; i < count; ++i) {
        float& sum = predictions[rows[i] * n_columns + output];
        sum = add_leaf_value(sum, values[leaves[i]]);
    }
}

}  // namespace

// Layout: columns (n_features, n_rows); predictions (n_rows, n_columns); row_order (n_ordered,).
// Grid:   one task per kTaskRows places of row_order; in it, blocks of rows at one node.
// Writes: each task the predictions of its rows.
bool update_routed(const BinColumns& columns, const std::int32_t* n_value_bins,
                   const TreeView& tree, const RoutedNodes& routed, const RowId* row_order,
                   std::int64_t n_ordered, std::int64_t output, std::int64_t n_columns,
                   float* predictions, int n_threads) {
    check_tree(tree, columns.n_features);
    check_split_bins(tree);
    const std::vector<Place> ends = find_ends(tree, routed, n_ordered);
    if (ends.empty()) {
        return false;
    }
    const AskedTree asked{columns, n_value_bins, tree};
    const Blocks tasks = row_tasks(n_ordered);
    n_threads = threads_worth(n_ordered, kTaskRows, n_threads);
    parallel_for_stretches(tasks.count(), n_threads, [&](std::int64_t task, int) {
        std::int64_t begin = tasks.begin(task);
        check_row_order(row_order + begin, tasks.end(task) - begin, columns.n_rows);
        auto place = std::upper_bound(
            ends.begin(), ends.end(), begin,
            [](std::int64_t at, const Place& candidate) { return at < candidate.end(); });
        Leaves leaves;
        while (begin < tasks.end(task)) {
            const std::int64_t end = std::min({begin + kFoundRows, place->end(), tasks.end(task)});
            const RowId* rows = row_order + begin;
            asked.find_leaves(place->node, rows, end - begin, leaves);
            add_leaves(tree, leaves, rows, end - begin, output, n_columns, predictions);
            begin = end;
            place += end == place->end() ? 1 : 0;
        }
    });
    return true;
}

}  // namespace torchgbdt
