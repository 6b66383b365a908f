// Per-row losses of the metrics, each formula once for C++ and Metal; twin of core/metrics.py.
//
// A prediction that is NaN gives a loss that is NaN.
#pragma once

#include "shared/objective_math.h"

namespace torchgbdt {

// The numbers of MetricKind in core/metrics.py.
enum class MetricKind : int32_t {
    squared_error = 0,
    absolute_error = 1,
    logistic_loss = 2,
    logistic_error = 3,
    softmax_loss = 4,
    softmax_error = 5,
};

// Of x, a sum of leaf values, and a centred label.
inline float squared_error_loss(float x, float label) {
    const float residual = squared_error_residual(x, label);
    return flush_subnormals(residual * residual);
}

inline float absolute_error_loss(float x, float label) {
    return magnitude(squared_error_residual(x, label));
}

// log(1 + exp(-x)) for label 1, log(1 + exp(x)) for label 0.
inline float logistic_loss(float x, float label) {
    const float softened = portable_log1p(portable_exp(-magnitude(x)));
    const float wrong_way = label == 1.0f ? -x : x;
    return flush_subnormals(softened + (wrong_way > 0.0f ? wrong_way : 0.0f));
}

// 1 where the likelier class is not the label, else 0; x = 0 is class 0.
inline float logistic_error(float x, float label) {
    const float error = (x > 0.0f) == (label == 1.0f) ? 0.0f : 1.0f;
    return x == x ? error : x;
}

// log(sum of exp(x_k)) - x_label. own: the raw prediction of the label.
inline float softmax_loss(float largest, float rest, float own) {
    return flush_subnormals(portable_log1p(rest) + flush_subnormals(largest - own));
}

// 1 where the first largest prediction is not the label's, else 0. nan: a prediction of the row
// that is NaN, or 0.
inline float softmax_error(int32_t largest_column, float label, float nan) {
    return static_cast<float>(largest_column) == label ? nan : 1.0f + nan;
}

}  // namespace torchgbdt
