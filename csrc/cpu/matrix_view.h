// Read-only view of the user's matrix X where it lies: any element type, any strides.
#pragma once

#include <cstdint>

namespace torchgbdt {

enum class ElementType {
    boolean,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    bfloat16,
    float32,
    float64,
};

// Element (row, feature) lies at data + row * row_stride + feature * feature_stride, in bytes.
// Strides may be negative, zero, or no multiple of the element size.
struct MatrixView {
    const char* data;
    std::int64_t n_rows;
    std::int64_t n_features;
    std::int64_t row_stride;
    std::int64_t feature_stride;
    ElementType type;
};

// Whether float32 holds every value of a type exactly.
bool fits_float32(ElementType type);

// Writes a stretch of one feature as float64 to out[0], out[out_stride], ...; exact for every value
// but 64-bit integers beyond 2^53, which are rounded to nearest. NaN stays NaN (it means missing).
//
// Reads rows begin..begin+count-1, or, if `rows` is given, rows[begin..begin+count-1]. As float32
// for types that fit alone.
void load_feature(const MatrixView& matrix, std::int64_t feature, const std::int64_t* rows,
                  std::int64_t begin, std::int64_t count, double* out, std::int64_t out_stride);
void load_feature(const MatrixView& matrix, std::int64_t feature, const std::int64_t* rows,
                  std::int64_t begin, std::int64_t count, float* out, std::int64_t out_stride);

// IEEE 754 binary16 and the upper half of a binary32, from their bits.
float float16_to_float(std::uint16_t bits);
float bfloat16_to_float(std::uint16_t bits);

}  // namespace torchgbdt
