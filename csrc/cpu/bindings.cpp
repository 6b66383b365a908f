// The Python module torchgbdt._native: names and types only, no arithmetic.
#include "cpu/version.h"

#include <nanobind/nanobind.h>

NB_MODULE(_native, module) {
    module.doc() = "Native kernels of torchgbdt.";
    module.def("version", &torchgbdt::version, "The version this module was compiled as.");
}
