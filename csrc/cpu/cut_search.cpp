#include "cpu/cut_search.h"

#include "cpu/float_environment.h"

#include <algorithm>
#include <array>
#include <type_traits>

namespace torchgbdt {
namespace {

constexpr std::int64_t kBucketsPerCut = 4;

template <typename Number>
Number at_most(double cut) {
    if constexpr (std::is_same_v<Number, float>) {
        return float32_at_most(cut);
    } else {
        return cut;
    }
}

// The smallest power of two that is at least `number`.
std::int64_t power_at_least(std::int64_t number) {
    std::int64_t power = 1;
    while (power < number) {
        power *= 2;
    }
    return power;
}

}  // namespace

// Subtracting a finite number, multiplying by one that is not negative and cutting off are monotone
// even when rounded, whatever overflows; so is NaN as 0, which is 0 * inf where nothing is below 0,
// or inf * 0 where everything is 0 or NaN.
template <typename Number>
std::int32_t CutSearch<Number>::bucket(Number x) const {
    const Number place = (x - lowest_) * buckets_per_unit_;
    const Number not_before = place > 0 ? place : 0;  // 0 where NaN
    return static_cast<std::int32_t>(not_before < last_bucket_ ? not_before : last_bucket_);
}

template <typename Number>
CutSearch<Number>::CutSearch(const double* cuts, std::int64_t n_cuts, std::uint8_t missing_code)
    : missing_code_(missing_code) {
    const DefaultFloatEnvironment environment;
    if (n_cuts == 0) {
        return;
    }
    for (std::int64_t i = 0; i < n_cuts; ++i) {
        cuts_.push_back(at_most<Number>(cuts[i]));
    }
    const auto is_finite = [](Number cut) { return std::isfinite(cut); };
    const auto first = std::find_if(cuts_.begin(), cuts_.end(), is_finite);
    const auto last = std::find_if(cuts_.rbegin(), cuts_.rend(), is_finite);
    const std::int64_t n_buckets = power_at_least(kBucketsPerCut * n_cuts);
    last_bucket_ = static_cast<Number>(n_buckets - 1);
    if (first != cuts_.end() && *first < *last) {
        lowest_ = *first;
        buckets_per_unit_ = static_cast<Number>(n_buckets) / (*last - *first);
    }
    std::vector<std::int64_t> in_bucket(static_cast<std::size_t>(n_buckets), 0);
    for (const Number cut : cuts_) {
        ++in_bucket[static_cast<std::size_t>(bucket(cut))];
    }
    std::int64_t cuts_before = 0;
    for (const std::int64_t count : in_bucket) {
        before_.push_back(static_cast<std::uint8_t>(cuts_before));
        cuts_before += count;
    }
    const std::int64_t most = *std::max_element(in_bucket.begin(), in_bucket.end());
    while ((std::int64_t{1} << steps_) <= most) {
        ++steps_;
    }
    cuts_.resize(cuts_.size() + (std::size_t{1} << steps_),
                 std::numeric_limits<Number>::infinity());
}

// kSteps: known when compiled for the common few, or -1.
template <typename Number>
template <int kSteps>
void CutSearch<Number>::find_in_steps(const Number* values, const std::int32_t* buckets,
                                      std::int64_t count, std::uint8_t* codes) const {
    const Number* cuts = cuts_.data();
    const std::uint8_t* before = before_.data();
    const std::uint8_t missing_code = missing_code_;
    const int steps = kSteps >= 0 ? kSteps : steps_;
    for (std::int64_t i = 0; i < count; ++i) {
        const Number x = values[i];
        std::int32_t below = before[buckets[i]];
        for (std::int32_t half = (1 << steps) >> 1; half > 0; half >>= 1) {
            below += cuts[below + half - 1] < x ? half : 0;
        }
        codes[i] = x != x ? missing_code : static_cast<std::uint8_t>(below);
    }
}

template <typename Number>
void CutSearch<Number>::find_codes(const Number* values, std::int64_t count,
                                   std::uint8_t* codes) const {
    if (cuts_.empty()) {
        for (std::int64_t i = 0; i < count; ++i) {
            codes[i] = values[i] != values[i] ? missing_code_ : 0;
        }
        return;
    }
    std::array<std::int32_t, kSearchedValues> buckets;  // apart from the rest: this vectorizes
    for (std::int64_t i = 0; i < count; ++i) {
        buckets[static_cast<std::size_t>(i)] = bucket(values[i]);
    }
    switch (steps_) {
        case 1:
            return find_in_steps<1>(values, buckets.data(), count, codes);
        case 2:
            return find_in_steps<2>(values, buckets.data(), count, codes);
        case 3:
            return find_in_steps<3>(values, buckets.data(), count, codes);
        default:
            return find_in_steps<-1>(values, buckets.data(), count, codes);
    }
}

template class CutSearch<float>;
template class CutSearch<double>;

}  // namespace torchgbdt
