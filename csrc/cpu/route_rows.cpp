// Stable partition of each split node's rows into left and right.
#include "cpu/checks.h"
#include "cpu/code_test.h"
#include "cpu/kernels.h"
#include "cpu/move_rows.h"
#include "cpu/own_stretches.h"
#include "cpu/vectorize.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace torchgbdt {
namespace {

constexpr std::int64_t kNoNode = -1;
constexpr std::int64_t kWorthwhileRows = 4 * kTaskRows;  // to wake a thread for
constexpr std::int64_t kGatheredRows = 256;  // together: their codes may lie side by side

// Rows of a node, or rows between nodes, which are copied.
struct Block {
    std::int64_t node;   // or kNoNode
    std::int64_t begin;  // in row_order
    std::int64_t n_rows;
    std::int64_t n_left = 0;
    std::int64_t left_begin = 0;   // where its left rows go in routed
    std::int64_t right_begin = 0;  // and its right rows
};

void cut_into_blocks(std::int64_t node, std::int64_t begin, std::int64_t n_rows,
                     std::vector<Block>& blocks) {
    const Blocks cuts = row_tasks(n_rows);
    for (std::int64_t i = 0; i < cuts.count(); ++i) {
        Block block{};
        block.node = node;
        block.begin = begin + cuts.begin(i);
        block.n_rows = cuts.end(i) - cuts.begin(i);
        blocks.push_back(block);
    }
}

// Blocks of all nodes, node by node, and then of what lies between them. Throws if nodes share
// rows.
std::vector<Block> cut_row_order(const NodeRecord* nodes, std::int64_t n_nodes,
                                 std::int64_t n_ordered) {
    std::vector<Block> blocks;
    std::vector<std::int64_t> by_place(static_cast<std::size_t>(n_nodes));
    std::iota(by_place.begin(), by_place.end(), 0);
    std::stable_sort(by_place.begin(), by_place.end(), [&](std::int64_t a, std::int64_t b) {
        return nodes[a].begin < nodes[b].begin;
    });
    for (std::int64_t node = 0; node < n_nodes; ++node) {
        cut_into_blocks(node, nodes[node].begin, nodes[node].n_rows, blocks);
    }
    std::int64_t end = 0;
    for (const std::int64_t node : by_place) {
        require(nodes[node].begin >= end, "nodes share rows");
        cut_into_blocks(kNoNode, end, nodes[node].begin - end, blocks);
        end = nodes[node].begin + nodes[node].n_rows;
    }
    cut_into_blocks(kNoNode, end, n_ordered - end, blocks);
    return blocks;
}

// Whether rows[i] = rows[0] + i. Throws if a column of so many rows does not have them all.
TORCHGBDT_VECTORIZE
bool exist_side_by_side(const RowId* rows, std::int64_t n_rows, std::int64_t n_column) {
    const auto last = static_cast<RowId>(n_column - 1);
    const RowId first = rows[0];
    RowId beyond = 0, differences = 0;
    for (std::int64_t i = 0; i < n_rows; ++i) {
        const RowId row = rows[i];
        beyond |= row > last ? 1 : 0;
        differences |= (row - first) ^ static_cast<RowId>(i);
    }
    require(beyond == 0 && n_column > 0, "row_order holds a row that the bins do not have");
    return differences == 0;
}

// Makes sides of codes: 1 where a code goes right. Returns how many go left.
TORCHGBDT_VECTORIZE
std::int64_t find_sides(std::int64_t n_rows, CodeTest test, std::uint8_t* sides) {
    std::int32_t n_right = 0;
    for (std::int64_t i = 0; i < n_rows; ++i) {
        sides[i] = test.goes_right(sides[i]) ? 1 : 0;
        n_right += sides[i];
    }
    return n_rows - n_right;
}

// Copies the codes of some rows side by side.
void gather_codes(const std::uint8_t* column, std::int64_t n_column, const RowId* rows,
                  std::int64_t n_rows, std::uint8_t* codes) {
    if (exist_side_by_side(rows, n_rows, n_column)) {
        std::copy_n(column + rows[0], n_rows, codes);
        return;
    }
    for (std::int64_t i = 0; i < n_rows; ++i) {
        codes[i] = column[rows[i]];
    }
}

// Sums the blocks' counts: where each block's rows go, and how many rows of each node went left.
void place_blocks(const NodeRecord* nodes, std::int64_t n_nodes, std::vector<Block>& blocks,
                  std::int64_t* left_rows) {
    std::fill(left_rows, left_rows + n_nodes, 0);
    for (Block& block : blocks) {
        if (block.node != kNoNode) {
            block.left_begin = nodes[block.node].begin + left_rows[block.node];
            left_rows[block.node] += block.n_left;
        }
    }
    for (Block& block : blocks) {
        if (block.node != kNoNode) {
            const std::int64_t begin = nodes[block.node].begin;
            const std::int64_t right_before = block.begin - block.left_begin;
            block.right_begin = begin + left_rows[block.node] + right_before;
        }
    }
}

}  // namespace

// Layout: columns (n_features, n_rows); row_order, routed, sides (n_ordered,).
// Grid:   one task per kTaskRows rows: ask on which side they are; sum the counts; move them.
// Writes: each task first its own stretch of sides, then its two places in routed.
void route_rows(const std::uint8_t* columns, std::int64_t n_rows, const std::int32_t* n_value_bins,
                const NodeRecord* nodes, const SplitRecord* splits, std::int64_t n_nodes,
                const RowId* row_order, std::int64_t n_ordered, std::uint8_t* sides, RowId* routed,
                std::int64_t* left_rows, int n_threads) {
    std::vector<Block> blocks = cut_row_order(nodes, n_nodes, n_ordered);
    const auto n_blocks = static_cast<std::int64_t>(blocks.size());
    n_threads = threads_worth(n_ordered, kWorthwhileRows, n_threads);
    const auto is_whole_node = [&](const Block& block) {
        return block.n_rows == nodes[block.node].n_rows;
    };
    const auto move = [&](const Block& block) {
        move_rows(row_order + block.begin, sides + block.begin, block.n_rows,
                  routed + block.left_begin, routed + block.right_begin);
    };
    parallel_for_stretches(n_blocks, n_threads, [&](std::int64_t task, int) {
        Block& block = blocks[static_cast<std::size_t>(task)];
        const RowId* rows = row_order + block.begin;
        if (block.node == kNoNode) {
            std::copy_n(rows, block.n_rows, routed + block.begin);
            return;
        }
        const SplitRecord& split = splits[block.node];
        const CodeTest test(0, split.split_bin, n_value_bins[split.feature], split.missing_left);
        std::uint8_t* codes = sides + block.begin;
        for (std::int64_t i = 0; i < block.n_rows; i += kGatheredRows) {
            gather_codes(columns + split.feature * n_rows, n_rows, rows + i,
                         std::min(kGatheredRows, block.n_rows - i), codes + i);
        }
        block.n_left = find_sides(block.n_rows, test, codes);
        if (is_whole_node(block)) {  // nothing to wait for
            block.left_begin = block.begin;
            block.right_begin = block.begin + block.n_left;
            move(block);
        }
    });
    place_blocks(nodes, n_nodes, blocks, left_rows);
    parallel_for_stretches(n_blocks, n_threads, [&](std::int64_t task, int) {
        const Block& block = blocks[static_cast<std::size_t>(task)];
        if (block.node != kNoNode && !is_whole_node(block)) {
            move(block);
        }
    });
}

}  // namespace torchgbdt
