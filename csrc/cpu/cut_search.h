// How many of a feature's cuts lie below a value: the one search behind bin codes and prediction.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace torchgbdt {

constexpr std::int64_t kSearchedValues =
    256;  // at most so many at a time: buffers lie on the stack

// The largest float32 at or below a number. For every float32 x, infinities included,
//
//     x > number   exactly where   x > float32_at_most(number):
//
// no float32 lies above the one and at or below the other. NaN stays NaN, and nothing is above it.
inline float float32_at_most(double number) {
    const auto nearest = static_cast<float>(number);
    return static_cast<double>(nearest) <= number
               ? nearest
               : std::nextafter(nearest, -std::numeric_limits<float>::infinity());
}

// Cuts of one feature, for values of type float or double.
//
// The range of the cuts is divided into buckets of equal width, about four per cut, and a table
// says how many cuts lie in the buckets before each:
//
//     cuts        |  |    |  |          |             |
//     buckets   [    |    |    |    |    |    |    |    ]       bucket(x), never descending in x
//     before    0    2    3    4    4    5    5    5
//
// So before[bucket(x)] cuts are below x, those of later buckets are above it, and only those in its
// own bucket are compared: `steps` times, which is once where cuts are quantiles of a smooth
// distribution, and 8 times at worst. No branch depends on x.
template <typename Number>
class CutSearch {
  public:
    // cuts: ascending, at most 255. Other cuts give other codes, but leave no buffer.
    CutSearch(const double* cuts, std::int64_t n_cuts, std::uint8_t missing_code);

    // codes[i] = number of cuts below values[i], or the missing code where that is NaN;
    // count <= kSearchedValues.
    void find_codes(const Number* values, std::int64_t count, std::uint8_t* codes) const;

  private:
    std::int32_t bucket(Number x) const;
    template <int kSteps>
    void find_in_steps(const Number* values, const std::int32_t* buckets, std::int64_t count,
                       std::uint8_t* codes) const;

    std::vector<Number> cuts_;  // then +inf, which is below nothing, for probes beyond the last
    std::vector<std::uint8_t> before_;
    Number lowest_ = 0;
    Number buckets_per_unit_ = 0;
    Number last_bucket_ = 0;
    int steps_ = 0;
    std::uint8_t missing_code_;
};

}  // namespace torchgbdt
