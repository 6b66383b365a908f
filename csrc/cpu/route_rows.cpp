// Stable partition of each split node's rows into left and right.
#include "cpu/bin_test.h"
#include "cpu/checks.h"
#include "cpu/kernels.h"
#include "cpu/thread_pool.h"
#include "cpu/vectorize.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <vector>

namespace torchgbdt {
namespace {

// sides[i] = 1 where code i goes right.
TORCHGBDT_VECTORIZE
void find_sides(const std::uint8_t* codes, std::int64_t n_rows, BinTest test, std::uint8_t* sides) {
    for (std::int64_t i = 0; i < n_rows; ++i) {
        sides[i] = test.goes_right(codes[i]) ? 1 : 0;
    }
}

// Writes the left rows of rows[0..n_rows-1] and then the right ones to `out`, both in their order;
// out may be rows itself. Returns the number of left rows. No branch depends on the data.
//
//     rows  5 2 8 1 9      out  5 8 9 | 2 1
//     left  y n y n y
std::int64_t partition_block(const std::uint8_t* column, const BinTest& test, const RowId* rows,
                             std::int64_t n_rows, RowId* out) {
    std::array<std::uint8_t, kTaskRows> codes{};
    for (std::int64_t i = 0; i < n_rows; ++i) {
        codes[static_cast<std::size_t>(i)] = column[rows[i]];
    }
    std::array<std::uint8_t, kTaskRows> sides;
    find_sides(codes.data(), n_rows, test, sides.data());
    std::array<RowId, kTaskRows> right;  // 16 KB of stack
    std::int64_t n_left = 0;
    for (std::int64_t i = 0; i < n_rows; ++i) {
        const RowId row = rows[i];
        right[static_cast<std::size_t>(i - n_left)] = row;
        out[n_left] = row;  // at or before i: what stands there has been read
        n_left += 1 - sides[static_cast<std::size_t>(i)];
    }
    std::copy_n(right.begin(), n_rows - n_left, out + n_left);
    return n_left;
}

// A block of a node's rows.
struct Block {
    std::int64_t node;
    std::int64_t begin;  // in row_order
    std::int64_t n_rows;
    std::int64_t n_left = 0;
    std::int64_t left_begin = 0;   // where its left rows end up in row_order
    std::int64_t right_begin = 0;  // and its right rows
};

std::vector<Block> cut_into_blocks(const NodeRecord* nodes, std::int64_t n_nodes) {
    std::vector<Block> blocks;
    for (std::int64_t node = 0; node < n_nodes; ++node) {
        const Blocks cuts = row_tasks(nodes[node].n_rows);
        for (std::int64_t i = 0; i < cuts.count(); ++i) {
            Block block{};
            block.node = node;
            block.begin = nodes[node].begin + cuts.begin(i);
            block.n_rows = cuts.end(i) - cuts.begin(i);
            blocks.push_back(block);
        }
    }
    return blocks;
}

std::int64_t count_rows(const NodeRecord* nodes, std::int64_t n_nodes) {
    return std::accumulate(
        nodes, nodes + n_nodes, std::int64_t{0},
        [](std::int64_t sum, const NodeRecord& node) { return sum + node.n_rows; });
}

// Sums the blocks' counts: where each block's rows go, and how many rows of each node went left.
void place_blocks(const NodeRecord* nodes, std::int64_t n_nodes, std::vector<Block>& blocks,
                  std::int64_t* left_rows) {
    std::fill(left_rows, left_rows + n_nodes, 0);
    for (Block& block : blocks) {
        block.left_begin = nodes[block.node].begin + left_rows[block.node];
        left_rows[block.node] += block.n_left;
    }
    for (Block& block : blocks) {
        const std::int64_t begin = nodes[block.node].begin;
        const std::int64_t left_before = block.left_begin - begin;
        const std::int64_t right_before = (block.begin - begin) - left_before;
        block.right_begin = begin + left_rows[block.node] + right_before;
    }
}

void copy_rows(const RowId* from, std::int64_t count, RowId* to) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(RowId));
}

}  // namespace

// Layout: columns (n_features, n_rows); row_order, scratch (n_sampled,).
// Grid:   one task per kTaskRows rows of a node: partition into scratch; sum the counts; copy back.
// Writes: each task first its own stretch of scratch, then its two places in row_order.
void route_rows(const std::uint8_t* columns, std::int64_t n_rows, const std::int32_t* n_value_bins,
                const NodeRecord* nodes, const SplitRecord* splits, std::int64_t n_nodes,
                RowId* row_order, RowId* scratch, std::int64_t* left_rows, int n_threads) {
    std::vector<Block> blocks = cut_into_blocks(nodes, n_nodes);
    const auto n_blocks = static_cast<std::int64_t>(blocks.size());
    n_threads = threads_worth(count_rows(nodes, n_nodes), kTaskRows, n_threads);
    const auto stays_in_place = [&](const Block& block) {
        return block.n_rows == nodes[block.node].n_rows;  // the node's only block
    };
    parallel_for(n_blocks, n_threads, [&](std::int64_t task, int) {
        Block& block = blocks[static_cast<std::size_t>(task)];
        const SplitRecord& split = splits[block.node];
        const std::uint8_t* column = columns + split.feature * n_rows;
        const BinTest test(split.split_bin, n_value_bins[split.feature], split.missing_left);
        RowId* rows = row_order + block.begin;
        check_row_order(rows, block.n_rows, n_rows);
        RowId* out = stays_in_place(block) ? rows : scratch + block.begin;
        block.n_left = partition_block(column, test, rows, block.n_rows, out);
    });
    place_blocks(nodes, n_nodes, blocks, left_rows);
    parallel_for(n_blocks, n_threads, [&](std::int64_t task, int) {
        const Block& block = blocks[static_cast<std::size_t>(task)];
        if (!stays_in_place(block)) {
            const RowId* rows = scratch + block.begin;
            copy_rows(rows, block.n_left, row_order + block.left_begin);
            copy_rows(rows + block.n_left, block.n_rows - block.n_left,
                      row_order + block.right_begin);
        }
    });
}

}  // namespace torchgbdt
