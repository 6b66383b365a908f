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
using Columns = In<float, 2>;
using Extremes = std::tuple<float, float, float, bool>;

ObjectiveRows prediction_rows(const Columns& predictions, const std::optional<Columns>& baseline,
                              const std::optional<Columns>& margins) {
    const std::int64_t n_rows = length(predictions), n_columns = length(predictions, 1);
    require(n_columns >= 1, "predictions must be (n_rows, n_outputs)");
    require(!baseline || (length(*baseline) == n_columns && length(*baseline, 1) == 2),
            "baseline must be (n_outputs, 2)");
    require(!margins || (length(*margins) == n_rows && length(*margins, 1) == n_columns),
            "margins must be (n_rows, n_outputs)");
    require(baseline || !margins, "margins without a baseline belong into the labels");
    return {predictions.data(),   nullptr, nullptr, n_rows, n_columns, data_or_null(baseline),
            data_or_null(margins)};
}

ObjectiveRows objective_rows(const Columns& predictions, const Floats& labels,
                             const std::optional<Floats>& weights,
                             const std::optional<Columns>& baseline,
                             const std::optional<Columns>& margins) {
    ObjectiveRows rows = prediction_rows(predictions, baseline, margins);
    require(length(labels) == rows.n_rows, "labels must be (n_rows,)");
    require(!weights || length(*weights) == rows.n_rows, "weights must be (n_rows,)");
    rows.labels = labels.data();
    rows.weights = data_or_null(weights);
    return rows;
}

// Objectives and metrics of classes read raw predictions, others sums of leaf values.
void check_classes(const ObjectiveRows& rows, bool takes_classes, bool takes_columns) {
    require(takes_classes == (rows.baseline != nullptr),
            "a baseline must be given exactly if labels are classes");
    require(!takes_columns || rows.n_columns >= 2, "softmax needs a prediction of each class");
}

Extremes as_tuple(const GradientExtremes& extremes) {
    return {extremes.largest_gradient, extremes.largest_hessian, extremes.smallest_hessian,
            extremes.finite};
}

void bind_compute_softmax_terms(Columns predictions, Columns baseline,
                                std::optional<Columns> margins, Out<float, 2> terms,
                                int n_threads) {
    const ObjectiveRows rows = prediction_rows(predictions, baseline, margins);
    check_thread_count(n_threads);
    check_classes(rows, true, true);
    require(length(terms) == 2 && length(terms, 1) == rows.n_rows, "terms must be (2, n_rows)");
    const ReleasedGil released;
    compute_softmax_terms(rows, terms.data(), n_threads);
}

Extremes bind_compute_gradients(int objective, Columns predictions, Floats labels,
                                std::optional<Floats> weights, std::optional<Columns> baseline,
                                std::optional<Columns> margins,
                                std::optional<Columns> softmax_terms, std::int64_t output,
                                Out<float, 1> gradients, std::optional<Out<float, 1>> hessians,
                                int n_threads) {
    const ObjectiveRows rows = objective_rows(predictions, labels, weights, baseline, margins);
    check_thread_count(n_threads);
    require(objective >= 0 && objective <= static_cast<int>(ObjectiveKind::softmax),
            "unknown objective");
    const auto kind = static_cast<ObjectiveKind>(objective);
    check_classes(rows, kind != ObjectiveKind::squared_error, kind == ObjectiveKind::softmax);
    require(softmax_terms.has_value() == (kind == ObjectiveKind::softmax),
            "softmax terms must be given exactly if the objective is softmax");
    require(
        !softmax_terms || (length(*softmax_terms) == 2 && length(*softmax_terms, 1) == rows.n_rows),
        "softmax terms must be (2, n_rows)");
    require(output >= 0 && output < rows.n_columns, "predictions have no such output");
    require(length(gradients) == rows.n_rows, "gradients must be (n_rows,)");
    require(!hessians || length(*hessians) == rows.n_rows, "hessians must be (n_rows,)");
    require(hessians || (kind == ObjectiveKind::squared_error && !weights),
            "only the Hessian of squared error without weights is constant");
    const ReleasedGil released;
    return as_tuple(compute_gradients(kind, rows, output, data_or_null(softmax_terms),
                                      gradients.data(), hessians ? hessians->data() : nullptr,
                                      n_threads));
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

std::tuple<float, bool> bind_compute_losses(int metric, Columns predictions, Floats labels,
                                            std::optional<Floats> weights,
                                            std::optional<Columns> baseline,
                                            std::optional<Columns> margins, Out<float, 1> losses,
                                            int n_threads) {
    const ObjectiveRows rows = objective_rows(predictions, labels, weights, baseline, margins);
    check_thread_count(n_threads);
    require(metric >= 0 && metric <= static_cast<int>(MetricKind::softmax_error), "unknown metric");
    const auto kind = static_cast<MetricKind>(metric);
    check_classes(rows, kind >= MetricKind::logistic_loss, kind >= MetricKind::softmax_loss);
    require(length(losses) == rows.n_rows, "losses must be (n_rows,)");
    const ReleasedGil released;
    const LossExtremes extremes = compute_losses(kind, rows, losses.data(), n_threads);
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
    module.def("compute_softmax_terms", &bind_compute_softmax_terms, array("predictions"),
               array("baseline"), array("margins").none(), array("terms"), "n_threads"_a,
               "Write what the softmax gradients of all classes share.");
    module.def("compute_gradients", &bind_compute_gradients, "objective"_a, array("predictions"),
               array("labels"), array("weights").none(), array("baseline").none(),
               array("margins").none(), array("softmax_terms").none(), "output"_a,
               array("gradients"), array("hessians").none(), "n_threads"_a,
               "Write gradients; return (max |g|, max h, min h, all finite).");
    module.def("load_gradients", &bind_load_gradients, array("given_gradients"),
               array("given_hessians"), array("gradients"), array("hessians").none(), "n_threads"_a,
               "Copy gradients; return (max |g|, max h, min h, finite) per output.");
    module.def("compute_losses", &bind_compute_losses, "metric"_a, array("predictions"),
               array("labels"), array("weights").none(), array("baseline").none(),
               array("margins").none(), array("losses"), "n_threads"_a,
               "Write weighted losses; return (the largest, all finite).");
    module.def("sum_losses", &bind_sum_losses, array("losses"), "scale"_a, "n_threads"_a,
               "Sum losses in fixed point.");
    module.def("portable_math", &bind_portable_math, "function"_a, array("x"), array("results"),
               "n_threads"_a, "Write exp (0), log (1) or log1p (2) of each number; for tests.");
}

}  // namespace torchgbdt
