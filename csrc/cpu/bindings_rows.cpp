// Bindings of the kernels that go over rows while trees grow: their order, gradients, predictions.
#include "cpu/bindings_arguments.h"
#include "cpu/bindings_gil.h"
#include "cpu/kernels.h"

namespace torchgbdt {
namespace {

using namespace nb::literals;

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
    require(length(row_order) == given.columns.n_rows, "row_order must be (n_rows,)");
    const RoutedNodes routed{records.data(), found.data(), left_rows.data(), records.size()};
    const ReleasedGil released;
    return update_routed(given.columns, n_value_bins.data(), given.tree, routed, row_order.data(),
                         length(row_order), output, given.n_columns, predictions.data(), n_threads);
}

}  // namespace

void bind_rows(nb::module_& module) {
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
