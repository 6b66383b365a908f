// The objectives, each formula once for C++ and Metal; twin of core/objectives.py and
// core/probabilities.py.
#pragma once

#include "shared/portable_math.h"

namespace torchgbdt {

// The numbers of ObjectiveKind in core/objectives.py.
enum class ObjectiveKind : int32_t { squared_error = 0, logistic = 1, softmax = 2 };

struct GradientAndHessian {
    float gradient;
    float hessian;
};

// What a row's weight makes of its gradient, Hessian or loss.
inline float weighted(float value, float weight) {
    return flush_subnormals(value * weight);
}

// Where labels are not centred. high + low are the baseline; margin is 0 where there are none:
// sums are never -0, so adding it changes no bit.
inline float raw_prediction(float sum, float margin, float high, float low) {
    const float total = flush_subnormals(margin + sum);
    return flush_subnormals(high + flush_subnormals(low + total));
}

// --- squared error ------------------------------------------------------------------------------

// e = sum of leaf values - centred label: the gradient, too. The Hessian is 1.
inline float squared_error_residual(float prediction, float label) {
    return flush_subnormals(prediction - label);
}

// --- logistic -----------------------------------------------------------------------------------

// exp(-86) = 4.5e-38 is a normal float32, and so is the logistic Hessian there.
inline float largest_exponent() {
    return 86.0f;
}

// t = exp(-|x|), small = t / (1 + t), large = 1 / (1 + t): sigmoid(x) is large where x >= 0.
struct LogisticTerms {
    float t;
    float small;
    float large;
};

inline LogisticTerms logistic_terms(float x) {
    const float size = magnitude(x);
    const float t = portable_exp(-(size > largest_exponent() ? largest_exponent() : size));
    return {t, t / (1.0f + t), 1.0f / (1.0f + t)};
}

// g = sigmoid(x), or -sigmoid(-x) for label 1; h = sigmoid(x) sigmoid(-x). Nothing cancels.
inline GradientAndHessian logistic_gradient(float x, float label) {
    const LogisticTerms terms = logistic_terms(x);
    const float sigmoid = x >= 0.0f ? terms.large : terms.small;
    const float opposite = x >= 0.0f ? terms.small : terms.large;
    return {flush_subnormals(label == 1.0f ? -opposite : sigmoid),
            flush_subnormals(terms.small / (1.0f + terms.t))};
}

// --- softmax ------------------------------------------------------------------------------------

// t = exp(x - largest). Of a row's terms, the first largest one is 1, and `rest` sums the others:
// p = t / (1 + rest).
inline float softmax_term(float x, float largest) {
    const float distance = x - largest;
    return portable_exp(distance < -largest_exponent() ? -largest_exponent() : distance);
}

// The largest raw prediction of a row and its column: the first that has it.
struct LargestPrediction {
    float value;
    int32_t column;
};

// Looks at one more column; columns ascend.
inline LargestPrediction larger_prediction(LargestPrediction before, float x, int32_t column) {
    const bool is_larger = x > before.value;
    return {is_larger ? x : before.value, is_larger ? column : before.column};
}

// Adds a column's term to `rest`, unless it is the first largest one's.
inline float add_softmax_term(float rest, float x, int32_t column, LargestPrediction largest) {
    const float t = softmax_term(x, largest.value);
    return rest + (column == largest.column ? 0.0f : t);
}

// g = p - [x is the label's], h = 2 p (1 - p); 1 - p is the sum of the other terms. 2 is the
// smallest factor whose diagonal bounds the Hessian diag(p) - p p^T; see core/objectives.py.
inline GradientAndHessian softmax_gradient(float x, float largest, float rest, bool is_label) {
    const float t = softmax_term(x, largest);
    const float total = 1.0f + rest;
    const float others = x == largest ? rest : total - t;
    const float p = flush_subnormals(t / total);
    const float q = flush_subnormals(others / total);
    return {flush_subnormals(is_label ? -q : p), flush_subnormals(2.0f * p * q)};
}

}  // namespace torchgbdt
