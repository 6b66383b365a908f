// Tells which candidates of a feature may be the one that gains most: usually one. It compares
// scores that are almost exact and much cheaper than gains. The gains of those few are then
// computed as cpu/split_gain.h says, and decide; the filter never does.
//
//     score of a candidate = sum over outputs of GL^2 / DL + GR^2 / DR,   D = H + reg_lambda
//
// score(parent) and gamma are the same for all candidates of a node, so who gains most has the
// largest score, but for rounding. How much rounding may do, with u = 2^-53 and K outputs:
//
//  1. The filter's GL, GR, DL and DR are those of the exact gain, bit for bit, times a power of
//     two: integers below 2^53 are float64, so only D is rounded, and alike. No term is negative,
//     so nothing cancels: a score is wrong by a factor of at most 1 +- (K + 9) u.
//  2. The exact gain is computed from sums over outputs of score - score(parent). score(parent) is
//     at most 2 * score of any candidate, since GL^2/DL + GR^2/DR >= (GL + GR)^2 / (DL + DR), and
//     what it was rounded by is the same for all. So rounding moves the sum of one candidate
//     against that of another by at most (K + 3) u times its score: 3 u for the score, 1 u for the
//     difference, K - 1 additions.
//  3. Hence of two candidates whose scores are more than a factor of 1 - 64 K u apart, the larger
//     gains more, and strictly: 64 K exceeds 2 (K + 9) + 2 (K + 3) and the last few roundings.
//     For the same reason, who gains `bar` (of SplitCandidates::find_best) has at least 1 - 64 K u
//     of the score that this takes.
//  4. A candidate with proportional sums is dropped in the end, whatever its gain. Should it have
//     the largest score: that is not above score(parent), since x^2 / (x + reg_lambda) grows
//     faster than x; so those that are left out, as far below it, have no gain.
//
// Nothing overflows or becomes subnormal: in units of integers D is 1..2^101 and G^2 at most 2^104;
// the factor from those to scores is 2^-381..2^381, since scales are -126..127 (cpu/checks.h); and
// no divisor is more than the product of four D.
#pragma once

#include "cpu/split_gain.h"

#include <cstdint>

namespace torchgbdt {

// The filter is for nodes in which every output has
//     |gradient| and Hessian <= kMaxFilterSum, and in both children a Hessian of at least 1,
//     reg_lambda <= kMaxFilterLambda units of the Hessian.
constexpr std::int64_t kMaxFilterSum = (std::int64_t{1} << 51) - 1;
constexpr double kMaxFilterLambda = 0x1p100;

// The share of the largest score that a candidate needs to be one that may gain most: 1 - 64 K u.
inline double filter_share(int n_outputs) {
    return 1.0 - n_outputs * 0x1p-47;
}

// Loops over candidates run on to a multiple of kLanes, so that they are made of whole vectors.
constexpr int kLanes = 32;

// A node in one output. Sums are in units of their integers.
struct FilterOutput {
    double gradient, hessian;
    double reg_lambda;    // in units of the Hessian
    double score_factor;  // from such units to scores
};

// Writes the scores of candidates 0..n_candidates-1, or adds those of another output to them.
// Returns the largest, or infinity if a left child's gradient is not -2^51..2^51-1: then scores are
// worth nothing, and all candidates may gain most. `left` is read and `scores` written up to the
// next multiple of kLanes.
double filter_scores(const GradientSums* left, int n_candidates, const FilterOutput& output,
                     bool is_first_output, double* scores);

// Writes which candidates have a score of at least `enough`, ascending; returns how many.
int filter_candidates(const double* scores, int n_candidates, double enough, std::uint8_t* chosen);

}  // namespace torchgbdt
