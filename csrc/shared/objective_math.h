// The objectives, each formula once for C++ and Metal; twin of core/objectives.py.
#pragma once

#include "shared/fixed_point.h"

namespace torchgbdt {

// The numbers of ObjectiveKind in core/objectives.py.
enum class ObjectiveKind : int32_t { squared_error = 0 };

// e = sum of leaf values - centred label.
inline float squared_error_residual(float prediction, float label) {
    return flush_subnormals(prediction - label);
}

// g = w * e. Without weights the residual itself is the gradient; the Hessian is w, or 1.
inline float squared_error_gradient(float residual, float weight) {
    return flush_subnormals(residual * weight);
}

}  // namespace torchgbdt
