#include "cpu/matrix_view.h"
#include "tests/check.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace torchgbdt;

namespace {

template <typename T>
std::vector<double> loaded(const std::vector<T>& column, ElementType type) {
    const auto n_rows = static_cast<std::int64_t>(column.size());
    const MatrixView matrix{
        reinterpret_cast<const char*>(column.data()), n_rows, 1, sizeof(T), 0, type};
    std::vector<double> out(column.size());
    load_feature(matrix, 0, nullptr, 0, n_rows, out.data(), 1);
    return out;
}

template <typename T>
void check_extremes(ElementType type) {
    using Limits = std::numeric_limits<T>;
    const std::vector<T> column{T{0}, T{1}, Limits::lowest(), Limits::max()};
    const std::vector<double> out = loaded(column, type);
    for (std::size_t i = 0; i < column.size(); ++i) {
        CHECK_EQUAL(out[i], static_cast<double>(column[i]));
    }
}

}  // namespace

TEST(every_element_type_is_read) {
    check_extremes<std::int8_t>(ElementType::int8);
    check_extremes<std::int16_t>(ElementType::int16);
    check_extremes<std::int32_t>(ElementType::int32);
    check_extremes<std::int64_t>(ElementType::int64);
    check_extremes<std::uint8_t>(ElementType::uint8);
    check_extremes<std::uint16_t>(ElementType::uint16);
    check_extremes<std::uint32_t>(ElementType::uint32);
    check_extremes<std::uint64_t>(ElementType::uint64);
    check_extremes<float>(ElementType::float32);
    check_extremes<double>(ElementType::float64);
    const std::vector<std::uint8_t> flags{0, 1, 255};
    CHECK(loaded(flags, ElementType::boolean) == (std::vector<double>{0.0, 1.0, 1.0}));
}

TEST(nan_and_infinity_survive) {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<double> out =
        loaded(std::vector<float>{infinity, -infinity, std::nanf("")}, ElementType::float32);
    CHECK(out[0] == HUGE_VAL && out[1] == -HUGE_VAL && std::isnan(out[2]));
}

TEST(every_half_precision_number_is_exact) {
    for (int bits = 0; bits < 0x10000; ++bits) {
        const int exponent = (bits >> 10) & 31;
        const int mantissa = bits & 1023;
        const float value = float16_to_float(static_cast<std::uint16_t>(bits));
        CHECK_EQUAL(std::signbit(value), (bits & 0x8000) != 0);
        if (exponent == 31) {
            CHECK_EQUAL(std::isnan(value), mantissa != 0);
            CHECK_EQUAL(std::isinf(value), mantissa == 0);
            continue;
        }
        const double size =
            exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
        CHECK_EQUAL(std::fabs(static_cast<double>(value)), size);
    }
}

TEST(bfloat16_is_the_upper_half_of_a_float) {
    for (const float x : {1.0f, -2.5f, 0.0f, 3e38f, 0x1p-126f}) {
        std::uint32_t bits;
        std::memcpy(&bits, &x, sizeof bits);
        bits &= 0xffff0000u;
        float expected;
        std::memcpy(&expected, &bits, sizeof bits);
        CHECK_EQUAL(bfloat16_to_float(static_cast<std::uint16_t>(bits >> 16)), expected);
    }
}

TEST(strides_may_be_negative_zero_or_odd) {
    // Packed records of one byte and one float: the floats are not aligned.
    std::vector<char> records(5 * 4);
    for (int row = 0; row < 4; ++row) {
        const float value = static_cast<float>(row) + 0.25f;
        std::memcpy(records.data() + 5 * row + 1, &value, sizeof value);
    }
    const auto column = [&](const char* data, std::int64_t row_stride) {
        std::vector<double> out(4);
        const MatrixView matrix{data, 4, 1, row_stride, 0, ElementType::float32};
        load_feature(matrix, 0, nullptr, 0, 4, out.data(), 1);
        return out;
    };
    CHECK(column(records.data() + 1, 5) == (std::vector<double>{0.25, 1.25, 2.25, 3.25}));
    CHECK(column(records.data() + 16, -5) == (std::vector<double>{3.25, 2.25, 1.25, 0.25}));
    CHECK(column(records.data() + 6, 0) == (std::vector<double>{1.25, 1.25, 1.25, 1.25}));
}

TEST(chosen_rows_are_read_in_their_order) {
    const std::vector<std::int32_t> x{10, 11, 12, 13, 14, 15};  // 3 rows, 2 features
    const std::vector<std::int64_t> rows{2, 0, 2, 1};
    const MatrixView matrix{
        reinterpret_cast<const char*>(x.data()), 3, 2, 8, 4, ElementType::int32};
    std::vector<double> out(6, -1.0);
    load_feature(matrix, 1, rows.data(), 1, 3, out.data(), 2);
    CHECK(out == (std::vector<double>{11.0, -1.0, 15.0, -1.0, 13.0, -1.0}));
}

TEST_MAIN()
