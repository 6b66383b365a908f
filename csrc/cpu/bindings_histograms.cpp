// Bindings of the kernels that make histograms and search them.
#include "cpu/bindings_arguments.h"
#include "cpu/bindings_gil.h"
#include "cpu/kernels.h"

namespace torchgbdt {
namespace {

using namespace nb::literals;

FeatureBins feature_bins(const In<std::int32_t, 1>& n_value_bins,
                         const In<std::int64_t, 1>& bin_offsets) {
    require(length(bin_offsets) == length(n_value_bins) + 1,
            "bin_offsets must have one entry more than n_value_bins");
    const FeatureBins features{n_value_bins.data(), bin_offsets.data(), length(n_value_bins)};
    check_feature_bins(features);
    return features;
}

void check_histogram_rows(const Bytes& bins, const FeatureBins& features,
                          const In<std::int32_t, 2>& fixed_point) {
    require(features.n_features == length(bins, 1), "bins have another number of features");
    require(length(fixed_point) == length(bins), "fixed_point must be (n_rows, n_words)");
}

void check_histogram_slots(const Out<std::int64_t, 3>& histograms, const FeatureBins& features,
                           const Words& words) {
    require(
        length(histograms, 1) == features.total_bins() && length(histograms, 2) == words.per_cell(),
        "histograms must be (n_slots, total_bins, 1 + n_words)");
}

void check_search(std::int64_t n_nodes, const In<std::int64_t, 3>& sums, const Words& words,
                  const In<std::int64_t, 1>& min_hessian, const In<std::int64_t, 2>& scales,
                  std::int64_t n_splits, const Out<std::int64_t, 3>& left_sums) {
    const std::int64_t n_outputs = words.n_outputs;
    require(length(sums) == n_nodes && length(sums, 2) == 2,
            "sums must be (n_nodes, n_outputs, 2)");
    require(length(left_sums) == n_nodes && length(left_sums, 1) == n_outputs &&
                length(left_sums, 2) == 2,
            "left_sums must be (n_nodes, n_outputs, 2)");
    require(n_splits == n_nodes, "splits must be (n_nodes,)");
    require(length(min_hessian) == n_outputs, "min_hessian must be (n_outputs,)");
    require(length(scales) == n_outputs && length(scales, 1) == 2, "scales must be (n_outputs, 2)");
    check_scales(scales.data(), words);
}

void bind_build_histograms(Bytes bins, In<std::int32_t, 1> n_value_bins,
                           In<std::int64_t, 1> bin_offsets, In<RowId, 1> row_order,
                           In<std::int32_t, 2> fixed_point, nb::object nodes,
                           Out<std::int64_t, 3> histograms, int n_outputs, int n_threads) {
    const FeatureBins features = feature_bins(n_value_bins, bin_offsets);
    const Words words = words_of(length(fixed_point, 1), n_outputs);
    const Records<NodeRecord> records(nodes);
    check_thread_count(n_threads);
    check_histogram_rows(bins, features, fixed_point);
    check_histogram_slots(histograms, features, words);
    check_nodes(records.data(), records.size(), length(row_order));
    check_slots(records.data(), records.size(), length(histograms));
    const ReleasedGil released;
    build_histograms(bin_matrix(bins), features, words, row_order.data(), fixed_point.data(),
                     records.data(), records.size(), histograms.data(), n_threads);
}

void bind_subtract_histograms(nb::object nodes, Out<std::int64_t, 3> histograms, int n_threads) {
    const Records<NodeRecord> records(nodes);
    check_thread_count(n_threads);
    check_slots(records.data(), records.size(), length(histograms));
    const std::int64_t slot_size = length(histograms, 1) * length(histograms, 2);
    const ReleasedGil released;
    subtract_histograms(records.data(), records.size(), slot_size, histograms.data(), n_threads);
}

void bind_find_splits(In<std::int32_t, 1> n_value_bins, In<std::int64_t, 1> bin_offsets,
                      In<std::int64_t, 3> histograms, nb::object nodes, In<std::int64_t, 3> sums,
                      double reg_lambda, double gamma, std::int64_t min_samples_leaf,
                      In<std::int64_t, 1> min_hessian, In<std::int64_t, 2> scales,
                      nb::object splits, Out<std::int64_t, 3> left_sums, int n_threads) {
    const FeatureBins features = feature_bins(n_value_bins, bin_offsets);
    const Words words = words_of(length(histograms, 2) - 1, length(sums, 1));
    const Records<NodeRecord> records(nodes);
    const Records<SplitRecord> found(splits, PyBUF_WRITABLE);
    const std::int64_t n_nodes = records.size();
    check_thread_count(n_threads);
    require(length(histograms, 1) == features.total_bins(), "histograms have other bins");
    check_search(n_nodes, sums, words, min_hessian, scales, found.size(), left_sums);
    check_slots(records.data(), n_nodes, length(histograms));
    const SplitRules rules{reg_lambda, gamma, min_samples_leaf, min_hessian.data(), scales.data()};
    const ReleasedGil released;
    find_splits(features, words, histograms.data(), records.data(), sums.data(), n_nodes, rules,
                found.data(), left_sums.data(), n_threads);
}

void bind_search_level(Bytes bins, In<std::int32_t, 1> n_value_bins,
                       In<std::int64_t, 1> bin_offsets, In<RowId, 1> row_order,
                       In<std::int32_t, 2> fixed_point, nb::object nodes, In<std::int64_t, 3> sums,
                       double reg_lambda, double gamma, std::int64_t min_samples_leaf,
                       In<std::int64_t, 1> min_hessian, In<std::int64_t, 2> scales, bool keep,
                       Out<std::int64_t, 3> histograms, nb::object splits,
                       Out<std::int64_t, 3> left_sums, int n_threads) {
    const FeatureBins features = feature_bins(n_value_bins, bin_offsets);
    const Words words = words_of(length(fixed_point, 1), length(sums, 1));
    const Records<NodeRecord> records(nodes);
    const Records<SplitRecord> found(splits, PyBUF_WRITABLE);
    const std::int64_t n_nodes = records.size();
    check_thread_count(n_threads);
    check_histogram_rows(bins, features, fixed_point);
    check_histogram_slots(histograms, features, words);
    check_search(n_nodes, sums, words, min_hessian, scales, found.size(), left_sums);
    check_nodes(records.data(), n_nodes, length(row_order));
    check_slots(records.data(), n_nodes, length(histograms));
    const SplitRules rules{reg_lambda, gamma, min_samples_leaf, min_hessian.data(), scales.data()};
    const ReleasedGil released;
    search_level(bin_matrix(bins), features, words, row_order.data(), fixed_point.data(),
                 records.data(), sums.data(), n_nodes, rules, keep, histograms.data(), found.data(),
                 left_sums.data(), n_threads);
}

}  // namespace

void bind_histograms(nb::module_& module) {
    module.def("build_histograms", &bind_build_histograms, array("bins"), array("n_value_bins"),
               array("bin_offsets"), array("row_order"), array("fixed_point"), "nodes"_a,
               array("histograms"), "n_outputs"_a, "n_threads"_a,
               "Write the histograms of nodes with `build`.");
    module.def("subtract_histograms", &bind_subtract_histograms, "nodes"_a, array("histograms"),
               "n_threads"_a, "Subtract the sibling from the parent in nodes without `build`.");
    module.def("find_splits", &bind_find_splits, array("n_value_bins"), array("bin_offsets"),
               array("histograms"), "nodes"_a, array("sums"), "reg_lambda"_a, "gamma"_a,
               "min_samples_leaf"_a, array("min_hessian"), array("scales"), "splits"_a,
               array("left_sums"), "n_threads"_a, "Write the best split of each node.");
    module.def("search_level", &bind_search_level, array("bins"), array("n_value_bins"),
               array("bin_offsets"), array("row_order"), array("fixed_point"), "nodes"_a,
               array("sums"), "reg_lambda"_a, "gamma"_a, "min_samples_leaf"_a, array("min_hessian"),
               array("scales"), "keep"_a, array("histograms"), "splits"_a, array("left_sums"),
               "n_threads"_a,
               "Build, subtract and search in one pass; write the best split of each node.");
}

}  // namespace torchgbdt
