#include "cpu/checks.h"

#include <stdexcept>
#include <vector>

namespace torchgbdt {
namespace {

constexpr std::int32_t kMaxValueBins = 255;
constexpr std::int64_t kMinScale = -126;
constexpr std::int64_t kMaxScale = 127;
constexpr std::int64_t kMaxUnitScale = 30;

bool is_inside(std::int64_t index, std::int64_t size) {
    return index >= 0 && index < size;
}

bool is_scale(std::int64_t scale) {
    return scale >= kMinScale && scale <= kMaxScale;
}

}  // namespace

void require(bool condition, const char* message) {
    if (!condition) {
        throw std::invalid_argument(message);
    }
}

void check_thread_count(int n_threads) {
    require(n_threads >= 1, "n_threads must be at least 1");
}

void check_rows(const std::int64_t* rows, std::int64_t count, std::int64_t n_rows) {
    bool inside = true;
    for (std::int64_t i = 0; i < count; ++i) {
        inside &= is_inside(rows[i], n_rows);
    }
    require(inside, "kept_rows holds a row that X does not have");
}

void check_row_order(const RowId* rows, std::int64_t count, std::int64_t n_rows) {
    const auto last = static_cast<RowId>(n_rows - 1);
    RowId beyond = n_rows == 0 && count > 0 ? 1 : 0;
    for (std::int64_t i = 0; i < count; ++i) {
        beyond |= rows[i] > last ? 1 : 0;  // in 32 bits: it vectorizes
    }
    require(beyond == 0, "row_order holds a row that the bins do not have");
}

void check_value_bins(const std::int32_t* n_value_bins, std::int64_t n_features) {
    for (std::int64_t feature = 0; feature < n_features; ++feature) {
        require(n_value_bins[feature] >= 0 && n_value_bins[feature] <= kMaxValueBins,
                "n_value_bins exceeds 0..255");
    }
}

void check_thresholds(const Thresholds& thresholds, std::int64_t n_features,
                      std::int64_t n_values) {
    require(thresholds.offsets[0] >= 0, "threshold offsets begin below 0");
    check_value_bins(thresholds.n_value_bins, n_features);
    for (std::int64_t feature = 0; feature < n_features; ++feature) {
        const std::int64_t* offsets = thresholds.offsets + feature;
        require(offsets[1] >= offsets[0], "threshold offsets descend");
        const std::int64_t n_cuts = offsets[1] - offsets[0];
        const std::int32_t n_value_bins = thresholds.n_value_bins[feature];
        require(n_cuts == 0 || n_cuts < n_value_bins, "a feature has more thresholds than bins");
    }
    require(thresholds.offsets[n_features] <= n_values, "threshold offsets exceed the thresholds");
}

void check_feature_bins(const FeatureBins& features) {
    require(features.bin_offsets[0] == 0, "bin_offsets must begin at 0");
    check_value_bins(features.n_value_bins, features.n_features);
    for (std::int64_t feature = 0; feature < features.n_features; ++feature) {
        const std::int32_t n_value_bins = features.n_value_bins[feature];
        // Added up, not subtracted: the next offset may be any number.
        require(
            features.bin_offsets[feature + 1] == features.bin_offsets[feature] + n_value_bins + 1,
            "bin_offsets do not match n_value_bins");
    }
}

void check_nodes(const NodeRecord* nodes, std::int64_t n_nodes, std::int64_t n_ordered_rows) {
    for (const NodeRecord* node = nodes; node != nodes + n_nodes; ++node) {
        require(node->begin >= 0 && node->n_rows >= 0 && node->begin <= n_ordered_rows &&
                    node->n_rows <= n_ordered_rows - node->begin,
                "a node's rows lie outside the row order");
    }
}

void check_slots(const NodeRecord* nodes, std::int64_t n_nodes, std::int64_t n_slots) {
    std::vector<bool> taken(static_cast<std::size_t>(n_slots));
    for (const NodeRecord* node = nodes; node != nodes + n_nodes; ++node) {
        require(is_inside(node->slot, n_slots), "a node's slot does not exist");
        require(!taken[static_cast<std::size_t>(node->slot)], "two nodes have one slot");
        taken[static_cast<std::size_t>(node->slot)] = true;
        require(node->build || is_inside(node->sibling_slot, n_slots),
                "a node is to be subtracted, but its sibling has no slot");
    }
}

void check_splits(const SplitRecord* splits, std::int64_t n_splits, std::int64_t n_features) {
    for (const SplitRecord* split = splits; split != splits + n_splits; ++split) {
        require(split->found, "a split was not found");
        require(split->split_bin >= 0, "a split's bin is negative");
        require(is_inside(split->feature, n_features), "a split's feature does not exist");
    }
}

void check_scales(const std::int64_t* scales, const Words& words) {
    for (int output = 0; output < words.n_outputs; ++output) {
        require(is_scale(scales[2 * output]) && is_scale(scales[2 * output + 1]),
                "a scale exceeds -126..127");
        require(!words.constant_hessian || scales[2 * output + 1] <= kMaxUnitScale,
                "the scale of a constant Hessian exceeds 30");
    }
}

void check_offsets(const std::int64_t* offsets, std::int64_t n_trees, std::int64_t n_nodes) {
    require(offsets[0] == 0 && offsets[n_trees] == n_nodes, "tree offsets do not cover the nodes");
    for (std::int64_t tree = 0; tree < n_trees; ++tree) {
        require(offsets[tree] < offsets[tree + 1], "tree offsets do not ascend");
    }
}

}  // namespace torchgbdt
