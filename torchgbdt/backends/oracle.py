"""The oracle: every backend call as plain numpy, written to be read; slow, never automatic.

Sums are accumulated in float64 in row order: rounded gradients are integers up to 2^30, so this is
exact up to 2^23 rows; beyond that sums are accumulated in int64.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from torchgbdt.core.arrays import (
    BIN_DTYPE,
    BinArray,
    BoolArray,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
    RecordArray,
)
from torchgbdt.core.backend import ComputeBackend, LevelBatch, RunRows, RunSettings
from torchgbdt.core.binning import BinThresholds, bin_column
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.errors import StateError
from torchgbdt.core.extremes import GradientExtremes
from torchgbdt.core.feature_source import FeatureSource, row_blocks
from torchgbdt.core.fixed_point import (
    are_raised,
    flush_subnormals,
    round_gradients,
    round_hessians,
    round_losses,
)
from torchgbdt.core.metrics import MeanLoss
from torchgbdt.core.objectives import weighted
from torchgbdt.core.raw_predictions import raw_float32
from torchgbdt.core.splits import Histograms
from torchgbdt.core.tree import Forest, Tree

_EXACT_FLOAT64_ROWS = 2**23


class OracleBackend(ComputeBackend):
    """The reference that every other backend is compared with, bit for bit."""

    name = "oracle"

    def __init__(self) -> None:
        self._run: _OracleRun | None = None

    # --- outside a run -----------------------------------------------------------------------

    def bin_features(
        self,
        source: FeatureSource,
        kept_rows: Int64Array | None,
        thresholds: BinThresholds,
    ) -> BinArray:
        """See ComputeBackend."""
        n_rows = source.n_rows if kept_rows is None else int(kept_rows.size)
        bins = np.empty((n_rows, source.n_features), BIN_DTYPE)
        for feature in range(source.n_features):
            for rows in row_blocks(n_rows, 8):
                if kept_rows is None:
                    values = source.column(feature, rows.start, rows.stop)
                else:
                    columns = slice(feature, feature + 1)
                    values = source.sample(kept_rows[rows], columns)[:, 0]
                bins[rows, feature] = bin_column(values, thresholds, feature)
        return bins

    def predict(self, forest: Forest, source: FeatureSource, sums: Float32Array) -> None:
        """See ComputeBackend."""
        n_outputs = sums.shape[1]
        for rows, values in _float64_blocks(source):
            for index in range(forest.n_trees):
                tree = forest.tree(index)
                leaves = _raw_leaves(tree, values)
                columns = slice(None) if forest.n_outputs == n_outputs else [index % n_outputs]
                with np.errstate(over="ignore"):
                    total = sums[rows, columns] + tree.value[leaves]
                sums[rows, columns] = flush_subnormals(total)

    def predict_leaves(self, forest: Forest, source: FeatureSource, leaves: Int32Array) -> None:
        """See ComputeBackend."""
        for rows, values in _float64_blocks(source):
            for index in range(forest.n_trees):
                leaves[rows, index] = _raw_leaves(forest.tree(index), values)

    # --- a run -------------------------------------------------------------------------------

    def prepare(self, train: RunRows, valids: Sequence[RunRows], settings: RunSettings) -> None:
        """See ComputeBackend."""
        self._run = _OracleRun([train, *valids], settings)

    def release(self) -> None:
        """See ComputeBackend."""
        self._run = None

    @property
    def run(self) -> "_OracleRun":
        """The run in progress."""
        if self._run is None:
            raise StateError("the backend has no run; call prepare first.")
        return self._run

    def sample_rows(self, tree: int) -> int:
        """All rows: row sampling is not built yet."""
        self.run.row_order = np.arange(self.run.datasets[0].n_rows, dtype=np.int64)
        return self.run.row_order.size

    def compute_gradients(self, output: int) -> GradientExtremes:
        """See ComputeBackend."""
        run, train = self.run, self.run.datasets[0]
        gradients, hessians = run.settings.objective.gradients(
            run.seen_predictions(0), train.labels, train.weights
        )
        width = run.settings.tree_outputs
        columns = slice(output * width, (output + 1) * width)
        return self.load_gradients(gradients[:, columns], hessians[:, columns])

    def load_gradients(self, gradients: Float32Array, hessians: Float32Array) -> GradientExtremes:
        """See ComputeBackend."""
        run, rows = self.run, self.run.row_order
        run.gradients, run.hessians = flush_subnormals(gradients), flush_subnormals(hessians)
        g, h = run.gradients[rows].astype(np.float64), run.hessians[rows].astype(np.float64)
        finite = bool(np.isfinite(g).all() and np.isfinite(h).all())
        largest = np.stack((np.abs(g).max(axis=0, initial=0), h.max(axis=0, initial=0)), axis=1)
        return GradientExtremes(largest, float(h.min(initial=np.inf)) if h.size else 0.0, finite)

    def round_gradients(self, scales: Int64Array) -> Int64Array:
        """See ComputeBackend."""
        run = self.run
        run.scales, rows = scales, run.row_order
        for output, (gradient_scale, hessian_scale) in enumerate(scales.tolist()):
            raised = are_raised(run.hessians[rows, output], hessian_scale)
            run.raised_hessians += int(np.count_nonzero(raised))
            run.fixed_g[:, output] = round_gradients(run.gradients[:, output], gradient_scale)
            run.fixed_h[:, output] = round_hessians(run.hessians[:, output], hessian_scale)
        totals = (
            run.fixed_g[rows].sum(axis=0, dtype=np.int64),
            run.fixed_h[rows].sum(axis=0, dtype=np.int64),
        )
        return np.stack(totals, axis=1)

    def build_histograms(self, batch: LevelBatch) -> None:
        """See ComputeBackend."""
        run = self.run
        for node in batch.nodes[batch.nodes["build"]]:
            rows = run.row_order[node["begin"] : node["begin"] + node["n_rows"]]
            for feature in range(run.settings.thresholds.n_features):
                first, end = run.settings.thresholds.bin_offsets[feature : feature + 2]
                bins = run.bins[0][rows, feature]
                run.counts[node["slot"], first:end] = np.bincount(bins, minlength=end - first)
                for output in range(run.settings.tree_outputs):
                    cells = (node["slot"], output, slice(first, end))
                    run.sums_g[cells] = _sums(bins, run.fixed_g[rows, output], end - first)
                    run.sums_h[cells] = _sums(bins, run.fixed_h[rows, output], end - first)

    def exchange_histograms(self, batch: LevelBatch, communicator: Communicator) -> None:
        """See ComputeBackend."""
        for node in batch.nodes[batch.nodes["build"]]:
            for sums in (self.run.counts, self.run.sums_g, self.run.sums_h):
                communicator.sum_int64(sums[node["slot"]])

    def subtract_histograms(self, batch: LevelBatch) -> None:
        """See ComputeBackend."""
        for node in batch.nodes[~batch.nodes["build"]]:
            for sums in (self.run.counts, self.run.sums_g, self.run.sums_h):
                sums[node["slot"]] -= sums[node["sibling_slot"]]

    def read_histograms(self, batch: LevelBatch) -> Histograms:
        """See ComputeBackend."""
        slots, run = batch.nodes["slot"], self.run
        return Histograms(run.counts[slots], run.sums_g[slots], run.sums_h[slots])

    def run_settings(self) -> RunSettings:
        """See ComputeBackend."""
        return self.run.settings

    def run_rows(self, dataset: int) -> RunRows:
        """See ComputeBackend."""
        return self.run.datasets[dataset]

    def route_rows(self, nodes: RecordArray, splits: RecordArray) -> Int64Array:
        """See ComputeBackend."""
        run = self.run
        left_rows = np.zeros(nodes.size, np.int64)
        for index, (node, split) in enumerate(zip(nodes, splits, strict=True)):
            stretch = slice(node["begin"], node["begin"] + node["n_rows"])
            rows = run.row_order[stretch]
            left = _goes_left(
                run.bins[0][rows, split["feature"]],
                split["split_bin"],
                run.settings.thresholds.n_value_bins[split["feature"]],
                split["missing_left"],
            )
            run.row_order[stretch] = np.concatenate((rows[left], rows[~left]))
            left_rows[index] = np.count_nonzero(left)
        return left_rows

    def update_predictions(self, tree: Tree, output: int) -> None:
        """See ComputeBackend."""
        run = self.run
        columns = [output] if tree.value.shape[1] == 1 else slice(None)
        for bins, sums in zip(run.bins, run.predictions, strict=True):
            values = tree.value[_binned_leaves(tree, bins, run.settings.thresholds)]
            with np.errstate(over="ignore"):
                sums[:, columns] = flush_subnormals(sums[:, columns] + values)

    def compute_losses(self, metric: MeanLoss, dataset: int) -> tuple[float, bool]:
        """See ComputeBackend."""
        run, data = self.run, self.run.datasets[dataset]
        losses = metric.row_losses(run.seen_predictions(dataset), data.labels)
        run.losses = weighted(losses, data.weights)
        finite = bool(np.isfinite(run.losses).all())
        return (float(run.losses.max(initial=0)) if finite else 0.0), finite

    def sum_losses(self, scale: int) -> int:
        """See ComputeBackend."""
        return int(round_losses(self.run.losses, scale).sum())

    def read_predictions(self, dataset: int) -> Float32Array:
        """See ComputeBackend."""
        return self.run.predictions[dataset].copy()

    def read_gradients(self) -> tuple[Float32Array, Float32Array]:
        """See ComputeBackend."""
        return self.run.gradients.copy(), self.run.hessians.copy()

    def read_fixed_point(self) -> tuple[Int32Array, Int32Array]:
        """See ComputeBackend."""
        return self.run.fixed_g.copy(), self.run.fixed_h.copy()

    def read_row_order(self) -> Int64Array:
        """See ComputeBackend."""
        return self.run.row_order.copy()

    def diagnostics(self) -> dict[str, Any]:
        """See ComputeBackend."""
        run = self._run
        return {
            "backend": self.name,
            "device": "cpu",
            "n_threads": 1,
            "numpy": np.__version__,
            "launches": 0,
            "synchronizations": 0,
            "bytes_to_host": 0,
            "peak_memory_bytes": 0 if run is None else run.n_bytes(),
            "raised_hessians": 0 if run is None else run.raised_hessians,
        }


class _OracleRun:
    """The buffers of one run."""

    def __init__(self, datasets: list[RunRows], settings: RunSettings) -> None:
        self.datasets = datasets
        self.bins: list[BinArray] = [np.asarray(data.bins) for data in datasets]
        self.settings = settings
        outputs, n_rows = settings.tree_outputs, datasets[0].n_rows
        shape = (settings.n_slots, outputs, settings.thresholds.total_bins)
        self.counts: Int64Array = np.zeros((shape[0], shape[2]), np.int64)
        self.sums_g: Int64Array = np.zeros(shape, np.int64)
        self.sums_h: Int64Array = np.zeros(shape, np.int64)
        self.row_order: Int64Array = np.zeros(0, np.int64)
        self.gradients: Float32Array = np.zeros((n_rows, outputs), np.float32)
        self.hessians: Float32Array = np.zeros((n_rows, outputs), np.float32)
        self.fixed_g: Int32Array = np.zeros((n_rows, outputs), np.int32)
        self.fixed_h: Int32Array = np.zeros((n_rows, outputs), np.int32)
        self.scales: Int64Array = np.zeros((outputs, 2), np.int64)
        self.losses: Float32Array = np.zeros(0, np.float32)
        columns = settings.objective.n_outputs
        self.predictions = [
            np.zeros((data.n_rows, columns), np.float32)
            if data.start is None
            else data.start.copy()
            for data in datasets
        ]
        self.raised_hessians = 0

    def seen_predictions(self, dataset: int) -> Float32Array:
        """What the objective reads: raw predictions, or sums where its labels are centred."""
        sums = self.predictions[dataset]
        if self.settings.objective.centers_labels:
            return sums
        return raw_float32(self.settings.baseline, sums, self.datasets[dataset].margins)

    def n_bytes(self) -> int:
        """Bytes of the bins and of all buffers above."""
        buffers = [value for value in vars(self).values() if isinstance(value, np.ndarray)]
        buffers += [*self.predictions, *self.bins]
        return sum(buffer.nbytes for buffer in buffers)


def _sums(bins: BinArray, fixed: Int32Array, n_bins: int) -> Int64Array:
    """Sum of the fixed-point numbers in each bin, exactly; int64, (n_bins,)."""
    if bins.size <= _EXACT_FLOAT64_ROWS:
        return np.bincount(bins, weights=fixed, minlength=n_bins).astype(np.int64)
    result = np.zeros(n_bins, np.int64)
    np.add.at(result, bins, fixed)
    return result


def _goes_left(bins: BinArray, split_bin: int, missing_code: int, missing_left: bool) -> BoolArray:
    """``bin <= split_bin`` goes left; missing rows go where the split learned."""
    return np.where(bins == missing_code, missing_left, bins <= split_bin)


def _leaves(
    tree: Tree, n_rows: int, goes_left: Callable[[int, Int64Array], BoolArray]
) -> Int64Array:
    """The leaf of each row: one split after the other, in breadth-first order.

    ``goes_left(node, rows)`` says which of the rows at a node go left.
    """
    node_of_row = np.zeros(n_rows, np.int64)
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        rows = np.flatnonzero(node_of_row == node)
        left = goes_left(node, rows)
        node_of_row[rows] = np.where(left, tree.left[node], tree.right[node])
    return node_of_row


def _binned_leaves(tree: Tree, bins: BinArray, thresholds: BinThresholds) -> Int64Array:
    """The leaf of each row by its bins."""

    def goes_left(node: int, rows: Int64Array) -> BoolArray:
        feature = tree.feature[node]
        missing_code = thresholds.n_value_bins[feature]
        missing_left = tree.missing_left[node]
        return _goes_left(bins[rows, feature], tree.split_bin[node], missing_code, missing_left)

    return _leaves(tree, bins.shape[0], goes_left)


def _raw_leaves(tree: Tree, values: Float64Array) -> Int64Array:
    """The leaf of each row by its raw values: ``x <= threshold`` goes left, NaN is missing."""

    def goes_left(node: int, rows: Int64Array) -> BoolArray:
        x = values[rows, tree.feature[node]]
        left: BoolArray = np.where(np.isnan(x), tree.missing_left[node], x <= tree.threshold[node])
        return left

    return _leaves(tree, values.shape[0], goes_left)


def _float64_blocks(source: FeatureSource) -> Iterator[tuple[slice, Float64Array]]:
    """(rows, values) of all rows, a block at a time; float64, (n_block, n_features)."""
    everything = slice(0, source.n_features)
    for rows in row_blocks(source.n_rows, 8 * source.n_features):
        yield rows, source.sample(np.arange(rows.start, rows.stop), everything)
