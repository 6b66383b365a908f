// The Python module torchgbdt._native: names and types only, no arithmetic.
#include "cpu/bindings_arguments.h"
#include "cpu/thread_pool.h"
#include "cpu/version.h"

#include <nanobind/nanobind.h>

NB_MODULE(_native, module) {
    module.doc() = "Native kernels of torchgbdt; called by torchgbdt.backends.native only.";
    module.def("version", &torchgbdt::version, "The version this module was compiled as.");
    module.def("pool_size", &torchgbdt::pool_size, "Helper threads that exist in this process.");
    torchgbdt::bind_data(module);
    torchgbdt::bind_losses(module);
    torchgbdt::bind_rows(module);
    torchgbdt::bind_histograms(module);
}
