// All native kernels. Each is stateless, works on buffers of its caller, and returns when its
// results can be read. Results do not depend on n_threads: sums are integers, maxima have no order.
//
// What becomes an address is validated: trees by check_tree, row ids where they are read,
// all else where Python enters; see cpu/checks.h. A bin code beyond its feature's codes, which
// transpose_bins looks for, makes sums wrong and leaves no buffer.
#pragma once

#include "cpu/matrix_view.h"
#include "cpu/views.h"
#include "shared/metric_math.h"
#include "shared/objective_math.h"

#include <cstdint>

namespace torchgbdt {

// --- data ---------------------------------------------------------------------------------------

// The distinct values of features first_feature, ..: ascending, NaN left out, -0 as +0. values:
// (n_features, limit); counts: (n_features,), limit + 1 where there are more than `limit`, at most
// 255. kept_rows as in bin_features.
void distinct_values(const MatrixView& matrix, const std::int64_t* kept_rows, std::int64_t n_kept,
                     std::int64_t first_feature, std::int64_t n_features, std::int64_t limit,
                     double* values, std::int64_t* counts, int n_threads);

// Rows of features first_feature, ..: each column ascending, -0 as +0 and NaN last. columns:
// (n_features, n_chosen). rows: (n_chosen,), or null for all rows of the matrix.
void sort_columns(const MatrixView& matrix, const std::int64_t* rows, std::int64_t n_chosen,
                  std::int64_t first_feature, std::int64_t n_features, double* columns,
                  int n_threads);

// Cuts ascending values, each of which weighs 1, into at most n_bins bins of like weight. Writes
// the thresholds, (n_bins - 1,), and returns how many there are.
std::int64_t cut_column(const double* values, std::int64_t n_values, std::int64_t n_bins,
                        double* thresholds);

// Quantizes X: bins[i, f] = number of thresholds of f below x, or the missing code where x is NaN.
// kept_rows: rows of the matrix, (n_kept,), or null for all rows; then n_kept = matrix.n_rows.
void bin_features(const MatrixView& matrix, const std::int64_t* kept_rows, std::int64_t n_kept,
                  const Thresholds& thresholds, std::uint8_t* bins, int n_threads);

// columns[f, row] = bins[row, f]. Throws if a code is beyond its feature's missing code.
void transpose_bins(const BinMatrix& bins, const std::int32_t* n_value_bins, std::uint8_t* columns,
                    int n_threads);

// gathered[i] = given[rows[i]]: rows of `width` bytes each. Throws if there is no such row.
void gather_rows(const std::uint8_t* given, std::int64_t n_given, std::int64_t width,
                 const RowId* rows, std::int64_t n_rows, std::uint8_t* gathered, int n_threads);

// row_order = 0, 1, ..., n_rows - 1.
void sample_rows(RowId* row_order, std::int64_t n_rows, int n_threads);

// --- gradients ----------------------------------------------------------------------------------

// Maxima are infinite or NaN where a number is. Without rows everything is 0.
struct GradientExtremes {
    float largest_gradient = 0.0f;
    float largest_hessian = 0.0f;
    float smallest_hessian = 0.0f;
    bool finite = true;
};

// What an objective reads. predictions: (n_rows, n_columns), sums of leaf values.
struct ObjectiveRows {
    const float* predictions;
    const float* labels;   // (n_rows,); codes where labels are classes
    const float* weights;  // (n_rows,), or null if all are 1
    std::int64_t n_rows;
    std::int64_t n_columns;
    const float* baseline = nullptr;  // (n_columns, 2), high and low; null where labels are centred
    const float* margins = nullptr;   // as predictions; null where there are none
};

// Softmax terms of each row: its largest raw prediction; then, for all rows, the sum of the other
// classes' exp(x - largest). terms: (2, n_rows). Labels and weights are not read.
void compute_softmax_terms(const ObjectiveRows& rows, float* terms, int n_threads);

// Writes gradients and, unless hessians is null (all are 1 then), Hessians of one output;
// (n_rows,). softmax_terms: of these predictions; read by that objective alone.
GradientExtremes compute_gradients(ObjectiveKind objective, const ObjectiveRows& rows,
                                   std::int64_t output, const float* softmax_terms,
                                   float* gradients, float* hessians, int n_threads);

// Copies gradients computed elsewhere, (n_rows, n_outputs), flushed; extremes: (n_outputs,). Where
// hessians is null, the given ones must be 1.
void load_gradients(const float* given_gradients, const float* given_hessians, std::int64_t n_rows,
                    int n_outputs, float* gradients, float* hessians, GradientExtremes* extremes,
                    int n_threads);

// Rounds to fixed point. scales, totals: (n_outputs, 2), gradient then Hessian. hessians is not
// read if the Hessian is constant. Returns how many Hessians were raised: positive, rounded to 0,
// and made 1.
std::int64_t round_gradients(const float* gradients, const float* hessians, std::int64_t n_rows,
                             const Words& words, const std::int64_t* scales,
                             std::int32_t* fixed_point, std::int64_t* totals, int n_threads);

// --- portable functions -------------------------------------------------------------------------

// The functions of shared/portable_math.h.
enum class PortableFunction : std::int32_t { exp = 0, log = 1, log1p = 2 };

// results[i] = function(x[i]); (count,). No run calls it: tests compare it with core/portable_math.
void portable_math(PortableFunction function, const float* x, std::int64_t count, float* results,
                   int n_threads);

// --- a level ------------------------------------------------------------------------------------

// histograms: (n_slots, total_bins, words.per_cell()). Writes the slots of nodes with `build`.
void build_histograms(const BinMatrix& bins, const FeatureBins& features, const Words& words,
                      const RowId* row_order, const std::int32_t* fixed_point,
                      const NodeRecord* nodes, std::int64_t n_nodes, std::int64_t* histograms,
                      int n_threads);

// For nodes without `build`: histogram[slot] -= histogram[sibling_slot], of slot_size words each.
void subtract_histograms(const NodeRecord* nodes, std::int64_t n_nodes, std::int64_t slot_size,
                         std::int64_t* histograms, int n_threads);

// SplitRules of core/splits.py.
struct SplitRules {
    double reg_lambda;
    double gamma;
    std::int64_t min_samples_leaf;
    const std::int64_t* min_hessian;  // (n_outputs,)
    const std::int64_t* scales;       // (n_outputs, 2)
};

// sums, left_sums: (n_nodes, n_outputs, 2). splits: (n_nodes,).
void find_splits(const FeatureBins& features, const Words& words, const std::int64_t* histograms,
                 const NodeRecord* nodes, const std::int64_t* sums, std::int64_t n_nodes,
                 const SplitRules& rules, SplitRecord* splits, std::int64_t* left_sums,
                 int n_threads);

// The three above in one pass, bit for bit; a node without `build` lies beside its sibling. Slots
// hold their nodes' histograms afterwards if `keep`; else what is in them is nobody's.
void search_level(const BinMatrix& bins, const FeatureBins& features, const Words& words,
                  const RowId* row_order, const std::int32_t* fixed_point, const NodeRecord* nodes,
                  const std::int64_t* sums, std::int64_t n_nodes, const SplitRules& rules,
                  bool keep, std::int64_t* histograms, SplitRecord* splits, std::int64_t* left_sums,
                  int n_threads);

// routed: row_order with the rows of each node partitioned. columns: transposed bins. row_order,
// sides, routed: (n_ordered,); sides is scratch memory. left_rows: (n_nodes,).
void route_rows(const std::uint8_t* columns, std::int64_t n_rows, const std::int32_t* n_value_bins,
                const NodeRecord* nodes, const SplitRecord* splits, std::int64_t n_nodes,
                const RowId* row_order, std::int64_t n_ordered, std::uint8_t* sides, RowId* routed,
                std::int64_t* left_rows, int n_threads);

// --- predictions --------------------------------------------------------------------------------

// predictions: (n_rows, n_columns). A tree with one value per leaf adds to column `output`, another
// to all columns.
void update_predictions(const BinColumns& columns, const std::int32_t* n_value_bins,
                        const TreeView& tree, std::int64_t output, std::int64_t n_columns,
                        float* predictions, int n_threads);

// What was routed since row_order held all rows of the root: nodes, parents before children.
struct RoutedNodes {
    const NodeRecord* nodes;
    const SplitRecord* splits;
    const std::int64_t* left_rows;
    std::int64_t n_nodes;
};

// As update_predictions, for the rows of row_order, each of which occurs once. If they were routed
// through this tree, only what is left of their way is asked; otherwise it returns false and
// changes nothing.
bool update_routed(const BinColumns& columns, const std::int32_t* n_value_bins,
                   const TreeView& tree, const RoutedNodes& routed, const RowId* row_order,
                   std::int64_t n_ordered, std::int64_t output, std::int64_t n_columns,
                   float* predictions, int n_threads);

// sums: (n_rows, n_columns). Tree t with one value per leaf adds to column t mod n_columns.
void predict(const ForestView& forest, const MatrixView& matrix, std::int64_t n_columns,
             float* sums, int n_threads);

// leaves: (n_rows, n_trees), node indices counted from each tree's root.
void predict_leaves(const ForestView& forest, const MatrixView& matrix, std::int32_t* leaves,
                    int n_threads);

// --- metrics ------------------------------------------------------------------------------------

struct LossExtremes {
    float largest = 0.0f;  // infinite or NaN where a loss is
    bool finite = true;
};

// losses: (n_rows,), weighted. Metrics of one column read the first.
LossExtremes compute_losses(MetricKind metric, const ObjectiveRows& rows, float* losses,
                            int n_threads);

// Sum of round_half_even(loss * 2^scale); every term and the sum must fit into int64.
std::int64_t sum_losses(const float* losses, std::int64_t n_rows, std::int32_t scale,
                        int n_threads);

}  // namespace torchgbdt
