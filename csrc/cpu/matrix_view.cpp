#include "cpu/matrix_view.h"

#include "shared/portable.h"

#include <cstring>

namespace torchgbdt {
namespace {

// memcpy: an element of a packed record need not be aligned.
template <typename Stored>
Stored read(const char* place) {
    Stored value;
    std::memcpy(&value, place, sizeof value);
    return value;
}

template <typename Stored>
Stored number(const char* place) {
    return read<Stored>(place);
}

std::uint8_t boolean(const char* place) {
    return read<std::uint8_t>(place) != 0 ? 1 : 0;
}

float float16(const char* place) {
    return float16_to_float(read<std::uint16_t>(place));
}

float bfloat16(const char* place) {
    return bfloat16_to_float(read<std::uint16_t>(place));
}

template <auto load, typename Number>
void load_with(const MatrixView& matrix, std::int64_t feature, const std::int64_t* rows,
               std::int64_t begin, std::int64_t count, Number* out, std::int64_t out_stride) {
    const char* column = matrix.data + feature * matrix.feature_stride;
    if (rows == nullptr) {
        const char* place = column + begin * matrix.row_stride;
        for (std::int64_t i = 0; i < count; ++i) {
            out[i * out_stride] = static_cast<Number>(load(place + i * matrix.row_stride));
        }
        return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
        out[i * out_stride] =
            static_cast<Number>(load(column + rows[begin + i] * matrix.row_stride));
    }
}

template <typename Number>
using Loader = void (*)(const MatrixView&, std::int64_t, const std::int64_t*, std::int64_t,
                        std::int64_t, Number*, std::int64_t);

template <typename Number>
Loader<Number> loader_of(ElementType type) {
    switch (type) {
        case ElementType::boolean:
            return load_with<boolean>;
        case ElementType::int8:
            return load_with<number<std::int8_t>>;
        case ElementType::int16:
            return load_with<number<std::int16_t>>;
        case ElementType::int32:
            return load_with<number<std::int32_t>>;
        case ElementType::int64:
            return load_with<number<std::int64_t>>;
        case ElementType::uint8:
            return load_with<number<std::uint8_t>>;
        case ElementType::uint16:
            return load_with<number<std::uint16_t>>;
        case ElementType::uint32:
            return load_with<number<std::uint32_t>>;
        case ElementType::uint64:
            return load_with<number<std::uint64_t>>;
        case ElementType::float16:
            return load_with<float16>;
        case ElementType::bfloat16:
            return load_with<bfloat16>;
        case ElementType::float32:
            return load_with<number<float>>;
        case ElementType::float64:
            break;
    }
    return load_with<number<double>>;
}

}  // namespace

bool fits_float32(ElementType type) {
    switch (type) {
        case ElementType::boolean:
        case ElementType::int8:
        case ElementType::int16:
        case ElementType::uint8:
        case ElementType::uint16:
        case ElementType::float16:
        case ElementType::bfloat16:
        case ElementType::float32:
            return true;
        default:
            return false;
    }
}

void load_feature(const MatrixView& matrix, std::int64_t feature, const std::int64_t* rows,
                  std::int64_t begin, std::int64_t count, double* out, std::int64_t out_stride) {
    loader_of<double>(matrix.type)(matrix, feature, rows, begin, count, out, out_stride);
}

void load_feature(const MatrixView& matrix, std::int64_t feature, const std::int64_t* rows,
                  std::int64_t begin, std::int64_t count, float* out, std::int64_t out_stride) {
    loader_of<float>(matrix.type)(matrix, feature, rows, begin, count, out, out_stride);
}

float float16_to_float(std::uint16_t bits) {
    const std::uint32_t sign = (bits & 0x8000u) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1fu;
    const std::uint32_t mantissa = bits & 0x3ffu;
    if (exponent == 0) {  // zero and subnormals: mantissa * 2^-24
        const float size = static_cast<float>(mantissa) * 0x1p-24f;
        return sign == 0 ? size : -size;
    }
    const std::uint32_t rebiased = exponent == 31 ? 255u : exponent + (127 - 15);
    return float_from_bits(sign | (rebiased << 23) | (mantissa << 13));
}

float bfloat16_to_float(std::uint16_t bits) {
    return float_from_bits(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace torchgbdt
