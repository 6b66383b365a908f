// Bindings of the kernels that read X: binning and prediction.
#include "cpu/bindings_arguments.h"
#include "cpu/bindings_gil.h"
#include "cpu/kernels.h"

#include <cstring>

namespace torchgbdt {
namespace {

using namespace nb::literals;

constexpr std::int64_t kMaxDistinct = 255;  // as many as there are value bins

ElementType integer_type(Py_ssize_t size, bool is_signed) {
    switch (size) {
        case 1:
            return is_signed ? ElementType::int8 : ElementType::uint8;
        case 2:
            return is_signed ? ElementType::int16 : ElementType::uint16;
        case 4:
            return is_signed ? ElementType::int32 : ElementType::uint32;
        default:
            return is_signed ? ElementType::int64 : ElementType::uint64;
    }
}

// The element type of a buffer, from its format in the notation of Python's struct module.
ElementType element_type(const Py_buffer& buffer) {
    const std::uint16_t one = 1;
    const bool is_little_endian = *reinterpret_cast<const unsigned char*>(&one) == 1;
    const char* native_orders = is_little_endian ? "@=^|<" : "@=^|>!";
    const char* format = buffer.format;
    if (*format != '\0' && std::strchr(native_orders, *format) != nullptr) {
        ++format;
    }
    if (std::strlen(format) == 1) {
        if (std::strchr("bhilqn", *format) != nullptr) {
            return integer_type(buffer.itemsize, true);
        }
        if (std::strchr("BHILQN", *format) != nullptr) {
            return integer_type(buffer.itemsize, false);
        }
        switch (*format) {
            case '?':
                return ElementType::boolean;
            case 'e':
                return ElementType::float16;
            case 'f':
                return ElementType::float32;
            case 'd':
                return ElementType::float64;
            default:
                break;
        }
    }
    throw nb::type_error(
        "X must hold booleans, integers or floats of at most 64 bits in native byte order");
}

}  // namespace

Matrix::Matrix(nb::handle object, bool is_bfloat16)
    : buffer_(object, PyBUF_RECORDS_RO, "X must be an array") {
    const Py_buffer& buffer = buffer_.view();
    if (buffer.ndim != 2) {
        throw nb::type_error("X must be 2-D");
    }
    ElementType type = element_type(buffer);
    if (is_bfloat16) {
        if (type != ElementType::uint16) {
            throw nb::type_error("bfloat16 must come as uint16");
        }
        type = ElementType::bfloat16;
    }
    view_ = {static_cast<const char*>(buffer.buf),
             buffer.shape[0],
             buffer.shape[1],
             buffer.strides[0],
             buffer.strides[1],
             type};
}

namespace {

void check_features(std::int64_t first, std::int64_t count, const MatrixView& matrix) {
    require(first >= 0 && first <= matrix.n_features && count <= matrix.n_features - first,
            "X has not so many features");
}

void bind_distinct_values(nb::object x, bool is_bfloat16,
                          std::optional<In<std::int64_t, 1>> kept_rows, std::int64_t first_feature,
                          Out<double, 2> values, Out<std::int64_t, 1> counts, int n_threads) {
    const Matrix matrix(x, is_bfloat16);
    const std::int64_t n_kept = kept_rows ? length(*kept_rows) : matrix.view().n_rows;
    const std::int64_t n_features = length(values), limit = length(values, 1);
    check_thread_count(n_threads);
    check_features(first_feature, n_features, matrix.view());
    require(length(counts) == n_features, "values and counts are of different features");
    require(limit >= 1 && limit <= kMaxDistinct, "limit must lie in 1..255");
    const ReleasedGil released;
    if (kept_rows) {
        check_rows(kept_rows->data(), n_kept, matrix.view().n_rows);
    }
    distinct_values(matrix.view(), data_or_null(kept_rows), n_kept, first_feature, n_features,
                    limit, values.data(), counts.data(), n_threads);
}

void bind_sort_columns(nb::object x, bool is_bfloat16, std::optional<In<std::int64_t, 1>> rows,
                       std::int64_t first_feature, Out<double, 2> columns, int n_threads) {
    const Matrix matrix(x, is_bfloat16);
    const std::int64_t n_chosen = rows ? length(*rows) : matrix.view().n_rows;
    check_thread_count(n_threads);
    check_features(first_feature, length(columns), matrix.view());
    require(length(columns, 1) == n_chosen, "columns must be (n_features, n_chosen)");
    const ReleasedGil released;
    if (rows) {
        check_rows(rows->data(), n_chosen, matrix.view().n_rows);
    }
    sort_columns(matrix.view(), data_or_null(rows), n_chosen, first_feature, length(columns),
                 columns.data(), n_threads);
}

std::int64_t bind_cut_column(In<double, 1> values, Out<double, 1> thresholds) {
    require(length(thresholds) < kMaxDistinct, "there are at most 255 bins");
    const ReleasedGil released;
    return cut_column(values.data(), length(values), length(thresholds) + 1, thresholds.data());
}

void bind_bin_features(nb::object x, bool is_bfloat16, std::optional<In<std::int64_t, 1>> kept_rows,
                       In<double, 1> thresholds, In<std::int64_t, 1> offsets,
                       In<std::int32_t, 1> n_value_bins, Out<std::uint8_t, 2> bins, int n_threads) {
    const Matrix matrix(x, is_bfloat16);
    const std::int64_t n_features = matrix.view().n_features;
    const std::int64_t n_kept = kept_rows ? length(*kept_rows) : matrix.view().n_rows;
    check_thread_count(n_threads);
    require(length(n_value_bins) == n_features && length(offsets) == n_features + 1,
            "thresholds are of another number of features than X");
    require(length(bins, 0) == n_kept && length(bins, 1) == n_features,
            "bins must be (n_kept, n_features)");
    const Thresholds cuts{thresholds.data(), offsets.data(), n_value_bins.data()};
    check_thresholds(cuts, n_features, length(thresholds));
    const ReleasedGil released;
    if (kept_rows) {
        check_rows(kept_rows->data(), n_kept, matrix.view().n_rows);
    }
    bin_features(matrix.view(), data_or_null(kept_rows), n_kept, cuts, bins.data(), n_threads);
}

// The arrays of a Forest that prediction reads.
ForestView forest_view(const In<std::int64_t, 1>& offsets, const In<std::int32_t, 1>& feature,
                       const In<double, 1>& threshold, const In<std::int32_t, 1>& left,
                       const In<std::uint8_t, 1>& flags, const In<float, 2>& value) {
    const std::int64_t n_nodes = length(feature);
    require(length(threshold) == n_nodes && length(left) == n_nodes && length(flags) == n_nodes &&
                length(value) == n_nodes,
            "the arrays of a forest differ in length");
    require(length(value, 1) >= 1, "leaf values have no outputs");
    require(length(offsets) >= 1, "a forest has no tree offsets");
    check_offsets(offsets.data(), length(offsets) - 1, n_nodes);
    const TreeView nodes{feature.data(), nullptr,      threshold.data(), left.data(),
                         flags.data(),   value.data(), n_nodes,          length(value, 1)};
    return {nodes, offsets.data(), length(offsets) - 1};
}

void bind_predict(In<std::int64_t, 1> offsets, In<std::int32_t, 1> feature, In<double, 1> threshold,
                  In<std::int32_t, 1> left, In<std::uint8_t, 1> flags, In<float, 2> value,
                  nb::object x, bool is_bfloat16, Out<float, 2> sums, int n_threads) {
    const ForestView forest = forest_view(offsets, feature, threshold, left, flags, value);
    const Matrix matrix(x, is_bfloat16);
    check_thread_count(n_threads);
    const std::int64_t n_columns = length(sums, 1);
    require(length(sums) == matrix.view().n_rows && n_columns >= 1, "sums must be (n_rows, n)");
    require(forest.nodes.n_outputs == 1 || forest.nodes.n_outputs == n_columns,
            "sums has another number of columns than leaves have values");
    const ReleasedGil released;
    predict(forest, matrix.view(), n_columns, sums.data(), n_threads);
}

void bind_predict_leaves(In<std::int64_t, 1> offsets, In<std::int32_t, 1> feature,
                         In<double, 1> threshold, In<std::int32_t, 1> left,
                         In<std::uint8_t, 1> flags, In<float, 2> value, nb::object x,
                         bool is_bfloat16, Out<std::int32_t, 2> leaves, int n_threads) {
    const ForestView forest = forest_view(offsets, feature, threshold, left, flags, value);
    const Matrix matrix(x, is_bfloat16);
    check_thread_count(n_threads);
    require(length(leaves) == matrix.view().n_rows && length(leaves, 1) == forest.n_trees,
            "leaves must be (n_rows, n_trees)");
    const ReleasedGil released;
    predict_leaves(forest, matrix.view(), leaves.data(), n_threads);
}

}  // namespace

void bind_data(nb::module_& module) {
    module.def("distinct_values", &bind_distinct_values, "x"_a, "is_bfloat16"_a,
               array("kept_rows").none(), "first_feature"_a, array("values"), array("counts"),
               "n_threads"_a, "Write the distinct values of features that have few.");
    module.def("sort_columns", &bind_sort_columns, "x"_a, "is_bfloat16"_a, array("rows").none(),
               "first_feature"_a, array("columns"), "n_threads"_a,
               "Write chosen rows of some features, each feature's values in ascending order.");
    module.def("cut_column", &bind_cut_column, array("values"), array("thresholds"),
               "Write the quantile thresholds of ascending values; return how many there are.");
    module.def("bin_features", &bind_bin_features, "x"_a, "is_bfloat16"_a,
               array("kept_rows").none(), array("thresholds"), array("offsets"),
               array("n_value_bins"), array("bins"), "n_threads"_a, "Write the bin codes of X.");
    module.def("predict", &bind_predict, array("offsets"), array("feature"), array("threshold"),
               array("left"), array("flags"), array("value"), "x"_a, "is_bfloat16"_a, array("sums"),
               "n_threads"_a, "Add the leaf values of each tree to sums.");
    module.def("predict_leaves", &bind_predict_leaves, array("offsets"), array("feature"),
               array("threshold"), array("left"), array("flags"), array("value"), "x"_a,
               "is_bfloat16"_a, array("leaves"), "n_threads"_a,
               "Write the leaf of each row in each tree.");
}

}  // namespace torchgbdt
