"""The torch backend: every call as torch operations, on any device that torch has.

Histograms are integer ``scatter_add_``; formulas are those of the core, called on tensors; splits
are found on the host from histograms. Everything is float32 or integers and exact, so CUDA, MPS and
the CPU give the same model. After ``prepare`` nothing that has a number per row leaves the device,
but for what ``load_gradients`` and the read_ methods are asked for, and rankings over several
ranks.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from torchgbdt.backends import torch_row_order
from torchgbdt.backends.torch_data import BYTES_PER_STEP, TorchDataKernels
from torchgbdt.backends.torch_operations import INFINITY_BITS, MAGNITUDE_BITS, TORCH
from torchgbdt.backends.torch_run import TorchRun, run_bytes
from torchgbdt.backends.torch_transfers import facts_of, reports_memory
from torchgbdt.backends.torch_traversal import DeviceTrees
from torchgbdt.core.arrays import SUM_DTYPE, Float32Array, Int32Array, Int64Array, RecordArray
from torchgbdt.core.backend import LevelBatch, RunRows, RunSettings
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.errors import BackendError, StateError
from torchgbdt.core.extremes import GradientExtremes
from torchgbdt.core.feature_source import row_blocks
from torchgbdt.core.fixed_point import (
    are_raised,
    flush_subnormals,
    round_gradients,
    round_hessians,
    round_losses,
    round_weights,
)
from torchgbdt.core.metrics import MeanLoss
from torchgbdt.core.objectives import weighted
from torchgbdt.core.ranking import (
    OrderedPairs,
    by_class,
    order_keys,
    pair_sums,
    pairs_of_sums,
)
from torchgbdt.core.splits import Histograms
from torchgbdt.core.tree import Tree


class TorchBackend(TorchDataKernels):
    """Trains on a torch device, where the data lies.

    Parameters
    ----------
    device : such as "cpu", "cuda:1" or "mps".

    Raises
    ------
    BackendUnavailableError : the device is not here, or its arithmetic is not the host's.
    """

    name = "torch"

    def __init__(self, device: str | torch.device) -> None:
        super().__init__(device)
        self._run: TorchRun | None = None

    @reports_memory
    def prepare(self, train: RunRows, valids: Sequence[RunRows], settings: RunSettings) -> None:
        """See ComputeBackend. Bins of this device are used where they lie."""
        self._run = None
        self.transfers.restart()
        self._estimate = run_bytes([train, *valids], settings)
        self._run = TorchRun([train, *valids], settings, self.transfers)

    def release(self) -> None:
        """See ComputeBackend."""
        self._run = None

    @property
    def run(self) -> TorchRun:
        """The run in progress."""
        if self._run is None:
            raise StateError("the backend has no run; call prepare first.")
        return self._run

    def run_settings(self) -> RunSettings:
        """See ComputeBackend."""
        return self.run.settings

    def run_rows(self, dataset: int) -> RunRows:
        """See ComputeBackend."""
        return self.run.rows[dataset].given

    def sample_rows(self, tree: int) -> int:
        """All rows: row sampling is not built yet."""
        row_order = self.run.row_order
        n_rows = row_order.shape[0]
        row_order.copy_(torch.arange(n_rows, dtype=torch.int32, device=self.device))
        return n_rows

    @reports_memory
    def compute_gradients(self, output: int) -> GradientExtremes:
        """See ComputeBackend."""
        self._check_output(output)
        run, train = self.run, self.run.rows[0]
        objective = run.settings.objective
        seen, terms = train.seen_output(run.baseline, output), run.shared_terms()
        gradients, hessians = objective.output_gradients(
            seen, train.labels, train.weights, output, terms, TORCH
        )
        run.gradients[0] = gradients
        if run.hessians is not None:
            run.hessians[0] = hessians
        run.extremes_at_hand = self._extremes()
        return run.extremes_at_hand

    def _check_output(self, output: int) -> None:
        """Raise BackendError unless gradients can be computed for trees of this output."""
        settings, objective = self.run.settings, self.run.settings.objective
        if settings.tree_outputs != 1 or not 0 <= output < objective.n_outputs:
            raise BackendError(
                f"objective {objective.name!r} has gradients of one of {objective.n_outputs} "
                f"outputs at a time; found output {output} of trees with "
                f"{settings.tree_outputs} values per leaf."
            )

    def load_gradients(self, gradients: Float32Array, hessians: Float32Array) -> GradientExtremes:
        """See ComputeBackend."""
        run = self.run
        if run.hessians is None and not np.all(hessians == 1):
            raise BackendError("the run was prepared for Hessians of 1; found others.")
        shape = tuple(run.gradients.shape[::-1])
        for name, given in (("gradients", gradients), ("hessians", hessians)):
            if given.shape != shape or given.dtype != np.float32:
                raise BackendError(
                    f"{name} must be float32 of shape {shape}; found {given.dtype} of shape "
                    f"{given.shape}."
                )
        run.gradients = flush_subnormals(self.transfers.to_device(gradients.T), TORCH)
        if run.hessians is not None:
            run.hessians = flush_subnormals(self.transfers.to_device(hessians.T), TORCH)
        run.extremes_at_hand = self._extremes()
        return run.extremes_at_hand

    def _extremes(self) -> GradientExtremes:
        """Of the gradients at hand; by bits, in which magnitudes have the order of numbers."""
        run = self.run
        n_outputs, n_rows = run.gradients.shape
        largest = np.zeros((n_outputs, 2))
        if n_rows == 0:
            return GradientExtremes(largest, 0.0, True)
        found = [(TORCH.bits(run.gradients) & MAGNITUDE_BITS).amax(dim=1)]
        if run.hessians is not None:
            found.append((TORCH.bits(run.hessians) & MAGNITUDE_BITS).amax(dim=1))
            found.append(order_keys(run.hessians, TORCH).amin(dim=1))
        bits = self.transfers.to_host(torch.stack(found)).astype(np.int32)
        finite = bool((bits[:2] < INFINITY_BITS).all())
        largest[:, 0] = bits[0].view(np.float32)
        if run.hessians is None:
            largest[:, 1] = 1.0
            return GradientExtremes(largest, 1.0, finite)
        largest[:, 1] = bits[1].view(np.float32)
        smallest = order_keys(bits[2].view(np.float32)).view(np.float32)
        return GradientExtremes(largest, float(smallest.min()), finite)

    @reports_memory
    def round_gradients(self, scales: Int64Array) -> Int64Array:
        """See ComputeBackend."""
        run = self.run
        run.use_scales(scales)
        counted: list[torch.Tensor] = []
        for output, (gradient_scale, hessian_scale) in enumerate(scales.tolist()):
            words = [round_gradients(run.gradients[output], gradient_scale, TORCH)]
            if run.hessians is not None:
                hessians = run.hessians[output]
                words.append(round_hessians(hessians, hessian_scale, TORCH))
                counted.append(are_raised(hessians, hessian_scale, TORCH).sum())
            first = output * len(words)
            for word, rounded in enumerate(words, first):
                run.fixed_point[word] = rounded
        sums = torch.cat((run.fixed_point.sum(dim=1), *(one[None] for one in counted)))
        totals = self.transfers.to_host(sums)
        n_words = run.fixed_point.shape[0]
        run.raised_hessians += int(totals[n_words:].sum())
        if run.hessians is not None:
            return np.ascontiguousarray(totals[:n_words].reshape(-1, 2))
        n_rows = run.row_order.shape[0]
        return np.stack((totals, n_rows * self._hessian_units().astype(SUM_DTYPE)), axis=1)

    def _hessian_units(self) -> Int32Array:
        """What each row adds to Hessians that are constant; int32, (tree_outputs,)."""
        one = np.ones(1, np.float32)
        scales = self.run.scales[:, 1].tolist()
        return np.concatenate([round_hessians(one, scale) for scale in scales])

    @reports_memory
    def build_histograms(self, batch: LevelBatch) -> None:
        """See ComputeBackend."""
        run = self.run
        torch_row_order.build_histograms(
            run.rows[0].bins,
            run.row_order,
            run.fixed_point,
            batch.nodes[batch.nodes["build"]],
            run.settings.thresholds,
            run.histograms,
            self.transfers,
        )

    def exchange_histograms(self, batch: LevelBatch, communicator: Communicator) -> None:
        """See ComputeBackend."""
        slots = self._slots(batch.nodes[batch.nodes["build"]]["slot"])
        histograms = self.run.histograms
        sums = self.transfers.to_host(histograms[slots])
        communicator.sum_int64(sums)
        histograms[slots] = self.transfers.to_device(sums)

    @reports_memory
    def subtract_histograms(self, batch: LevelBatch) -> None:
        """See ComputeBackend."""
        others = batch.nodes[~batch.nodes["build"]]
        if others.size:
            histograms = self.run.histograms
            slots, siblings = self._slots(others["slot"]), self._slots(others["sibling_slot"])
            histograms[slots] = histograms[slots] - histograms[siblings]

    def _slots(self, slots: Int32Array) -> torch.Tensor:
        return self.transfers.to_device(slots.astype(np.int64))

    def read_histograms(self, batch: LevelBatch) -> Histograms:
        """See ComputeBackend."""
        run = self.run
        cells = self.transfers.to_host(run.histograms[self._slots(batch.nodes["slot"])])
        counts, words = cells[:, 0].copy(), cells[:, 1:]
        if run.hessians is None:
            units = self._hessian_units().astype(SUM_DTYPE)
            return Histograms(counts, words.copy(), counts[:, None, :] * units[:, None])
        return Histograms(counts, words[:, 0::2].copy(), words[:, 1::2].copy())

    @reports_memory
    def route_rows(self, nodes: RecordArray, splits: RecordArray) -> Int64Array:
        """See ComputeBackend."""
        run = self.run
        return torch_row_order.route_rows(
            run.rows[0].bins,
            run.row_order,
            nodes,
            splits,
            run.settings.thresholds,
            self.transfers,
        )

    @reports_memory
    def update_predictions(self, tree: Tree, output: int) -> None:
        """See ComputeBackend."""
        run = self.run
        run.softmax_terms = None
        missing = run.settings.thresholds.n_value_bins[tree.feature]
        ends = np.array([0, tree.n_nodes])
        trees = DeviceTrees.of(tree, ends, tree.split_bin, missing, self.transfers)
        n_values = tree.value.shape[1]
        outputs = slice(output, output + 1) if n_values == 1 else slice(None)
        for data in run.rows:
            codes = data.bins.tensor
            for rows in row_blocks(codes.shape[0], BYTES_PER_STEP):
                leaves = trees.leaves(codes[rows])[:, 0]
                sums = data.predictions[outputs, rows]
                sums[...] = flush_subnormals(sums + trees.values[leaves].t(), TORCH)

    @reports_memory
    def compute_losses(self, metric: MeanLoss, dataset: int) -> tuple[float, bool]:
        """See ComputeBackend."""
        run, data = self.run, self.run.rows[dataset]
        losses = metric.row_losses(data.seen_predictions(run.baseline), data.labels, TORCH)
        run.losses = weighted(losses, data.weights, TORCH)
        if data.given.n_rows == 0:
            return 0.0, True
        largest = self.transfers.to_host((TORCH.bits(run.losses) & MAGNITUDE_BITS).amax(dim=0))
        if int(largest) >= INFINITY_BITS:
            run.losses = None
            return 0.0, False
        return float(largest.view(np.float32)), True

    def sum_losses(self, scale: int) -> int:
        """See ComputeBackend."""
        losses = self.run.losses
        if losses is None:
            raise StateError("there are no finite losses to sum; call compute_losses first.")
        return int(self.transfers.to_host(round_losses(losses, scale, TORCH).sum()))

    @reports_memory
    def count_pairs(self, dataset: int, scale: int, communicator: Communicator) -> OrderedPairs:
        """See ComputeBackend. On the device with one rank; several merge rankings on the host."""
        if communicator.size > 1 or self.run_rows(dataset).n_rows == 0:
            return super().count_pairs(dataset, scale, communicator)
        run, data = self.run, self.run.rows[dataset]
        raw = data.seen_output(run.baseline, 0)
        keys, order = torch.sort(order_keys(raw, TORCH), stable=True)
        given = torch.ones_like(raw) if data.weights is None else data.weights
        both = by_class(round_weights(given, scale, TORCH), data.labels, TORCH)
        first, second = (one.index_select(0, order) for one in both)
        sums = torch.cat((torch.zeros_like(first[:1]), first.cumsum(0)))
        below = sums[torch.searchsorted(keys, keys)]
        up_to = sums[torch.searchsorted(keys, keys, right=True)]
        is_nan = ((TORCH.bits(raw) & MAGNITUDE_BITS) > INFINITY_BITS).sum()
        found = torch.stack([is_nan, *pair_sums(first, second, below, up_to)])
        n_nan, *numbers = self.transfers.to_host(found).tolist()
        return OrderedPairs(0, 0, finite=False) if n_nan else pairs_of_sums(numbers)

    def read_predictions(self, dataset: int) -> Float32Array:
        """See ComputeBackend."""
        predictions: Float32Array = self._rows_first(self.run.rows[dataset].predictions)
        return predictions

    def read_gradients(self) -> tuple[Float32Array, Float32Array]:
        """See ComputeBackend."""
        run = self.run
        hessians = torch.ones_like(run.gradients) if run.hessians is None else run.hessians
        return self._rows_first(run.gradients), self._rows_first(hessians)

    def read_fixed_point(self) -> tuple[Int32Array, Int32Array]:
        """See ComputeBackend."""
        words = self._rows_first(self.run.fixed_point)
        if self.run.hessians is None:
            return words, np.broadcast_to(self._hessian_units(), words.shape).copy()
        return words[:, 0::2].copy(), words[:, 1::2].copy()

    def _rows_first(self, tensor: torch.Tensor) -> Any:
        return np.ascontiguousarray(self.transfers.to_host(tensor).T)

    def read_row_order(self) -> Int64Array:
        """See ComputeBackend."""
        return self.transfers.to_host(self.run.row_order).astype(np.int64)

    def synchronize(self) -> None:
        """See ComputeBackend. A copy to the host waits for all work before it."""
        self.transfers.to_host(torch.zeros(1, dtype=torch.int32, device=self.device))

    def diagnostics(self) -> dict[str, Any]:
        """See ComputeBackend. Launches are those of kernels of our own: none."""
        run = self._run
        return {
            "backend": self.name,
            **facts_of(self.device),
            "n_threads": torch.get_num_threads(),
            "numpy": np.__version__,
            "launches": 0,
            "synchronizations": self.transfers.synchronizations,
            "bytes_to_host": self.transfers.bytes_to_host,
            "uploads": self.transfers.uploads,
            "peak_memory_bytes": 0 if run is None else run.n_bytes(),
            "raised_hessians": 0 if run is None else run.raised_hessians,
        }
