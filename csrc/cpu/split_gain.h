// The gain of a split and the tests of a candidate: the one definition in C++, bit-equal to
// core/splits.py. float64, in exactly the order written; compiled without contraction.
#pragma once

#include <cmath>
#include <cstdint>

namespace torchgbdt {

// Integer totals of some rows for one output.
struct GradientSums {
    std::int64_t gradient;
    std::int64_t hessian;
};

inline GradientSums operator-(const GradientSums& a, const GradientSums& b) {
    return {a.gradient - b.gradient, a.hessian - b.hessian};
}

// Exact factors that turn the sums of one output into float64: 2^-scale each.
struct SumUnits {
    double gradient;
    double hessian;
};

inline SumUnits sum_units(std::int64_t gradient_scale, std::int64_t hessian_scale) {
    return {std::ldexp(1.0, static_cast<int>(-gradient_scale)),
            std::ldexp(1.0, static_cast<int>(-hessian_scale))};
}

// A sum in float64: one correctly rounded conversion, one exact power of two.
inline double to_float(std::int64_t sum, double unit) {
    return static_cast<double>(sum) * unit;
}

// (G*G) / (H + lambda), 0 where the denominator is 0.
inline double score(double gradient, double hessian, double reg_lambda) {
    const double denominator = hessian + reg_lambda;
    return denominator == 0.0 ? 0.0 : (gradient * gradient) / denominator;
}

inline double score(const GradientSums& sums, const SumUnits& units, double reg_lambda) {
    return score(to_float(sums.gradient, units.gradient), to_float(sums.hessian, units.hessian),
                 reg_lambda);
}

// What one output adds to the bracket of the gain.
inline double score_increase(double left, double right, double parent) {
    return (left + right) - parent;
}

// The gain, from the bracket summed over outputs in ascending order.
inline double split_gain(double summed_increase, double gamma) {
    return (0.5 * summed_increase) - gamma;
}

// GL*HR == GR*HL: both sides want the same weight, so the split gains nothing.
inline bool is_proportional(const GradientSums& left, const GradientSums& right) {
    using Wide = __int128;
    return Wide{left.gradient} * right.hessian == Wide{right.gradient} * left.hessian;
}

}  // namespace torchgbdt
