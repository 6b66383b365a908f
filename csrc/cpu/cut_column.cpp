// Cuts sorted values into bins of like weight. The definition is core.quantiles.cut_column.
#include "cpu/checks.h"
#include "cpu/float_environment.h"
#include "cpu/kernels.h"

#include <algorithm>
#include <vector>

namespace torchgbdt {
namespace {

using Totals = std::vector<std::int64_t>;

// How many values there are up to each distinct one, itself included.
Totals count_up(const double* values, std::int64_t n_values) {
    Totals ends(static_cast<std::size_t>(n_values));
    std::int64_t n_distinct = 0;
    for (std::int64_t i = 1; i <= n_values; ++i) {
        ends[static_cast<std::size_t>(n_distinct)] = i;
        n_distinct += i == n_values || values[i] != values[i - 1] ? 1 : 0;
    }
    ends.resize(static_cast<std::size_t>(n_distinct));
    return ends;
}

std::int64_t weight_of(const Totals& ends, std::size_t value) {
    return ends[value] - (value > 0 ? ends[value - 1] : 0);
}

// Distinct values that weigh at least a fair share of what is not heavy; fewer than n_bins.
std::vector<std::size_t> heavy_values(const Totals& ends, std::int64_t n_bins) {
    std::vector<std::size_t> heavy;
    std::vector<bool> is_heavy(ends.size(), false);
    std::int64_t light = ends.back();
    for (bool grows = true; grows;) {
        const std::int64_t light_bins = n_bins - static_cast<std::int64_t>(heavy.size());
        const std::int64_t bar = light;
        grows = false;
        for (std::size_t value = 0; value < ends.size(); ++value) {
            const std::int64_t weight = weight_of(ends, value);
            if (!is_heavy[value] && weight * light_bins >= bar) {
                is_heavy[value] = grows = true;
                heavy.push_back(value);
                light -= weight;
            }
        }
    }
    std::sort(heavy.begin(), heavy.end());
    return heavy;
}

// After which distinct values to cut: core.quantiles.quantile_cuts says how.
std::vector<std::size_t> quantile_cuts(const Totals& ends, std::int64_t n_bins) {
    std::vector<std::size_t> cuts;
    if (static_cast<std::int64_t>(ends.size()) <= n_bins) {
        for (std::size_t value = 0; value + 1 < ends.size(); ++value) {
            cuts.push_back(value);
        }
        return cuts;
    }
    std::vector<std::size_t> heavy = heavy_values(ends, n_bins);
    Totals light_ends = ends;
    std::int64_t heavy_weight = 0;
    for (std::size_t i = 0, value = heavy.empty() ? ends.size() : heavy[0]; value < ends.size();
         ++value) {
        if (i < heavy.size() && heavy[i] == value) {
            heavy_weight += weight_of(ends, value);
            ++i;
        }
        light_ends[value] -= heavy_weight;
    }
    std::int64_t light_bins = n_bins - static_cast<std::int64_t>(heavy.size());
    const std::int64_t light_total = light_ends.back();
    heavy.push_back(ends.size());  // never met
    std::size_t start = 0, next_heavy = 0;
    std::int64_t light_used = 0;
    while (static_cast<std::int64_t>(cuts.size()) < n_bins - 1) {
        const std::int64_t light_left = light_total - light_used;
        const std::int64_t target = light_bins > 0
                                        ? light_used + (light_left + light_bins - 1) / light_bins
                                        : light_total + 1;
        const auto reached = std::lower_bound(light_ends.begin(), light_ends.end(), target);
        const std::size_t full =
            std::max(start, static_cast<std::size_t>(reached - light_ends.begin()));
        const std::size_t end = heavy[next_heavy];
        const std::int64_t light_before = end > start ? light_ends[end - 1] - light_used : 0;
        std::size_t position = end;
        if (full < end) {
            position = full;
            --light_bins;
        } else if (2 * light_before * light_bins >= light_left && light_before > 0) {
            position = end - 1;
            --light_bins;
        } else {
            ++next_heavy;
        }
        if (position + 1 >= ends.size()) {
            break;
        }
        cuts.push_back(position);
        start = position + 1;
        light_used = light_ends[position];
    }
    return cuts;
}

// core.quantiles.midpoints.
double midpoint(double lower, double upper) {
    const double middle = lower / 2 + upper / 2;
    return lower <= middle && middle < upper ? middle : lower;
}

}  // namespace

// Layout: values ascending; thresholds (n_bins - 1,).
// Writes: thresholds in ascending order; returns how many there are.
std::int64_t cut_column(const double* values, std::int64_t n_values, std::int64_t n_bins,
                        double* thresholds) {
    const DefaultFloatEnvironment environment;
    const Totals ends = count_up(values, n_values);
    const std::vector<std::size_t> cuts = quantile_cuts(ends, n_bins);
    for (std::size_t i = 0; i < cuts.size(); ++i) {
        const std::int64_t above = ends[cuts[i]];  // the first value after the cut
        thresholds[i] = midpoint(values[above - 1], values[above]);
    }
    return static_cast<std::int64_t>(cuts.size());
}

}  // namespace torchgbdt
