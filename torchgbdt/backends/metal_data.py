"""The Metal kernels that need no run: from X to bins, and from X to predictions.

X on the device is read where it lies, at any strides. X elsewhere is moved block by block, in its
own dtype, but for float64, which Metal lacks: of it, integer keys are moved (``threshold_keys``).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.backends.metal_turns import Turns
from torchgbdt.backends.row_chunks import GROUP_THREADS
from torchgbdt.backends.threshold_keys import KEY_FORMS, KeyForm, float64_keys
from torchgbdt.backends.torch_matrix import WORD_FEATURES, DeviceBins, TensorMatrix
from torchgbdt.backends.torch_transfers import Transfers
from torchgbdt.backends.torch_traversal import forest_depth
from torchgbdt.core.arrays import Int64Array
from torchgbdt.core.binning import BinThresholds
from torchgbdt.core.feature_source import FeatureSource, HostMatrix, row_blocks
from torchgbdt.core.tree import Forest

_STEPS_AT_ONCE = 1 << 30
"""Rows times trees times their depth: of a dispatch that takes well below a second, on a small GPU
too; one that takes seconds may cost the device a reset."""


@dataclass(frozen=True)
class DeviceBlock:
    """Some rows of X on the device.

    Attributes
    ----------
    rows : which rows of the result they are.
    x : (n_rows, n_features), any strides; elements of ``KeyForm.value``'s width.
    kept_rows : int64, rows of ``x`` that are meant, one after another; None for all.
    """

    rows: slice
    x: torch.Tensor
    kept_rows: torch.Tensor | None

    @property
    def n_rows(self) -> int:
        """Rows that are meant."""
        return (self.x if self.kept_rows is None else self.kept_rows).shape[0]

    def strides(self) -> list[int]:
        """List argument ``strides`` of the kernels: 64-bit numbers, low words first."""
        return [word for step in self.x.stride() for word in (step & 0xFFFFFFFF, step >> 32)]


class DeviceFeatures:
    """X as kernels read it."""

    def __init__(self, source: FeatureSource, transfers: Transfers) -> None:
        self._source = source
        self._transfers = transfers
        name = "float64"
        if isinstance(source, HostMatrix):
            name = "bfloat16" if source.is_bfloat16 else source.values.dtype.name
        elif isinstance(source, TensorMatrix) and self._is_resident(source):
            name = str(source.tensor.dtype).removeprefix("torch.")
        self.form: KeyForm = KEY_FORMS[name]

    def _is_resident(self, source: TensorMatrix) -> bool:
        """Whether kernels may read it where it lies."""
        tensor = source.tensor
        return tensor.device == self._transfers.device and tensor.dtype != torch.float64

    def blocks(self, kept_rows: Int64Array | None = None) -> Iterator[DeviceBlock]:
        """All (kept) rows in order."""
        source, transfers = self._source, self._transfers
        n_rows = source.n_rows if kept_rows is None else int(kept_rows.size)
        if n_rows == 0:
            return
        if isinstance(source, TensorMatrix) and self._is_resident(source):
            kept = None if kept_rows is None else transfers.to_device(kept_rows)
            yield DeviceBlock(slice(0, n_rows), source.tensor, kept)
            return
        for rows in row_blocks(n_rows, 8 * source.n_features):
            chosen = rows if kept_rows is None else kept_rows[rows]
            if isinstance(source, HostMatrix) and self.form.dtype != "float64":
                values = source.values[chosen]
                moved = transfers.to_device(values.view(f"i{values.itemsize}"))
            else:
                if isinstance(chosen, slice):
                    chosen = np.arange(chosen.start, chosen.stop)
                everything = slice(0, source.n_features)
                moved = transfers.to_device(float64_keys(source.sample(chosen, everything)))
            yield DeviceBlock(rows, moved, None)


def bin_features(
    source: FeatureSource,
    kept_rows: Int64Array | None,
    thresholds: BinThresholds,
    library: MetalLibrary,
    transfers: Transfers,
) -> DeviceBins:
    """See ``ComputeBackend.bin_features``."""
    features = DeviceFeatures(source, transfers)
    n_rows = source.n_rows if kept_rows is None else int(kept_rows.size)
    bins = DeviceBins.empty(n_rows, source.n_features, transfers.device)
    library = library.with_turns(Turns())
    cuts = features.form.threshold_keys(thresholds.values)
    device_cuts = transfers.to_device(np.append(cuts, cuts.dtype.type(0)))  # one at least
    ranges = (thresholds.offsets[:-1], np.diff(thresholds.offsets), thresholds.n_value_bins)
    device_ranges = transfers.to_device(np.stack(ranges, axis=1).astype(np.int32))
    for block in features.blocks(kept_rows):
        constants = {
            **features.form.constants(),
            "HAS_KEPT_ROWS": int(block.kept_rows is not None),
        }
        library.kernel("bin_features", constants=constants)(
            block.x,
            block.x if block.kept_rows is None else block.kept_rows,
            device_cuts,
            device_ranges,
            bins.tensor[block.rows],
            block.strides(),
            source.n_features,
            threads=(block.n_rows, bins.tensor.shape[1] // WORD_FEATURES),
            group_size=(GROUP_THREADS, 1),
        )
    library.turns.finish(transfers)
    return bins


class DeviceForest:
    """A forest on the device, ready for rows of X of one form."""

    def __init__(
        self, forest: Forest, form: KeyForm, library: MetalLibrary, transfers: Transfers
    ) -> None:
        nodes = forest.nodes
        feature = np.where(nodes.is_leaf, -1, nodes.feature)
        columns = (feature, nodes.left, nodes.missing_left)
        self._nodes = transfers.to_device(np.stack(columns, axis=1).astype(np.int32))
        self._keys = transfers.to_device(form.threshold_keys(nodes.threshold))
        self._values = transfers.to_device(nodes.value)
        self._offsets = transfers.to_device(forest.offsets.astype(np.int32))
        self._n_trees = forest.n_trees
        self._depth = max(forest_depth(nodes, forest.offsets), 1)
        self._constants = form.constants()
        self._library = library.with_turns(Turns())
        self._transfers = transfers

    def finish(self) -> None:
        """Raise BackendError unless every kernel so far has run."""
        self._library.turns.finish(self._transfers)

    def add_values(self, block: DeviceBlock, sums: torch.Tensor) -> None:
        """Add each tree's leaf values; float32, (n_rows, n_outputs), contiguous. IN-OUT."""
        n_values = self._values.shape[1]
        for first, end in self._steps(block):
            self._library.kernel("predict", constants=self._constants)(
                block.x,
                self._nodes,
                self._keys,
                self._values,
                self._offsets,
                sums,
                block.strides(),
                first,
                end,
                n_values,
                sums.shape[1],
                threads=block.n_rows,
                group_size=GROUP_THREADS,
            )

    def write_leaves(self, block: DeviceBlock, leaves: torch.Tensor) -> None:
        """Write each tree's leaf; int32, (n_rows, n_trees), contiguous. OUT."""
        for first, end in self._steps(block):
            self._library.kernel("predict", "predict_leaves", self._constants)(
                block.x,
                self._nodes,
                self._keys,
                self._offsets,
                leaves,
                block.strides(),
                first,
                end,
                self._n_trees,
                threads=block.n_rows,
                group_size=GROUP_THREADS,
            )

    def _steps(self, block: DeviceBlock) -> Iterator[tuple[int, int]]:
        """Trees of each dispatch: first, end. The device has done one before the next is queued.

        torch hands work to the device when somebody waits for it, all in one piece, and it is such
        a piece that must not take too long.
        """
        step = max(1, _STEPS_AT_ONCE // (block.n_rows * self._depth))
        for first in range(0, self._n_trees, step):
            if first > 0:
                self.finish()
            yield first, min(first + step, self._n_trees)
