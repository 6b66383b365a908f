// Adding leaf values to prediction sums: the one place where a sum grows.
#pragma once

#include "shared/fixed_point.h"

namespace torchgbdt {

// Every sum is flushed after each addition.
inline float add_leaf_value(float sum, float value) {
    return flush_subnormals(sum + value);
}

}  // namespace torchgbdt
