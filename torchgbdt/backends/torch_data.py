"""The torch backend outside of a run: from X to bins, and from X to predictions."""

from typing import Any

import torch

from torchgbdt.backends import torch_matrix
from torchgbdt.backends.torch_conformance import check_arithmetic
from torchgbdt.backends.torch_matrix import DeviceBins, DeviceKeys
from torchgbdt.backends.torch_operations import TORCH
from torchgbdt.backends.torch_transfers import Transfers, find_device, reports_memory
from torchgbdt.backends.torch_traversal import DeviceTrees
from torchgbdt.core.array_ops import Array
from torchgbdt.core.arrays import Int64Array
from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.binning import BinThresholds
from torchgbdt.core.feature_source import FeatureSource
from torchgbdt.core.fixed_point import flush_subnormals
from torchgbdt.core.tree import Forest

BYTES_PER_STEP = 64
"""Of temporary tensors, per row and tree on the way to a leaf."""


class TorchDataKernels(ComputeBackend):
    """The part of the torch backend that is the same in a run and outside of one.

    Parameters
    ----------
    device : such as "cpu", "cuda:1" or "mps".

    Attributes
    ----------
    transfers : the only ways to the device and back; they count.

    Raises
    ------
    BackendUnavailableError : the device is not here, or its arithmetic is not the host's.
    """

    def __init__(self, device: str | torch.device) -> None:
        self.device = find_device(str(device))
        check_arithmetic(self.device)
        self.transfers = Transfers(self.device)
        self._estimate = 0

    def memory_estimate(self) -> int:
        """About how many bytes the buffers of the latest run take."""
        return self._estimate

    @reports_memory
    def bin_features(
        self, source: FeatureSource, kept_rows: Int64Array | None, thresholds: BinThresholds
    ) -> DeviceBins:
        """See ComputeBackend. A TensorMatrix on this device is read where it lies."""
        return torch_matrix.bin_features(source, kept_rows, thresholds, self.transfers)

    @reports_memory
    def predict(self, forest: Forest, source: FeatureSource, sums: Array) -> None:
        """See ComputeBackend. A tensor of this device stays here."""
        trees, blocks = self._forest(forest, source)
        n_outputs = sums.shape[1]
        for rows, leaves in blocks:
            start = self.transfers.resident(sums[rows])
            columns = [start[:, output] for output in range(n_outputs)]
            values = trees.values[leaves]  # (n_rows, n_trees, n_values)
            for index in range(forest.n_trees):
                if values.shape[2] == n_outputs:
                    outputs = range(n_outputs)
                else:
                    outputs = range(index % n_outputs, index % n_outputs + 1)
                for value, output in enumerate(outputs):
                    added = columns[output] + values[:, index, value]
                    columns[output] = flush_subnormals(added, TORCH)
            self.transfers.write(torch.stack(columns, dim=1), sums, rows)

    @reports_memory
    def predict_leaves(self, forest: Forest, source: FeatureSource, leaves: Array) -> None:
        """See ComputeBackend."""
        trees, blocks = self._forest(forest, source)
        for rows, found in blocks:
            self.transfers.write((found - trees.roots).to(torch.int32), leaves, rows)

    def _forest(self, forest: Forest, source: FeatureSource) -> tuple[DeviceTrees, Any]:
        """The trees on the device, and (rows, leaves) of all rows, a block at a time."""
        keys = DeviceKeys(source, self.transfers)
        bounds = keys.threshold_keys(forest.nodes.threshold)
        trees = DeviceTrees.of(forest.nodes, forest.offsets, bounds, keys.missing, self.transfers)
        blocks = keys.blocks(None, BYTES_PER_STEP * forest.n_trees)
        return trees, ((rows, trees.leaves(block)) for rows, block in blocks)
