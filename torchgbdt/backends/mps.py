"""The mps backend: the torch backend on MPS tensors, with Metal kernels for every hot operation.

The kernels are those of csrc/metal; each method calls the kernel of its name. What compiles the
kernels and where tensors lie are arguments, so that almost all of this runs, and is tested, without
an Apple GPU.

What crosses between device and host in a run, once ``prepare`` is done; each copy to the host waits
for the device, and brings 16 bytes that say whether all kernels before it ran (``metal_turns``):

    level   per slab of up to 256 nodes: one copy, 272 bytes per node (8 candidates of 32, and 16);
            no upload; at most 8 dispatches, 2 to route and 4 to search. Nodes and splits are
            arguments by value.
    tree    two copies: extremes, 12 bytes; sums, 8 (2 tree_outputs + 1) bytes per threadgroup, of
            at most 256. The tree goes by value if it has up to 1,024 words, else as one upload.
    round   per metric and data set two copies: the largest loss, and at most 256 sums of 8 bytes;
            for auc a few sums, and the 16 bytes by themselves.

More crosses where it is asked for: predictions for callbacks; gradients computed elsewhere;
histograms where several ranks sum them, where trees have several outputs, and of nodes with more
than 8 splits that float32 cannot tell apart, which are counted (``nodes_searched_on_host``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchgbdt.backends import metal_data, metal_routing, metal_rows
from torchgbdt.backends.metal_checks import check_totals
from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.backends.metal_run import MetalRun, MetalTuning, metal_bytes
from torchgbdt.backends.metal_search import (
    empty_splits,
    queue_histograms,
    search_slab,
    slabs,
)
from torchgbdt.backends.split_candidates import can_filter
from torchgbdt.backends.torch_matrix import DeviceBins
from torchgbdt.backends.torch_run import bin_bytes, histograms_bytes
from torchgbdt.backends.torch_scatter import TorchBackend
from torchgbdt.backends.torch_transfers import reports_memory
from torchgbdt.core.array_ops import Array
from torchgbdt.core.arrays import Float32Array, Int32Array, Int64Array, RecordArray
from torchgbdt.core.backend import LevelBatch, RunRows, RunSettings
from torchgbdt.core.binning import BinThresholds
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.errors import DeviceMemoryError, StateError
from torchgbdt.core.extremes import GradientExtremes
from torchgbdt.core.feature_source import FeatureSource
from torchgbdt.core.metrics import MeanLoss
from torchgbdt.core.ranking import OrderedPairs
from torchgbdt.core.splits import SplitRules, find_best_splits
from torchgbdt.core.tree import Forest, Tree

_MAX_TENSOR_NUMBERS = 2**32 - 1
"""Of one tensor: torch's kernels count them in 32 bits."""


@dataclass(frozen=True)
class DeviceMemory:
    """What a device can give.

    Attributes
    ----------
    free_bytes : how many bytes a run may take at present.
    largest_buffer : bytes of one tensor.
    """

    free_bytes: Callable[[], int]
    largest_buffer: int


class MPSBackend(TorchBackend):
    """Trains where MPS tensors lie.

    Parameters
    ----------
    library : compiles and keeps the kernels.
    device : where tensors lie.
    memory : of the device; None where nobody knows.
    tuning : what is chosen for speed.

    Raises
    ------
    BackendUnavailableError : the device is not here.
    """

    name = "mps"

    def __init__(
        self,
        library: MetalLibrary,
        device: str | torch.device = "mps",
        memory: DeviceMemory | None = None,
        tuning: MetalTuning | None = None,
    ) -> None:
        super().__init__(device)
        self._library = library
        self._memory = memory
        self._tuning = tuning or MetalTuning()

    # --- outside a run -----------------------------------------------------------------------

    @reports_memory
    def bin_features(
        self, source: FeatureSource, kept_rows: Int64Array | None, thresholds: BinThresholds
    ) -> DeviceBins:
        """See ComputeBackend."""
        return metal_data.bin_features(source, kept_rows, thresholds, self._library, self.transfers)

    @reports_memory
    def predict(self, forest: Forest, source: FeatureSource, sums: Array) -> None:
        """See ComputeBackend."""
        features = metal_data.DeviceFeatures(source, self.transfers)
        trees = metal_data.DeviceForest(forest, features.form, self._library, self.transfers)
        for block in features.blocks():
            of_block = self.transfers.resident(sums[block.rows])
            trees.add_values(block, of_block)
            self.transfers.write(of_block, sums, block.rows)
        trees.finish()

    @reports_memory
    def predict_leaves(self, forest: Forest, source: FeatureSource, leaves: Array) -> None:
        """See ComputeBackend."""
        features = metal_data.DeviceFeatures(source, self.transfers)
        trees = metal_data.DeviceForest(forest, features.form, self._library, self.transfers)
        for block in features.blocks():
            shape = (block.n_rows, forest.n_trees)
            of_block = torch.empty(shape, dtype=torch.int32, device=self.device)
            trees.write_leaves(block, of_block)
            self.transfers.write(of_block, leaves, block.rows)
        trees.finish()

    # --- a run -------------------------------------------------------------------------------

    @reports_memory
    def prepare(self, train: RunRows, valids: Sequence[RunRows], settings: RunSettings) -> None:
        """See ComputeBackend.

        Raises
        ------
        DeviceMemoryError : the run would not fit into the memory that is free.
        """
        self._run = None
        datasets = [train, *valids]
        self.transfers.restart()
        self._estimate = metal_bytes(datasets, settings, self._tuning)
        self._check_memory(datasets, settings)
        self._run = MetalRun(datasets, settings, self.transfers, self._library, self._tuning)

    def _check_memory(self, datasets: list[RunRows], settings: RunSettings) -> None:
        """Raise DeviceMemoryError now rather than in the middle of a run."""
        if self._memory is None:
            return
        free = self._memory.free_bytes()
        if self._estimate > free:
            raise DeviceMemoryError(
                f"the run needs about {_mib(self._estimate)} MiB on device {str(self.device)!r}, "
                f"where {_mib(free)} MiB are free. Lower histogram_budget_mb, max_depth or "
                f"max_bins, train on fewer rows, or free tensors and call torch.mps.empty_cache()."
            )
        limits = {
            "its bins": (max(bin_bytes(data) for data in datasets), _MAX_TENSOR_NUMBERS),
            "its histograms": (histograms_bytes(settings), self._memory.largest_buffer),
        }
        for name, (needed, limit) in limits.items():
            limit = min(limit, self._memory.largest_buffer)
            if needed > limit:
                raise DeviceMemoryError(
                    f"the run needs {_mib(needed)} MiB for {name} in one piece; device "
                    f"{str(self.device)!r} gives at most {_mib(limit)}. Lower histogram_budget_mb, "
                    f"or train on fewer rows or columns."
                )

    @property
    def run(self) -> MetalRun:
        """The run in progress."""
        run = super().run
        assert isinstance(run, MetalRun)
        return run

    @reports_memory
    def compute_gradients(self, output: int) -> GradientExtremes:
        """See ComputeBackend."""
        self._check_output(output)
        run = self.run
        run.extremes_at_hand = metal_rows.compute_gradients(run, output)
        return run.extremes_at_hand

    @reports_memory
    def round_gradients(self, scales: Int64Array) -> Int64Array:
        """See ComputeBackend."""
        return metal_rows.round_gradients(self.run, scales)

    @reports_memory
    def build_histograms(self, batch: LevelBatch) -> None:
        """See ComputeBackend."""
        run = self.run
        for slab in slabs(batch.nodes, run.slab_nodes()):
            queue_histograms(run, batch.nodes[slab], subtract=False)

    def find_splits(self, batch: LevelBatch, rules: SplitRules) -> tuple[RecordArray, Int64Array]:
        """See ComputeBackend."""
        return self._find(batch, rules, build=False)

    @reports_memory
    def search_level(
        self, batch: LevelBatch, rules: SplitRules, communicator: Communicator, keep: bool
    ) -> tuple[RecordArray, Int64Array]:
        """See ComputeBackend. One copy to the host per slab, unless ranks exchange histograms."""
        if communicator.size > 1:
            return super().search_level(batch, rules, communicator, keep)
        return self._find(batch, rules, build=True)

    def _find(
        self, batch: LevelBatch, rules: SplitRules, build: bool
    ) -> tuple[RecordArray, Int64Array]:
        """Slab by slab; nodes with too many candidates by their histograms, on the host."""
        run = self.run
        on_device = can_filter(rules)
        splits, left_sums = empty_splits(batch)
        unit = None if run.hessians is not None else int(self._hessian_units()[0])
        for slab in slabs(batch.nodes, run.slab_nodes()):
            part = LevelBatch(batch.nodes[slab], batch.sums[slab])
            if build:
                queue_histograms(run, part.nodes, subtract=True)
            overflowed = np.ones(part.nodes.size, np.bool_)
            if on_device:
                splits[slab], left_sums[slab], overflowed = search_slab(run, part, rules, unit)
            if overflowed.any():
                which = np.arange(slab.start, slab.stop)[overflowed]
                left = LevelBatch(batch.nodes[which], batch.sums[which])
                splits[which], left_sums[which] = self._find_on_host(left, rules)
                run.overflowed_nodes += which.size
        return splits, left_sums

    def _find_on_host(self, batch: LevelBatch, rules: SplitRules) -> tuple[RecordArray, Int64Array]:
        histograms, thresholds = self.read_histograms(batch), self.run.settings.thresholds
        check_totals(histograms, batch, thresholds)
        return find_best_splits(histograms, batch.nodes["count"], batch.sums, thresholds, rules)

    @reports_memory
    def route_rows(self, nodes: RecordArray, splits: RecordArray) -> Int64Array:
        """See ComputeBackend."""
        return metal_routing.route_rows(self.run, nodes, splits)

    @reports_memory
    def update_predictions(self, tree: Tree, output: int) -> None:
        """See ComputeBackend."""
        metal_rows.update_predictions(self.run, tree, output)

    @reports_memory
    def compute_losses(self, metric: MeanLoss, dataset: int) -> tuple[float, bool]:
        """See ComputeBackend."""
        return metal_rows.compute_losses(self.run, metric, dataset)

    @reports_memory
    def sum_losses(self, scale: int) -> int:
        """See ComputeBackend."""
        losses = self.run.losses
        if losses is None:
            raise StateError("there are no finite losses to sum; call compute_losses first.")
        return metal_rows.sum_losses(self.run, losses, scale)

    @reports_memory
    def count_pairs(self, dataset: int, scale: int, communicator: Communicator) -> OrderedPairs:
        """See ComputeBackend; torch operations, over predictions that are what they should be."""
        pairs = super().count_pairs(dataset, scale, communicator)
        self.run.check_kernels()
        return pairs

    def read_predictions(self, dataset: int) -> Float32Array:
        """See ComputeBackend."""
        predictions = super().read_predictions(dataset)
        self.run.check_kernels()
        return predictions

    def read_fixed_point(self) -> tuple[Int32Array, Int32Array]:
        """See ComputeBackend. Words lie in row order here."""
        order = self.read_row_order()
        in_order = super().read_fixed_point()
        result = tuple(np.empty_like(words) for words in in_order)
        for words, ordered in zip(result, in_order, strict=True):
            words[order] = ordered
        return result[0], result[1]

    def diagnostics(self) -> dict[str, Any]:
        """See ComputeBackend. Launches are those of kernels; torch's own operations are not."""
        run = self._run
        nodes, launches = 0, 0
        if isinstance(run, MetalRun):
            nodes, launches = run.overflowed_nodes, run.library.turns.count
        return {**super().diagnostics(), "launches": launches, "nodes_searched_on_host": nodes}


def _mib(n_bytes: int) -> int:
    return -(-n_bytes // 2**20)
