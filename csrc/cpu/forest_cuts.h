// The thresholds of a forest as cuts of its features, so that nodes compare codes of one byte.
#pragma once

#include "cpu/code_test.h"
#include "cpu/views.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace torchgbdt {

// A column is a feature that some node splits on; its code of x is the number of its cuts below x.
// For values that are not missing, at a node,
//
//     x > threshold   exactly where   code of x > rank of the threshold.
struct ForestCuts {
    std::vector<std::int64_t> features;  // of each column; ascending
    std::vector<std::int64_t> offsets;   // cuts of column c are cuts[offsets[c]..offsets[c + 1]-1]
    std::vector<double> cuts;            // ascending within a column, at most 254, none is +inf
    std::vector<std::int32_t> columns;   // of each node of the forest; 0 for leaves
    std::vector<std::uint8_t> ranks;     // of each node's threshold among its column's cuts

    std::int64_t n_columns() const { return static_cast<std::int64_t>(features.size()); }
};

// None where a feature has more than 254 thresholds, which no forest has that was trained on one
// data set. Trees must have been checked (check_tree).
std::optional<ForestCuts> collect_cuts(const ForestView& forest, std::int64_t n_features);

}  // namespace torchgbdt
