// Bindings of the kernels that grow a tree.
#include "cpu/bindings_arguments.h"
#include "cpu/bindings_gil.h"
#include "cpu/kernels.h"

namespace torchgbdt {
namespace {

using namespace nb::literals;

using Bytes = In<std::uint8_t, 2>;

BinMatrix bin_matrix(const Bytes& bins) {
    return {bins.data(), length(bins, 0), length(bins, 1)};
}

FeatureBins feature_bins(const In<std::int32_t, 1>& n_value_bins,
                         const In<std::int64_t, 1>& bin_offsets) {
    require(length(bin_offsets) == length(n_value_bins) + 1,
            "bin_offsets must have one entry more than n_value_bins");
    const FeatureBins features{n_value_bins.data(), bin_offsets.data(), length(n_value_bins)};
    check_feature_bins(features);
    return features;
}

// The layout of rounded gradients with this many words per row.
Words words_of(std::int64_t n_words, std::int64_t n_outputs) {
    require(n_outputs >= 1 && (n_words == n_outputs || n_words == 2 * n_outputs),
            "words per row match neither a constant nor a general Hessian");
    return {static_cast<int>(n_outputs), n_words == n_outputs};
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

void bind_transpose_bins(Bytes bins, In<std::int32_t, 1> n_value_bins, Out<std::uint8_t, 2> columns,
                         int n_threads) {
    check_thread_count(n_threads);
    require(length(columns, 0) == length(bins, 1) && length(columns, 1) == length(bins, 0),
            "columns must be (n_features, n_rows)");
    require(length(n_value_bins) == length(bins, 1), "n_value_bins must be (n_features,)");
    const ReleasedGil released;
    transpose_bins(bin_matrix(bins), n_value_bins.data(), columns.data(), n_threads);
}

void bind_gather_rows(Bytes given, In<RowId, 1> rows, Out<std::uint8_t, 2> gathered,
                      int n_threads) {
    check_thread_count(n_threads);
    require(length(gathered) == length(rows) && length(gathered, 1) == length(given, 1),
            "gathered must be (n_rows, width)");
    const ReleasedGil released;
    gather_rows(given.data(), length(given), length(given, 1), rows.data(), length(rows),
                gathered.data(), n_threads);
}

void bind_sample_rows(Out<RowId, 1> row_order, int n_threads) {
    check_thread_count(n_threads);
    const ReleasedGil released;
    sample_rows(row_order.data(), length(row_order), n_threads);
}

std::int64_t bind_round_gradients(In<float, 2> gradients, std::optional<In<float, 2>> hessians,
                                  In<std::int64_t, 2> scales, Out<std::int32_t, 2> fixed_point,
                                  Out<std::int64_t, 2> totals, int n_threads) {
    const std::int64_t n_rows = length(gradients);
    const std::int64_t n_outputs = length(gradients, 1);
    const Words words = words_of(length(fixed_point, 1), n_outputs);
    check_thread_count(n_threads);
    require(length(fixed_point) == n_rows, "fixed_point must be (n_rows, n_words)");
    require(words.constant_hessian != hessians.has_value(),
            "hessians must be given exactly if they are not constant");
    require(!hessians || (length(*hessians) == n_rows && length(*hessians, 1) == n_outputs),
            "hessians must be (n_rows, tree_outputs)");
    require(length(scales) == n_outputs && length(scales, 1) == 2, "scales must be (n_outputs, 2)");
    require(length(totals) == n_outputs && length(totals, 1) == 2, "totals must be (n_outputs, 2)");
    check_scales(scales.data(), words);
    const ReleasedGil released;
    return round_gradients(gradients.data(), data_or_null(hessians), n_rows, words, scales.data(),
                           fixed_point.data(), totals.data(), n_threads);
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

void bind_route_rows(Bytes columns, In<std::int32_t, 1> n_value_bins, nb::object nodes,
                     nb::object splits, In<RowId, 1> row_order, Out<std::uint8_t, 1> sides,
                     Out<RowId, 1> routed, Out<std::int64_t, 1> left_rows, int n_threads) {
    const Records<NodeRecord> records(nodes);
    const Records<SplitRecord> found(splits);
    check_thread_count(n_threads);
    require(length(n_value_bins) == length(columns), "n_value_bins must be (n_features,)");
    check_value_bins(n_value_bins.data(), length(n_value_bins));
    require(found.size() == records.size() && length(left_rows) == records.size(),
            "nodes, splits and left_rows differ in length");
    require(length(sides) == length(row_order) && length(routed) == length(row_order),
            "row_order, sides and routed differ in length");
    check_nodes(records.data(), records.size(), length(row_order));
    check_splits(found.data(), found.size(), length(columns));
    const ReleasedGil released;
    route_rows(columns.data(), length(columns, 1), n_value_bins.data(), records.data(),
               found.data(), records.size(), row_order.data(), length(row_order), sides.data(),
               routed.data(), left_rows.data(), n_threads);
}

// What both ways to add a tree are given, checked.
struct TreeAndPredictions {
    TreeAndPredictions(const Bytes& columns, const In<std::int32_t, 1>& n_value_bins,
                       const In<std::int32_t, 1>& feature, const In<std::int32_t, 1>& split_bin,
                       const In<std::int32_t, 1>& left, const In<std::uint8_t, 1>& flags,
                       const In<float, 2>& value, int output, const Out<float, 2>& predictions,
                       int n_threads)
        : tree{feature.data(), split_bin.data(), nullptr,         left.data(),
               flags.data(),   value.data(),     length(feature), length(value, 1)},
          columns{columns.data(), length(columns, 1), length(columns)},
          n_columns(length(predictions, 1)) {
        check_thread_count(n_threads);
        require(length(split_bin) == tree.n_nodes && length(left) == tree.n_nodes &&
                    length(flags) == tree.n_nodes && length(value) == tree.n_nodes,
                "the arrays of a tree differ in length");
        require(length(n_value_bins) == length(columns), "n_value_bins must be (n_features,)");
        check_value_bins(n_value_bins.data(), length(n_value_bins));
        require(length(predictions) == length(columns, 1),
                "predictions must be (n_rows, n_outputs)");
        require(
            tree.n_outputs == 1 ? output >= 0 && output < n_columns : tree.n_outputs == n_columns,
            "the tree's outputs do not fit the predictions");
    }

    TreeView tree;
    BinColumns columns;
    std::int64_t n_columns;
};

void bind_update_predictions(Bytes columns, In<std::int32_t, 1> n_value_bins,
                             In<std::int32_t, 1> feature, In<std::int32_t, 1> split_bin,
                             In<std::int32_t, 1> left, In<std::uint8_t, 1> flags,
                             In<float, 2> value, int output, Out<float, 2> predictions,
                             int n_threads) {
    const TreeAndPredictions given(columns, n_value_bins, feature, split_bin, left, flags, value,
                                   output, predictions, n_threads);
    const ReleasedGil released;
    update_predictions(given.columns, n_value_bins.data(), given.tree, output, given.n_columns,
                       predictions.data(), n_threads);
}

bool bind_update_routed(Bytes columns, In<std::int32_t, 1> n_value_bins,
                        In<std::int32_t, 1> feature, In<std::int32_t, 1> split_bin,
                        In<std::int32_t, 1> left, In<std::uint8_t, 1> flags, In<float, 2> value,
                        nb::object nodes, nb::object splits, In<std::int64_t, 1> left_rows,
                        In<RowId, 1> row_order, int output, Out<float, 2> predictions,
                        int n_threads) {
    const TreeAndPredictions given(columns, n_value_bins, feature, split_bin, left, flags, value,
                                   output, predictions, n_threads);
    const Records<NodeRecord> records(nodes);
    const Records<SplitRecord> found(splits);
    require(found.size() == records.size() && length(left_rows) == records.size(),
            "nodes, splits and left_rows differ in length");
    const RoutedNodes routed{records.data(), found.data(), left_rows.data(), records.size()};
    const ReleasedGil released;
    return update_routed(given.columns, n_value_bins.data(), given.tree, routed, row_order.data(),
                         length(row_order), output, given.n_columns, predictions.data(), n_threads);
}

}  // namespace

void bind_training(nb::module_& module) {
    module.def("transpose_bins", &bind_transpose_bins, array("bins"), array("n_value_bins"),
               array("columns"), "n_threads"_a, "Write the column-major copy of the bins.");
    module.def("sample_rows", &bind_sample_rows, array("row_order"), "n_threads"_a,
               "Fill the row order with the rows that a tree uses.");
    module.def("gather_rows", &bind_gather_rows, array("given"), array("rows"), array("gathered"),
               "n_threads"_a, "Copy rows of bytes in another order.");
    module.def(
        "round_gradients", &bind_round_gradients, array("gradients"), array("hessians").none(),
        array("scales"), array("fixed_point"), array("totals"), "n_threads"_a,
        "Write gradients in fixed point and their totals; return how many Hessians were raised.");
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
    module.def("route_rows", &bind_route_rows, array("columns"), array("n_value_bins"), "nodes"_a,
               "splits"_a, array("row_order"), array("sides"), array("routed"), array("left_rows"),
               "n_threads"_a, "Partition the rows of each node; write how many went left.");
    module.def("update_predictions", &bind_update_predictions, array("columns"),
               array("n_value_bins"), array("feature"), array("split_bin"), array("left"),
               array("flags"), array("value"), "output"_a, array("predictions"), "n_threads"_a,
               "Add a tree to predictions.");
    module.def("update_routed", &bind_update_routed, array("columns"), array("n_value_bins"),
               array("feature"), array("split_bin"), array("left"), array("flags"), array("value"),
               "nodes"_a, "splits"_a, array("left_rows"), array("row_order"), "output"_a,
               array("predictions"), "n_threads"_a,
               "Add a tree to the predictions of rows that were routed through it, if they were.");
}

}  // namespace torchgbdt
