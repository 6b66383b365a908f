// Checks of what becomes an address; each throws std::invalid_argument that says what is wrong.
//
// The bindings make all of them but check_row_order, which kernels make as they read row ids. With
// the checks of trees (cpu/check_tree.h) and room for any bin code (packed_sums.h) this
// holds: whatever arrays Python passes, no kernel leaves them, provided that the arrays of a call
// do not overlap and nobody else writes to them meanwhile.
#pragma once

#include "cpu/views.h"

#include <cstdint>

namespace torchgbdt {

void require(bool condition, const char* message);

void check_thread_count(int n_threads);

// Every row lies in 0..n_rows-1.
void check_rows(const std::int64_t* rows, std::int64_t count, std::int64_t n_rows);
void check_row_order(const RowId* rows, std::int64_t count, std::int64_t n_rows);

// Each feature has 0..255 value bins.
void check_value_bins(const std::int32_t* n_value_bins, std::int64_t n_features);

// Each feature has at most n_value_bins - 1 thresholds, and they lie among the n_values given.
void check_thresholds(const Thresholds& thresholds, std::int64_t n_features, std::int64_t n_values);

// Each feature has 0..255 value bins, and bin_offsets gives it one cell more.
void check_feature_bins(const FeatureBins& features);

// The rows of each node lie in row order, its slots in 0..n_slots-1; no two nodes have one slot.
void check_nodes(const NodeRecord* nodes, std::int64_t n_nodes, std::int64_t n_ordered_rows);
void check_slots(const NodeRecord* nodes, std::int64_t n_nodes, std::int64_t n_slots);

// Every split was found, at a bin of one of the features.
void check_splits(const SplitRecord* splits, std::int64_t n_splits, std::int64_t n_features);

// Powers of two that are normal float32 numbers; a constant Hessian's unit fits into int32.
void check_scales(const std::int64_t* scales, const Words& words);

// Trees lie end to end and cover the nodes. check_tree looks at each.
void check_offsets(const std::int64_t* offsets, std::int64_t n_trees, std::int64_t n_nodes);

}  // namespace torchgbdt
