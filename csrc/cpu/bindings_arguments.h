// How Python objects become views. Arrays are used where they lie: a wrong dtype, number of axes or
// order is a TypeError, and sizes that do not fit together are a ValueError.
#pragma once

#include "cpu/checks.h"
#include "cpu/matrix_view.h"
#include "cpu/views.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>

namespace torchgbdt {

namespace nb = nanobind;

// C-ordered arrays on the host. In: may be read-only.
template <typename T, std::size_t kDimensions>
using In = nb::ndarray<const T, nb::ndim<kDimensions>, nb::c_contig, nb::device::cpu>;
template <typename T, std::size_t kDimensions>
using Out = nb::ndarray<T, nb::ndim<kDimensions>, nb::c_contig, nb::device::cpu>;

// An array argument: never converted, since a converted copy of an output would be lost.
inline auto array(const char* name) {
    return nb::arg(name).noconvert();
}

template <typename Array>
std::int64_t length(const Array& array, std::size_t axis = 0) {
    return static_cast<std::int64_t>(array.shape(axis));
}

template <typename Array>
const typename Array::Scalar* data_or_null(const std::optional<Array>& array) {
    return array ? array->data() : nullptr;
}

// Holds an object's buffer for as long as it lives.
class Buffer {
  public:
    Buffer(nb::handle object, int flags, const char* expected) {
        if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) {
            PyErr_Clear();
            throw nb::type_error(expected);
        }
    }
    ~Buffer() { PyBuffer_Release(&view_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    const Py_buffer& view() const { return view_; }

  private:
    Py_buffer view_{};
};

// A C-ordered 1-D array of records of one structured dtype.
template <typename Record>
class Records {
  public:
    Records(nb::handle object, int writable = 0)
        : buffer_(object, PyBUF_C_CONTIGUOUS | writable, "expected a C-ordered array of records") {
        const Py_buffer& view = buffer_.view();
        if (view.ndim != 1 || view.itemsize != sizeof(Record)) {
            throw nb::type_error("expected a 1-D array of records of the documented dtype");
        }
    }

    Record* data() const { return static_cast<Record*>(buffer_.view().buf); }
    std::int64_t size() const { return buffer_.view().shape[0]; }

  private:
    Buffer buffer_;
};

// X: any 2-D array of numbers in native byte order; bfloat16 comes as uint16 and is_bfloat16.
class Matrix {
  public:
    Matrix(nb::handle object, bool is_bfloat16);

    const MatrixView& view() const { return view_; }

  private:
    Buffer buffer_;
    MatrixView view_;
};

using Bytes = In<std::uint8_t, 2>;

inline BinMatrix bin_matrix(const Bytes& bins) {
    return {bins.data(), length(bins, 0), length(bins, 1)};
}

// The layout of rounded gradients with this many words per row.
inline Words words_of(std::int64_t n_words, std::int64_t n_outputs) {
    require(n_outputs >= 1 && (n_words == n_outputs || n_words == 2 * n_outputs),
            "words per row match neither a constant nor a general Hessian");
    return {static_cast<int>(n_outputs), n_words == n_outputs};
}

void bind_data(nb::module_& module);
void bind_histograms(nb::module_& module);
void bind_losses(nb::module_& module);
void bind_rows(nb::module_& module);

}  // namespace torchgbdt
