// Bindings of the kernels that compute numbers per row: gradients, losses, portable functions.
#include "cpu/bindings_arguments.h"
#include "cpu/bindings_gil.h"
#include "cpu/kernels.h"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <vector>

namespace torchgbdt {
namespace {

using namespace nb::literals;

using Floats = In<float, 1>;
using Extremes = std::tuple<float, float, float, bool>;

ObjectiveRows objective_rows(const In<float, 2>& predictions, const Floats& labels,
                             const std::optional<Floats>& weights) {
    const std::int64_t n_rows = length(labels);
    require(length(predictions) == n_rows && length(predictions, 1) >= 1,
            "predictions must be (n_rows, n_outputs)");
    require(!weights || length(*weights) == n_rows, "weights must be (n_rows,)");
    return {predictions.data(), labels.data(), data_or_null(weights), n_rows,
            length(predictions, 1)};
}

Extremes as_tuple(const GradientExtremes& extremes) {
    return {extremes.largest_gradient, extremes.largest_hessian, extremes.smallest_hessian,
            extremes.finite};
}

Extremes bind_compute_gradients(int objective, In<float, 2> predictions, Floats labels,
                                std::optional<Floats> weights, Out<float, 1> gradients,
                                std::optional<Out<float, 1>> hessians, int n_threads) {
    const ObjectiveRows rows = objective_rows(predictions, labels, weights);
    check_thread_count(n_threads);
    require(objective == static_cast<int>(ObjectiveKind::squared_error), "unknown objective");
    require(length(gradients) == rows.n_rows, "gradients must be (n_rows,)");
    require(!hessians || length(*hessians) == rows.n_rows, "hessians must be (n_rows,)");
    require(hessians || !weights, "with weights the Hessian is not constant");
    const ReleasedGil released;
    return as_tuple(compute_gradients(static_cast<ObjectiveKind>(objective), rows, gradients.data(),
                                      hessians ? hessians->data() : nullptr, n_threads));
}

std::vector<Extremes> bind_load_gradients(In<float, 2> given_gradients, In<float, 2> given_hessians,
                                          Out<float, 2> gradients,
                                          std::optional<Out<float, 2>> hessians, int n_threads) {
    const std::int64_t n_rows = length(gradients);
    const std::int64_t n_outputs = length(gradients, 1);
    const auto fits = [&](const auto& array) {
        return length(array) == n_rows && length(array, 1) == n_outputs;
    };
    check_thread_count(n_threads);
    require(fits(given_gradients) && fits(given_hessians) && (!hessians || fits(*hessians)),
            "gradients and Hessians must be (n_rows, tree_outputs)");
    std::vector<GradientExtremes> extremes(static_cast<std::size_t>(n_outputs));
    {
        const ReleasedGil released;
        load_gradients(given_gradients.data(), given_hessians.data(), n_rows,
                       static_cast<int>(n_outputs), gradients.data(),
                       hessians ? hessians->data() : nullptr, extremes.data(), n_threads);
    }
    std::vector<Extremes> result;
    for (const GradientExtremes& of_output : extremes) {
        result.push_back(as_tuple(of_output));
    }
    return result;
}

std::tuple<float, bool> bind_compute_losses(int metric, In<float, 2> predictions, Floats labels,
                                            std::optional<Floats> weights, Out<float, 1> losses,
                                            int n_threads) {
    const ObjectiveRows rows = objective_rows(predictions, labels, weights);
    check_thread_count(n_threads);
    require(metric == static_cast<int>(MetricKind::squared_error) ||
                metric == static_cast<int>(MetricKind::absolute_error),
            "unknown metric");
    require(length(losses) == rows.n_rows, "losses must be (n_rows,)");
    const ReleasedGil released;
    const LossExtremes extremes =
        compute_losses(static_cast<MetricKind>(metric), rows, losses.data(), n_threads);
    return {extremes.largest, extremes.finite};
}

std::int64_t bind_sum_losses(Floats losses, int scale, int n_threads) {
    const std::int64_t scales[] = {scale, 0};
    check_thread_count(n_threads);
    check_scales(scales, Words{1, false});
    const ReleasedGil released;
    return sum_losses(losses.data(), length(losses), scale, n_threads);
}

void bind_portable_math(int function, Floats x, Out<float, 1> results, int n_threads) {
    check_thread_count(n_threads);
    require(function >= 0 && function <= static_cast<int>(PortableFunction::log1p),
            "unknown function");
    require(length(results) == length(x), "x and results differ in length");
    const ReleasedGil released;
    portable_math(static_cast<PortableFunction>(function), x.data(), length(x), results.data(),
                  n_threads);
}

}  // namespace

void bind_losses(nb::module_& module) {
    module.def("compute_gradients", &bind_compute_gradients, "objective"_a, array("predictions"),
               array("labels"), array("weights").none(), array("gradients"),
               array("hessians").none(), "n_threads"_a,
               "Write gradients; return (max |g|, max h, min h, all finite).");
    module.def("load_gradients", &bind_load_gradients, array("given_gradients"),
               array("given_hessians"), array("gradients"), array("hessians").none(), "n_threads"_a,
               "Copy gradients; return (max |g|, max h, min h, finite) per output.");
    module.def("compute_losses", &bind_compute_losses, "metric"_a, array("predictions"),
               array("labels"), array("weights").none(), array("losses"), "n_threads"_a,
               "Write weighted losses; return (the largest, all finite).");
    module.def("sum_losses", &bind_sum_losses, array("losses"), "scale"_a, "n_threads"_a,
               "Sum losses in fixed point.");
    module.def("portable_math", &bind_portable_math, "function"_a, array("x"), array("results"),
               "n_threads"_a, "Write exp (0), log (1) or log1p (2) of each number; for tests.");
}

}  // namespace torchgbdt
