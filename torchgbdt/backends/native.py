"""The native CPU backend: numpy owns the buffers, the C++ kernels in csrc/cpu do the work.

Each method hands its buffers to the kernel of the same name; there are no loops over rows or nodes
here. See csrc/README.md for the layouts.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from torchgbdt import _native
from torchgbdt.backends.native_data import NativeDataKernels
from torchgbdt.backends.native_run import Losses, NativeRun
from torchgbdt.backends.stored_rows import LARGE_DATA, Grouping
from torchgbdt.core.arrays import (
    SUM_DTYPE,
    Float32Array,
    Int32Array,
    Int64Array,
    RecordArray,
)
from torchgbdt.core.backend import NODE_DTYPE, LevelBatch, RunRows, RunSettings
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.errors import BackendError, StateError
from torchgbdt.core.extremes import GradientExtremes
from torchgbdt.core.fixed_point import loss_bits
from torchgbdt.core.metrics import MeanLoss
from torchgbdt.core.splits import SPLIT_DTYPE, Histograms, SplitRules
from torchgbdt.core.tree import Tree

_T = TypeVar("_T", bound=np.generic)

_MAX_SAMPLES_LEAF = 2**62
"""More than any node has; a larger setting means the same and fits into int64."""

_FEW_NODES = 127
"""Of a tree of 64 leaves: in one of no more, asking all splits of every row takes no longer than
following where routing has left the rows."""


class NativeBackend(NativeDataKernels):
    """Trains on the CPU, with results that do not depend on the number of threads.

    Parameters
    ----------
    n_threads : >= 1; may exceed the number of cores.
    grouping : when training rows are stored anew, which costs or saves time and changes no result.
    """

    name = "cpu"

    def __init__(self, n_threads: int, grouping: Grouping = LARGE_DATA) -> None:
        super().__init__(n_threads)
        self._grouping = grouping
        self._run: NativeRun | None = None

    def prepare(self, train: RunRows, valids: Sequence[RunRows], settings: RunSettings) -> None:
        """See ComputeBackend. What is given is used where it lies, until rows are grouped."""
        self._run = None
        self._run = NativeRun([train, *valids], settings, self._grouping, self._n_threads)

    def release(self) -> None:
        """See ComputeBackend."""
        self._run = None

    @property
    def run(self) -> NativeRun:
        """The run in progress."""
        if self._run is None:
            raise StateError("the backend has no run; call prepare first.")
        return self._run

    def sample_rows(self, tree: int) -> int:
        """All rows: row sampling is not built yet."""
        self.run.group_rows()
        row_order = self.run.row_order
        _native.sample_rows(row_order, self._n_threads)
        self.run.routed_nodes.clear()
        return row_order.size

    def compute_gradients(self, output: int) -> GradientExtremes:
        """See ComputeBackend."""
        run, train = self.run, self.run.rows[0]
        objective = run.settings.objective
        if run.gradients.shape[1] != 1 or not 0 <= output < objective.n_outputs:
            raise BackendError(
                f"objective {objective.name!r} has gradients of one of {objective.n_outputs} "
                f"outputs at a time; found output {output} of trees with "
                f"{run.gradients.shape[1]} values per leaf."
            )
        self._update_softmax_terms()
        extremes = _native.compute_gradients(
            int(objective.kind),
            train.predictions,
            train.labels,
            train.weights,
            run.baseline,
            train.margins,
            run.softmax_terms,
            output,
            run.gradients.reshape(-1),
            None if run.hessians is None else run.hessians.reshape(-1),
            self._n_threads,
        )
        return run.keep_extremes([extremes])

    def _update_softmax_terms(self) -> None:
        """Compute what the gradients of all outputs share, once per change of predictions."""
        run = self.run
        if run.softmax_terms is None or run.terms_are_current:
            return
        assert run.baseline is not None
        _native.compute_softmax_terms(
            run.rows[0].predictions,
            run.baseline,
            run.rows[0].margins,
            run.softmax_terms,
            self._n_threads,
        )
        run.terms_are_current = True

    def load_gradients(self, gradients: Float32Array, hessians: Float32Array) -> GradientExtremes:
        """See ComputeBackend. Subnormals are flushed on the way in."""
        run = self.run
        if run.hessians is None and not np.all(hessians == 1):
            raise BackendError("the run was prepared for Hessians of 1; found others.")
        stored = [run.rows[0].as_stored(one) for one in (gradients, hessians)]
        given = (np.ascontiguousarray(stored[0]), np.ascontiguousarray(stored[1]))
        extremes = _native.load_gradients(*given, run.gradients, run.hessians, self._n_threads)
        return run.keep_extremes(extremes)

    def round_gradients(self, scales: Int64Array) -> Int64Array:
        """See ComputeBackend."""
        run = self.run
        run.check_scales(scales)
        totals = np.zeros((run.settings.tree_outputs, 2), SUM_DTYPE)
        run.raised_hessians += _native.round_gradients(
            run.gradients, run.hessians, scales, run.fixed_point, totals, self._n_threads
        )
        run.scales = scales
        return totals

    def build_histograms(self, batch: LevelBatch) -> None:
        """See ComputeBackend."""
        run = self.run
        _native.build_histograms(
            run.rows[0].bins,
            *run.feature_bins,
            run.row_order,
            run.fixed_point,
            _nodes(batch.nodes),
            run.histograms,
            run.settings.tree_outputs,
            self._n_threads,
        )

    def exchange_histograms(self, batch: LevelBatch, communicator: Communicator) -> None:
        """See ComputeBackend."""
        built = batch.nodes["slot"][batch.nodes["build"]]
        sums = self.run.histograms[built]
        communicator.sum_int64(sums)
        self.run.histograms[built] = sums

    def subtract_histograms(self, batch: LevelBatch) -> None:
        """See ComputeBackend."""
        _native.subtract_histograms(_nodes(batch.nodes), self.run.histograms, self._n_threads)

    def read_histograms(self, batch: LevelBatch) -> Histograms:
        """See ComputeBackend."""
        run = self.run
        cells = np.moveaxis(run.histograms[batch.nodes["slot"]], 2, 1)  # (n_nodes, words, bins)
        counts, words = cells[:, 0].copy(), cells[:, 1:]
        if run.hessians is None:
            hessians = counts[:, None, :] * run.hessian_units()[:, None].astype(SUM_DTYPE)
            return Histograms(counts, words.copy(), hessians)
        return Histograms(counts, words[:, 0::2].copy(), words[:, 1::2].copy())

    def find_splits(self, batch: LevelBatch, rules: SplitRules) -> tuple[RecordArray, Int64Array]:
        """See ComputeBackend."""
        found = _FoundSplits(batch)
        _native.find_splits(
            *self.run.feature_bins,
            self.run.histograms,
            _nodes(batch.nodes),
            found.sums,
            rules.reg_lambda,
            rules.gamma,
            min(rules.min_samples_leaf, _MAX_SAMPLES_LEAF),
            rules.min_hessian,
            rules.scales,
            found.splits,
            found.left_sums,
            self._n_threads,
        )
        return found.splits, found.left_sums

    def search_level(
        self, batch: LevelBatch, rules: SplitRules, communicator: Communicator, keep: bool
    ) -> tuple[RecordArray, Int64Array]:
        """See ComputeBackend. One pass, unless ranks must exchange histograms in between."""
        if communicator.size > 1:
            return super().search_level(batch, rules, communicator, keep)
        run = self.run
        found = _FoundSplits(batch)
        _native.search_level(
            run.rows[0].bins,
            *run.feature_bins,
            run.row_order,
            run.fixed_point,
            _nodes(batch.nodes),
            found.sums,
            rules.reg_lambda,
            rules.gamma,
            min(rules.min_samples_leaf, _MAX_SAMPLES_LEAF),
            rules.min_hessian,
            rules.scales,
            keep,
            run.histograms,
            found.splits,
            found.left_sums,
            self._n_threads,
        )
        return found.splits, found.left_sums

    def run_settings(self) -> RunSettings:
        """See ComputeBackend."""
        return self.run.settings

    def run_rows(self, dataset: int) -> RunRows:
        """See ComputeBackend."""
        return self.run.rows[dataset].given

    def route_rows(self, nodes: RecordArray, splits: RecordArray) -> Int64Array:
        """See ComputeBackend. Remembers what it is given and returns; nobody changes either."""
        run = self.run
        asked = (_nodes(nodes), _records(splits, SPLIT_DTYPE))
        left_rows = np.zeros(nodes.size, np.int64)
        _native.route_rows(
            run.rows[0].columns,
            run.settings.thresholds.n_value_bins,
            *asked,
            run.row_order,
            run.sides,
            run.routed,
            left_rows,
            self._n_threads,
        )
        run.row_order, run.routed = run.routed, run.row_order
        run.routed_nodes.append((*asked, left_rows))
        return left_rows

    def update_predictions(self, tree: Tree, output: int) -> None:
        """See ComputeBackend."""
        run = self.run
        run.predictions_changed()
        for data in run.rows:
            given = (
                data.columns,
                run.settings.thresholds.n_value_bins,
                tree.feature,
                tree.split_bin,
                tree.left,
                tree.flags,
                tree.value,
            )
            changed = (output, data.predictions, self._n_threads)
            if data is run.rows[0] and run.routed_nodes and tree.n_nodes > _FEW_NODES:
                nodes, splits, left_rows = zip(*run.routed_nodes, strict=True)
                routed = (_joined(nodes), _joined(splits), _joined(left_rows))
                if _native.update_routed(*given, *routed, run.row_order, *changed):
                    continue
            _native.update_predictions(*given, *changed)

    def compute_losses(self, metric: MeanLoss, dataset: int) -> tuple[float, bool]:
        """See ComputeBackend."""
        run, data = self.run, self.run.rows[dataset]
        losses = run.loss_buffer[: data.given.n_rows]
        run.losses = None
        if not isinstance(run.settings.objective, metric.objective):
            raise BackendError(
                f"metric {metric.name!r} does not read the predictions of objective "
                f"{run.settings.objective.name!r}."
            )
        largest, finite = _native.compute_losses(
            int(metric.kind),
            data.predictions,
            data.labels,
            data.weights,
            run.baseline,
            data.margins,
            losses,
            self._n_threads,
        )
        run.losses = Losses(losses, largest, loss_bits(data.given.total_rows)) if finite else None
        return (largest if finite else 0.0), finite

    def sum_losses(self, scale: int) -> int:
        """See ComputeBackend."""
        losses = self.run.losses
        if losses is None:
            raise StateError("there are no finite losses to sum; call compute_losses first.")
        if np.ldexp(losses.largest, scale) > 2.0**losses.bits:
            raise BackendError(f"the sum of losses times 2^{scale} could exceed int64.")
        return _native.sum_losses(losses.values, scale, self._n_threads)

    def read_predictions(self, dataset: int) -> Float32Array:
        """See ComputeBackend."""
        rows = self.run.rows[dataset]
        return rows.as_given(rows.predictions)

    def read_gradients(self) -> tuple[Float32Array, Float32Array]:
        """See ComputeBackend."""
        run = self.run
        hessians = np.ones_like(run.gradients) if run.hessians is None else run.hessians
        return run.rows[0].as_given(run.gradients), run.rows[0].as_given(hessians)

    def read_fixed_point(self) -> tuple[Int32Array, Int32Array]:
        """See ComputeBackend."""
        run = self.run
        if run.hessians is None:
            units = np.broadcast_to(run.hessian_units(), run.gradients.shape)
            return run.rows[0].as_given(run.fixed_point), units.copy()
        fixed_point = run.rows[0].as_given(run.fixed_point)
        return fixed_point[:, 0::2].copy(), fixed_point[:, 1::2].copy()

    def read_row_order(self) -> Int64Array:
        """See ComputeBackend."""
        run = self.run
        return run.rows[0].given_ids(run.row_order).astype(np.int64)

    def diagnostics(self) -> dict[str, Any]:
        """See ComputeBackend."""
        facts = {
            "backend": self.name,
            "device": "cpu",
            "n_threads": self._n_threads,
            "native_version": _native.version(),
            "numpy": np.__version__,
            "launches": 0,
            "synchronizations": 0,
            "bytes_to_host": 0,
            "peak_memory_bytes": 0,
            "raised_hessians": 0,
        }
        return facts if self._run is None else facts | self._run.diagnostics()


class _FoundSplits:
    """What a search reads and fills besides histograms: node sums, splits and left sums."""

    def __init__(self, batch: LevelBatch) -> None:
        self.sums = np.ascontiguousarray(batch.sums)
        self.splits = np.empty(batch.nodes.size, SPLIT_DTYPE)
        self.left_sums = np.empty(self.sums.shape, SUM_DTYPE)


def _records(records: RecordArray, dtype: np.dtype[np.void]) -> RecordArray:
    """Records of exactly this dtype, C-ordered; the kernels read them as C structs."""
    if records.dtype != dtype:
        raise TypeError(f"expected records of dtype {dtype}; found {records.dtype}.")
    return np.ascontiguousarray(records)


def _joined(parts: Sequence[NDArray[_T]]) -> NDArray[_T]:
    """Laid end to end, as bytes: numpy takes long to find the common dtype of records."""
    return np.concatenate([part.view(np.uint8) for part in parts]).view(parts[0].dtype)


def _nodes(nodes: RecordArray) -> RecordArray:
    return _records(nodes, NODE_DTYPE)
