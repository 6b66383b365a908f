// Ranks the splits of a node by gain, in float32 and with a proven error.
//
// A node has the totals G and H. With
//     a = HL + reg_lambda,  b = HR + reg_lambda,  S = a + b,  mean = G / S,  C = GL - mean * a
// both sides' scores are, since GR - mean * b = -C,
//     GL^2/a + GR^2/b = S * (mean^2 + D),    D = C^2 / (a b),
// and all else in a gain is the same for every split of the node: gains are in the order of D. The
// rank is D computed in float32. `a` and `b` may be exchanged, so let b be the smaller: C is
// computed from that side's sums, as |GR - mean * b|.
//
// Units. Integers are scaled by powers of two, so that |G| <= 1 on any side and 1/2 <= S < 1 (the
// host chooses them). A side has a Hessian of at least one of at most 2^61 units; hence a >= 1/4,
// b >= 2^-62, |C| <= 2, D < 2^67: nothing overflows. |mean| is 0 or >= 2^-64.
//
// How far the rank is from D. u = 2^-24, v = 2^-53.
//  1. C is wrong by u |C| (it ends as one float32) and dC <= 2^-43 (|GR| + |mean| b), as
//     metal/double_float.h says of each step: 2^-47 for GR; for mean * b 2^-45.2 in b, 2^-47.8 in
//     the mean, 2^-45 in the product; 2^-46.4 of both in the difference.
//     What is lost below 2^-126 is less than 2^-122 in all; a and b are too large to notice.
//  2. As |GR| <= |C| + |mean| b, and |C| = sqrt(D a b) <= sqrt(D) a, dC changes D by at most
//         2 |C| dC / (ab) <= 2^-42 D + 2^-41 sqrt(D) |mean| <= 2^-31 D + 2.1 v mean^2,
//     its square included; the 2^-122 by at most 2^-30 D + 2^-150. This is what the smaller side is
//     chosen for: with the larger one, dC can be the whole of C.
//  3. C twice, a, b, two quotients and a product round: 7 u D. A product that is lost below 2^-126
//     is lost from D likewise. The quotients are not: a and b are below 1, and C is not lost.
//  Together: |rank - D| <= 7.1 u D + 2.2 v mean^2 + 2^-120.
//
// How far the winner may be from the largest D. It is the one with the largest gain as rounded in
// float64 by core/splits.py. A score is wrong by 6 v of itself (two conversions, one of them
// squared; a square, a sum, a quotient), the sum of two by 7 v. score(parent) is rounded alike for
// all, and is at most 2 mean^2 S, as H + reg_lambda >= S/2: the difference adds 2 v of the sum.
// Subtracting gamma adds 1 v more to a gain that is positive, and does not change the sign of
// others. So of a winner w and any other split j that is allowed
//     D_w + 11 v (mean^2 + D_w) >= D_j - 11 v (mean^2 + D_j).
// It holds as long as float64 neither overflows nor underflows: reg_lambda <= 2^100 units of the
// Hessian sees to that, whatever the scales (can_filter in backends/split_candidates.py).
//
// Hence, with tolerance = 16 v mean^2 + 2^-110 of the node, upper_rank of the winner reaches
// lower_rank of any split: upper_rank >= (D (1 - 7.1 u) (1 + 16 u) + tolerance) (1 - 2 u) - 2.2 v
// mean^2 - 2^-120 exceeds D + 11 v (mean^2 + D), and lower_rank falls below alike.
//
// Also the winner gains something: the sum exceeds score(parent) + 2 gamma, but for 25 v of S *
// (mean^2 + D), counting what score(parent) is rounded by as well. So its D is at least
//     mean^2 * reg_lambda / (H + reg_lambda) + 2 gamma / S - 25 v mean^2 - 9 v D,
// and upper_rank reaches that, less one tolerance: the host passes it as the smallest rank. In a
// node of rows that are all alike nothing else would tell noise from a split.
#pragma once

#include "metal/double_float.h"

namespace torchgbdt {

// Of the totals on one side of a split, or of a node.
struct NodeSums {
    long count;
    long gradient;
    long hessian;
};

// What ranks of a node are made of, in its units.
struct RankTerms {
    DoubleFloat mean;
    DoubleFloat reg_lambda;
    int gradient_exponent;  // a unit is 2^exponent of the integers'
    int hessian_exponent;
};

inline float split_rank(NodeSums left, NodeSums right, RankTerms terms) {
    NodeSums smaller = left;
    NodeSums larger = right;
    if (right.hessian < left.hessian) {
        smaller = right;
        larger = left;
    }
    const DoubleFloat a =
        add_positive(double_float(larger.hessian, terms.hessian_exponent), terms.reg_lambda);
    const DoubleFloat b =
        add_positive(double_float(smaller.hessian, terms.hessian_exponent), terms.reg_lambda);
    const DoubleFloat gradient = double_float(smaller.gradient, terms.gradient_exponent);
    const float c = difference(gradient, multiply(terms.mean, b));
    return (c / b.high) * (c / a.high);
}

inline float upper_rank(float rank, float tolerance) {
    return rank * 1.00000095367431640625f + tolerance;  // 1 + 2^-20
}

inline float lower_rank(float rank, float tolerance) {
    const float lower = rank * 0.99999904632568359375f - tolerance;  // 1 - 2^-20
    return lower > 0.0f ? lower : 0.0f;
}

}  // namespace torchgbdt
