#include "cpu/split_filter.h"

#include "cpu/vectorize.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace torchgbdt {
namespace {

// The lowest bit of 1.5 * 2^52 is worth 1: an integer of -2^51..2^51-1 that is added to its bits is
// added to its value. Unlike a conversion of int64, this has vectors on every processor.
constexpr double kShift = 0x1.8p52;
constexpr std::uint64_t kShiftBits = 0x4338000000000000;

inline std::uint64_t shifted_bits(std::int64_t integer) {
    return static_cast<std::uint64_t>(integer) + kShiftBits;
}

inline double exact_float(std::int64_t integer) {
    const std::uint64_t bits = shifted_bits(integer);
    double shifted;
    std::memcpy(&shifted, &bits, sizeof shifted);
    return shifted - kShift;
}

struct Fraction {
    double numerator, denominator;
};

// GL^2 / DL + GR^2 / DR.
inline Fraction score_of(double left_gradient, double left_hessian, const FilterOutput& node) {
    const double right_gradient = node.gradient - left_gradient;
    const double left = left_hessian + node.reg_lambda;
    const double right = (node.hessian - left_hessian) + node.reg_lambda;
    return {(left_gradient * left_gradient) * right + (right_gradient * right_gradient) * left,
            left * right};
}

// As filter_scores. Sums are taken apart block by block, or the arithmetic would not vectorize.
template <bool kIsFirstOutput>
__attribute__((always_inline)) inline double write_scores(const GradientSums* left,
                                                          int n_candidates, const FilterOutput node,
                                                          double* __restrict scores) {
    constexpr int kHalf = kLanes / 2;
    std::array<double, kHalf> largest{};
    std::array<std::uint64_t, kLanes> beyond{};  // bits that a gradient within range leaves 0
    for (int first = 0; first < n_candidates; first += kLanes) {
        std::array<double, kLanes> gradients, hessians;
        for (int lane = 0; lane < kLanes; ++lane) {
            const GradientSums& sums = left[first + lane];
            gradients[lane] = exact_float(sums.gradient);
            hessians[lane] = exact_float(sums.hessian);
            beyond[lane] |= shifted_bits(sums.gradient) ^ kShiftBits;
        }
        for (int lane = 0; lane < kHalf; ++lane) {  // one division for two candidates
            const int other = lane + kHalf;
            const Fraction a = score_of(gradients[lane], hessians[lane], node);
            const Fraction b = score_of(gradients[other], hessians[other], node);
            const double factor = node.score_factor / (a.denominator * b.denominator);
            double score_a = (a.numerator * b.denominator) * factor;
            double score_b = (b.numerator * a.denominator) * factor;
            if (!kIsFirstOutput) {
                score_a += scores[first + lane];
                score_b += scores[first + other];
            }
            scores[first + lane] = score_a;
            scores[first + other] = score_b;
            const double larger = score_a > score_b ? score_a : score_b;
            largest[lane] = larger > largest[lane] ? larger : largest[lane];
        }
    }
    std::uint64_t any_beyond = 0;
    for (const std::uint64_t bits : beyond) {
        any_beyond |= bits >> 52;
    }
    return any_beyond != 0 ? std::numeric_limits<double>::infinity()
                           : *std::max_element(largest.begin(), largest.end());
}

}  // namespace

TORCHGBDT_VECTORIZE
double filter_scores(const GradientSums* left, int n_candidates, const FilterOutput& output,
                     bool is_first_output, double* scores) {
    return is_first_output ? write_scores<true>(left, n_candidates, output, scores)
                           : write_scores<false>(left, n_candidates, output, scores);
}

// Most blocks of candidates have none.
TORCHGBDT_VECTORIZE
int filter_candidates(const double* scores, int n_candidates, double enough, std::uint8_t* chosen) {
    int n_chosen = 0;
    for (int first = 0; first < n_candidates; first += kLanes) {
        std::int64_t any = 0;  // as wide as a score
        for (int lane = 0; lane < kLanes; ++lane) {
            any |= scores[first + lane] >= enough ? 1 : 0;
        }
        const int end = any != 0 ? std::min(first + kLanes, n_candidates) : first;
        for (int candidate = first; candidate < end; ++candidate) {
            chosen[n_chosen] = static_cast<std::uint8_t>(candidate);
            n_chosen += scores[candidate] >= enough ? 1 : 0;
        }
    }
    return n_chosen;
}

}  // namespace torchgbdt
