"""The compute backend: everything done to rows. The core decides when, a backend decides how.

    prepare -> per tree:  sample_rows, compute_gradients | load_gradients, round_gradients,
                          per level: search_level, route_rows
            -> per round: update_predictions, evaluate
    release

``search_level`` is build_histograms, exchange_histograms, subtract_histograms and find_splits,
unless a backend does better.

Calls pass plain arrays of records; no device object, stream or command buffer reaches the core. An
instance serves one run at a time and owns row order, gradients, predictions and histograms. All
results are bit-equal to the oracle's. A call returns when its results can be read, unless it says
otherwise; any call may raise, and the session then calls ``release``.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchgbdt.core import columns, quantiles, ranking
from torchgbdt.core.array_ops import Array
from torchgbdt.core.arrays import (
    BinMatrix,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
    RecordArray,
)
from torchgbdt.core.binning import BinThresholds
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.extremes import GradientExtremes
from torchgbdt.core.feature_source import FeatureSource
from torchgbdt.core.fixed_point import loss_bits, scale_exponent
from torchgbdt.core.metrics import MeanLoss
from torchgbdt.core.objectives import Objective
from torchgbdt.core.raw_predictions import raw_float32
from torchgbdt.core.splits import Histograms, SplitRules, find_best_splits
from torchgbdt.core.tree import Forest, Tree

NO_SLOT = -1

NODE_DTYPE = np.dtype(
    [
        ("begin", np.int64),
        ("n_rows", np.int64),
        ("count", np.int64),
        ("node", np.int32),
        ("slot", np.int32),
        ("sibling_slot", np.int32),
        ("build", np.bool_),
    ],
    align=True,
)
"""One active node of a level.

begin, n_rows : this rank's rows are row_order[begin : begin + n_rows].
count : rows over all ranks.
node : breadth-first index in the tree.
slot : where its histogram is kept. A subtracted node takes over the slot of its parent.
sibling_slot : where the built sibling's histogram is, for subtraction; NO_SLOT if ``build``.
build : True: summed from rows. False: parent minus sibling.
"""


@dataclass(frozen=True)
class LevelBatch:
    """Nodes of one level whose histograms fit into memory together.

    Attributes
    ----------
    nodes : NODE_DTYPE, (n_nodes,); each has a slot of its own, and one that is subtracted lies
        beside its sibling.
    sums : int64, (n_nodes, tree_outputs, 2); gradient and Hessian totals over all ranks.
    """

    nodes: RecordArray
    sums: Int64Array


@dataclass(frozen=True)
class RunRows:
    """The rows of one data set as a run sees them.

    Attributes
    ----------
    bins : uint8, (n_rows, n_features); from this backend or another one.
    labels : float32, (n_rows,), from ``Objective.kernel_labels``.
    weights : float32, (n_rows,), or None.
    margins : float32, (n_rows, n_outputs), or None; None where labels are centred, which has them.
    total_rows : rows over all ranks.
    start : float32, (n_rows, n_outputs), prediction sums to start from; None for +0.
    bins_are_shared : whether others read the bins too; if not, a backend may change them.
    """

    bins: BinMatrix
    labels: Float32Array
    weights: Float32Array | None
    margins: Float32Array | None
    total_rows: int
    start: Float32Array | None = None
    bins_are_shared: bool = True

    @property
    def n_rows(self) -> int:
        """This rank's rows."""
        return int(self.bins.shape[0])


@dataclass(frozen=True)
class RunSettings:
    """What a backend must know about a run.

    Attributes
    ----------
    baseline : float64, (n_outputs,); what raw predictions are made of besides sums and margins.
    tree_outputs : values per leaf.
    constant_hessian : every Hessian is 1, so its histogram is the row count times a constant.
    n_slots : histograms that are held at once.
    """

    thresholds: BinThresholds
    objective: Objective
    baseline: Float64Array
    tree_outputs: int
    constant_hessian: bool
    n_slots: int


@dataclass(frozen=True)
class LossSum:
    """A sum of weighted row losses over all ranks: ``total * 2^-scale``; no sum if not finite."""

    total: int
    scale: int
    finite: bool


class ComputeBackend(ABC):
    """The interface each device implements. See the module for the order of calls."""

    name: str

    # --- outside a run -----------------------------------------------------------------------

    @abstractmethod
    def bin_features(
        self,
        source: FeatureSource,
        kept_rows: Int64Array | None,
        thresholds: BinThresholds,
    ) -> BinMatrix:
        """Quantize X: row i holds the codes of source row kept_rows[i], as ``binning.bin_column``.

        Parameters
        ----------
        kept_rows : int64 ascending, or None for all rows. IN.

        Returns
        -------
        uint8, (n_kept, n_features), where this backend trains.
        """

    def distinct_values(
        self, source: FeatureSource, kept_rows: Int64Array | None, features: range, limit: int
    ) -> list[Float64Array | None]:
        """As ``columns.distinct_values``; an override returns the same."""
        return columns.distinct_values(source, kept_rows, features, limit)

    def sort_columns(
        self, source: FeatureSource, rows: Int64Array, features: range
    ) -> Float64Array:
        """As ``columns.sort_columns``; an override returns the same."""
        return columns.sort_columns(source, rows, features)

    def cut_column(self, values: Float64Array, n_bins: int) -> Float64Array:
        """As ``quantiles.cut_column``; an override returns the same."""
        return quantiles.cut_column(values, n_bins)

    @abstractmethod
    def predict(self, forest: Forest, source: FeatureSource, sums: Array) -> None:
        """Add each tree's leaf values to ``sums``, tree by tree, flushing subnormals to +0.

        Parameters
        ----------
        forest : whole rounds. Tree t adds to all columns, or, if its leaves hold one value and
            ``sums`` has K > 1 columns, to column t mod K.
        sums : float32, (n_rows, n_outputs), C order; an array of the host or the device. IN-OUT.
        """

    @abstractmethod
    def predict_leaves(self, forest: Forest, source: FeatureSource, leaves: Array) -> None:
        """Write each row's leaf in each tree, its node; int32, (n_rows, n_trees), as sums. OUT."""

    # --- a run -------------------------------------------------------------------------------

    @abstractmethod
    def prepare(self, train: RunRows, valids: Sequence[RunRows], settings: RunSettings) -> None:
        """Allocate and fill every buffer of the run; predictions start at ``RunRows.start``."""

    @abstractmethod
    def release(self) -> None:
        """Give back every buffer of the run; never raises, may be called twice or without a run."""

    @abstractmethod
    def sample_rows(self, tree: int) -> int:
        """Put the rows that this tree uses into row order; return their number.

        Ascending in the order in which the backend stores rows, which is its own and may change
        between rounds; at first that of the data.
        """

    @abstractmethod
    def compute_gradients(self, output: int) -> GradientExtremes:
        """Gradients of the sampled rows, for tree ``output`` of the round, from the predictions."""

    @abstractmethod
    def load_gradients(self, gradients: Float32Array, hessians: Float32Array) -> GradientExtremes:
        """Take gradients computed elsewhere; float32, (n_rows, tree_outputs) each. IN.

        Subnormals are flushed; Hessians of a run with a constant one must be 1.
        """

    @abstractmethod
    def round_gradients(self, scales: Int64Array) -> Int64Array:
        """Round to fixed point; ``scales`` as in SplitRules. Return the totals of this rank's rows.

        Returns
        -------
        int64, (tree_outputs, 2).
        """

    @abstractmethod
    def build_histograms(self, batch: LevelBatch) -> None:
        """Sum the rows of each node with ``build`` into its slot. May return before it is done."""

    @abstractmethod
    def exchange_histograms(self, batch: LevelBatch, communicator: Communicator) -> None:
        """Replace each built histogram by its sum over ranks. Not called with one rank."""

    @abstractmethod
    def subtract_histograms(self, batch: LevelBatch) -> None:
        """For each node without ``build``: histogram[slot] -= histogram[sibling_slot], exactly."""

    @abstractmethod
    def read_histograms(self, batch: LevelBatch) -> Histograms:
        """Host copies of the batch's histograms, constant Hessians filled in."""

    def find_splits(self, batch: LevelBatch, rules: SplitRules) -> tuple[RecordArray, Int64Array]:
        """The best split of each node and its left sums; an override is bit-equal to this."""
        histograms = self.read_histograms(batch)
        counts = batch.nodes["count"]
        thresholds = self.run_settings().thresholds
        return find_best_splits(histograms, counts, batch.sums, thresholds, rules)

    def search_level(
        self, batch: LevelBatch, rules: SplitRules, communicator: Communicator, keep: bool
    ) -> tuple[RecordArray, Int64Array]:
        """The best split of each node of a batch, and its left sums, from rows to records.

        An override is bit-equal to this: it may do all of it in one pass over the histograms.

        Parameters
        ----------
        keep : whether the histograms are in their slots afterwards; False where nobody reads them
            again, at the last level: what is in the slots is then undefined.

        Returns
        -------
        SPLIT_DTYPE, (n_nodes,), and int64, (n_nodes, tree_outputs, 2); as ``find_splits``.
        """
        self.build_histograms(batch)
        if communicator.size > 1:
            self.exchange_histograms(batch, communicator)
        self.subtract_histograms(batch)
        return self.find_splits(batch, rules)

    @abstractmethod
    def run_settings(self) -> RunSettings:
        """The settings that ``prepare`` was given; StateError without a run."""

    @abstractmethod
    def run_rows(self, dataset: int) -> RunRows:
        """The rows that ``prepare`` was given: 0 is training, then valids.

        Bins that are not shared may have been changed.
        """

    @abstractmethod
    def route_rows(self, nodes: RecordArray, splits: RecordArray) -> Int64Array:
        """Partition each node's stretch of row order: left rows first, both sides in stable order.

        Parameters
        ----------
        nodes : NODE_DTYPE, (n_split,). IN.
        splits : SPLIT_DTYPE, (n_split,), all found. IN.

        Returns
        -------
        int64, (n_split,); this rank's rows that went left.
        """

    @abstractmethod
    def update_predictions(self, tree: Tree, output: int) -> None:
        """Add a tree to the training and validation predictions, flushing subnormals to +0.

        ``output`` is the column for trees with one value per leaf.
        """

    @abstractmethod
    def compute_losses(self, metric: MeanLoss, dataset: int) -> tuple[float, bool]:
        """Weighted row losses of a data set (0 is training, then valids); kept for sum_losses.

        Returns
        -------
        The largest loss of this rank's rows (0 without rows), and whether all of them are finite.
        """

    @abstractmethod
    def sum_losses(self, scale: int) -> int:
        """This rank's sum of ``round_half_even(loss * 2^scale)`` over the losses just computed."""

    def evaluate(self, metric: MeanLoss, dataset: int, communicator: Communicator) -> LossSum:
        """Sum the metric's weighted row losses over all ranks; an override is bit-equal to this."""
        largest, finite = self.compute_losses(metric, dataset)
        if communicator.any_true(not finite):
            return LossSum(0, 0, finite=False)
        largest = float(communicator.max_float64(np.array([largest]))[0])
        scale = scale_exponent(largest, loss_bits(self.run_rows(dataset).total_rows))
        total = np.array([self.sum_losses(scale)], np.int64)
        communicator.sum_int64(total)
        return LossSum(int(total[0]), scale, finite=True)

    def rank_rows(self, dataset: int, scale: int) -> ranking.RankedWeights:
        """This rank's rows in the order of their raw predictions, for one output and two classes.

        ``scale`` as in ``ranking.rank_rows``. An override is bit-equal to this.
        """
        rows = self.run_rows(dataset)
        baseline = self.run_settings().baseline
        raw = raw_float32(baseline, self.read_predictions(dataset), rows.margins)
        return ranking.rank_rows(raw[:, 0], rows.labels, rows.weights, scale)

    def count_pairs(
        self, dataset: int, scale: int, communicator: Communicator
    ) -> ranking.OrderedPairs:
        """How the predictions of all ranks' rows order the pairs of both classes, from rank_rows.

        An override is equal to this.
        """
        ranked = ranking.merge_rankings(self.rank_rows(dataset, scale), communicator)
        return ranking.count_pairs(ranked)

    @abstractmethod
    def read_predictions(self, dataset: int) -> Float32Array:
        """Host copy of the prediction sums, float32, (n_rows, n_outputs)."""

    @abstractmethod
    def read_gradients(self) -> tuple[Float32Array, Float32Array]:
        """Host copies of gradients and Hessians, float32, (n_rows, tree_outputs); for checks."""

    @abstractmethod
    def read_fixed_point(self) -> tuple[Int32Array, Int32Array]:
        """Host copies of the rounded gradients and Hessians, int32, (n_rows, tree_outputs)."""

    @abstractmethod
    def read_row_order(self) -> Int64Array:
        """Host copy of the row order, rows as in the data, int64, (n_sampled,); for checks."""

    def synchronize(self) -> None:  # noqa: B027 - a host backend has nothing to wait for
        """Wait for all work that was started."""

    @abstractmethod
    def diagnostics(self) -> dict[str, Any]:
        """What ran, where, and what it cost; works without a run as well.

        backend, device, n_threads, versions of what decides results; and counters of the run:
        launches, synchronizations and bytes_to_host (0 on the host), peak_memory_bytes of the
        buffers it owned, raised_hessians (rows whose Hessian would have been rounded to 0).
        """
