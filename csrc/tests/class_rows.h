// Rows whose labels are classes, and their formulas one row at a time, with branches, as
// core/objectives.py and core/metrics.py define them.
#pragma once

#include "cpu/kernels.h"
#include "shared/portable_math.h"
#include "tests/random_data.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace torchgbdt_tests {

inline bool same(float a, float b) {
    return float_bits(a) == float_bits(b) || (std::isnan(a) && std::isnan(b));
}

inline float plain_flush(float x) {
    return std::fabs(x) < std::numeric_limits<float>::min() ? 0.0f : x;
}

// What random rows are made of.
enum class Numbers {
    finite,   // ordinary ones, many equal ones, and far apart ones
    special,  // some infinities and NaN among them
};

struct ClassRows {
    ClassRows(Random& random, std::int64_t n_rows, std::int64_t n_columns, Numbers numbers,
              bool has_weights, bool has_margins)
        : n_rows(n_rows),
          n_columns(n_columns),
          has_weights(has_weights),
          has_margins(has_margins),
          baseline(random_floats(random, 2 * n_columns)) {
        const std::int64_t n_classes = n_columns == 1 ? 2 : n_columns;
        for (std::int64_t i = 0; i < n_rows * n_columns; ++i) {
            sums.push_back(number(random, numbers));
            margins.push_back(random.number());
        }
        for (std::int64_t column = 0; random.chance(50) && column < n_columns; ++column) {
            baseline[2 * column] = baseline[2 * column + 1] = 0.0f;  // equal predictions stay so
        }
        for (std::int64_t row = 0; row < n_rows; ++row) {
            labels.push_back(static_cast<float>(random.between(0, n_classes - 1)));
            weights.push_back(random.chance(5) ? 1e-30f : std::fabs(random.number()));
        }
    }

    static float number(Random& random, Numbers numbers) {
        const float infinity = std::numeric_limits<float>::infinity();
        const float specials[] = {infinity, -infinity, std::nanf("")};
        const std::int64_t kind = random.between(0, numbers == Numbers::special ? 19 : 14);
        if (kind >= 15) {
            return specials[random.between(0, 2)];
        }
        return kind < 5    ? random.number()
               : kind < 10 ? static_cast<float>(random.between(-1, 1))
                           : 20.0f * random.number();
    }

    ObjectiveRows view() const {
        return {sums.data(), labels.data(),   has_weights ? weights.data() : nullptr, n_rows,
                n_columns,   baseline.data(), has_margins ? margins.data() : nullptr};
    }

    float raw(std::int64_t row, std::int64_t column) const {
        const std::int64_t i = row * n_columns + column;
        const float total = has_margins ? plain_flush(margins[i] + sums[i]) : sums[i];
        return plain_flush(baseline[2 * column] + plain_flush(baseline[2 * column + 1] + total));
    }

    float weighted(std::int64_t row, float value) const {
        return has_weights ? plain_flush(value * weights[row]) : value;
    }

    std::int64_t n_rows;
    std::int64_t n_columns;
    bool has_weights;
    bool has_margins;
    std::vector<float> baseline;
    std::vector<float> sums;
    std::vector<float> margins;
    std::vector<float> labels;
    std::vector<float> weights;
};

inline float plain_sigmoid(float x) {
    const float t = portable_exp(std::isnan(x) ? x : -std::fmin(std::fabs(x), 86.0f));
    return x >= 0.0f ? 1.0f / (1.0f + t) : t / (1.0f + t);
}

struct PlainSoftmax {
    PlainSoftmax(const ClassRows& rows, std::int64_t row) : largest(rows.raw(row, 0)) {
        for (std::int64_t column = 0; column < rows.n_columns; ++column) {
            x.push_back(rows.raw(row, column));
            has_nan = has_nan || std::isnan(x.back());
            largest = x.back() > largest ? x.back() : largest;
        }
        bool left_out = false;
        for (const float of_class : x) {
            const float distance = of_class - largest;
            t.push_back(portable_exp(distance < -86.0f ? -86.0f : distance));
            if (of_class == largest && !left_out) {
                left_out = true;
            } else {
                rest += t.back();
            }
        }
    }

    float p(std::size_t k) const { return plain_flush(t[k] / (1.0f + rest)); }
    float q(std::size_t k) const {
        const float others = x[k] == largest ? rest : (1.0f + rest) - t[k];
        return plain_flush(others / (1.0f + rest));
    }

    // The first that has the largest prediction; there is none if one of them is NaN.
    std::size_t predicted() const {
        return static_cast<std::size_t>(std::find(x.begin(), x.end(), largest) - x.begin());
    }

    float largest;
    float rest = 0.0f;
    bool has_nan = false;
    std::vector<float> x;
    std::vector<float> t;
};

}  // namespace torchgbdt_tests
