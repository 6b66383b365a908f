// Per-row losses of the metrics, each formula once for C++ and Metal; twin of core/metrics.py.
#pragma once

#include "shared/objective_math.h"

namespace torchgbdt {

// The numbers of MetricKind in core/metrics.py.
enum class MetricKind : int32_t { squared_error = 0, absolute_error = 1 };

inline float squared_error_loss(float residual) {
    return flush_subnormals(residual * residual);
}

inline float absolute_error_loss(float residual) {
    return magnitude(residual);
}

inline float weighted_loss(float loss, float weight) {
    return flush_subnormals(loss * weight);
}

}  // namespace torchgbdt
