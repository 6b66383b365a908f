#include "cpu/forest_cuts.h"

#include "cpu/float_environment.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace torchgbdt {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Split {
    double threshold;
    std::int64_t node;
};

// The splits of all features, one feature after another: those of feature f are
// splits[offsets[f]..offsets[f + 1]-1].
struct SplitsByFeature {
    std::vector<Split> splits;
    std::vector<std::int64_t> offsets;
};

SplitsByFeature sort_by_feature(const TreeView& nodes, std::int64_t n_features) {
    SplitsByFeature sorted{{}, std::vector<std::int64_t>(static_cast<std::size_t>(n_features) + 1)};
    const auto place = [&](std::int64_t node) -> std::int64_t& {
        return sorted.offsets[static_cast<std::size_t>(nodes.feature[node])];
    };
    std::int64_t n_splits = 0;
    for (std::int64_t node = 0; node < nodes.n_nodes; ++node) {
        if (!nodes.is_leaf(node)) {
            ++place(node);
            ++n_splits;
        }
    }
    std::partial_sum(sorted.offsets.begin(), sorted.offsets.end(), sorted.offsets.begin());
    sorted.splits.resize(static_cast<std::size_t>(n_splits));
    for (std::int64_t node = 0; node < nodes.n_nodes; ++node) {
        if (!nodes.is_leaf(node)) {
            const double threshold = nodes.threshold[node];
            // Nothing is above NaN, as nothing is above +inf, which can be sorted.
            const double sortable = threshold != threshold ? kInfinity : threshold;
            sorted.splits[static_cast<std::size_t>(--place(node))] = {sortable, node};
        }
    }
    return sorted;
}

}  // namespace

std::optional<ForestCuts> collect_cuts(const ForestView& forest, std::int64_t n_features) {
    const DefaultFloatEnvironment environment;
    const auto n_nodes = static_cast<std::size_t>(forest.nodes.n_nodes);
    SplitsByFeature sorted = sort_by_feature(forest.nodes, n_features);
    ForestCuts found{{}, {0}, {}, std::vector<std::int32_t>(n_nodes, 0), {}};
    found.ranks.resize(n_nodes, 0);
    for (std::int64_t feature = 0; feature < n_features; ++feature) {
        const auto index = static_cast<std::size_t>(feature);
        const auto begin = sorted.splits.begin() + sorted.offsets[index];
        const auto end = sorted.splits.begin() + sorted.offsets[index + 1];
        if (begin == end) {
            continue;
        }
        std::sort(begin, end,
                  [](const Split& a, const Split& b) { return a.threshold < b.threshold; });
        std::int64_t rank = -1;
        for (auto split = begin; split != end; ++split) {
            if (split == begin || split->threshold != (split - 1)->threshold) {
                ++rank;
                if (split->threshold < kInfinity) {
                    if (rank == kMissingCode - 1) {
                        return std::nullopt;  // a value beyond all cuts would look as if missing
                    }
                    found.cuts.push_back(split->threshold);
                }
            }
            found.columns[static_cast<std::size_t>(split->node)] =
                static_cast<std::int32_t>(found.n_columns());
            found.ranks[static_cast<std::size_t>(split->node)] = static_cast<std::uint8_t>(rank);
        }
        found.features.push_back(feature);
        found.offsets.push_back(static_cast<std::int64_t>(found.cuts.size()));
    }
    return found;
}

}  // namespace torchgbdt
