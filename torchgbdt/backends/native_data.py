"""The native kernels that need no run: from X to bins, and from X to predictions."""

import numpy as np

from torchgbdt import _native
from torchgbdt.backends.native_sources import forest_arrays, host_blocks, host_rows
from torchgbdt.core.arrays import (
    BIN_DTYPE,
    BinArray,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
)
from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.binning import BinThresholds
from torchgbdt.core.feature_source import FeatureSource, HostMatrix
from torchgbdt.core.tree import Forest


class NativeDataKernels(ComputeBackend):
    """The part of the native backend that is the same in a run and outside of one.

    Parameters
    ----------
    n_threads : >= 1; may exceed the number of cores.
    """

    def __init__(self, n_threads: int) -> None:
        self._n_threads = n_threads

    def distinct_values(
        self, source: FeatureSource, kept_rows: Int64Array | None, features: range, limit: int
    ) -> list[Float64Array | None]:
        """See ComputeBackend."""
        if not isinstance(source, HostMatrix):
            return super().distinct_values(source, kept_rows, features, limit)
        values = np.empty((len(features), limit), np.float64)
        counts = np.empty(len(features), np.int64)
        matrix = (source.values, source.is_bfloat16)
        _native.distinct_values(*matrix, kept_rows, features.start, values, counts, self._n_threads)
        found = zip(values, counts.tolist(), strict=True)
        return [few[:count] if count <= limit else None for few, count in found]

    def sort_columns(
        self, source: FeatureSource, rows: Int64Array, features: range
    ) -> Float64Array:
        """See ComputeBackend."""
        columns = np.empty((len(features), rows.size), np.float64)
        matrix, chosen, first = host_rows(source, rows, features)
        _native.sort_columns(
            matrix.values, matrix.is_bfloat16, chosen, first, columns, self._n_threads
        )
        return columns

    def cut_column(self, values: Float64Array, n_bins: int) -> Float64Array:
        """See ComputeBackend."""
        thresholds = np.empty(n_bins - 1, np.float64)
        n_thresholds = _native.cut_column(np.ascontiguousarray(values), thresholds)
        return thresholds[:n_thresholds]

    def bin_features(
        self,
        source: FeatureSource,
        kept_rows: Int64Array | None,
        thresholds: BinThresholds,
    ) -> BinArray:
        """See ComputeBackend."""
        n_rows = source.n_rows if kept_rows is None else int(kept_rows.size)
        bins = np.empty((n_rows, source.n_features), BIN_DTYPE)
        cuts = (thresholds.values, thresholds.offsets, thresholds.n_value_bins)
        if isinstance(source, HostMatrix):
            _native.bin_features(
                source.values, source.is_bfloat16, kept_rows, *cuts, bins, self._n_threads
            )
            return bins
        for rows, block in host_blocks(source, kept_rows):
            _native.bin_features(block.values, False, None, *cuts, bins[rows], self._n_threads)
        return bins

    def predict(self, forest: Forest, source: FeatureSource, sums: Float32Array) -> None:
        """See ComputeBackend."""
        for rows, block in host_blocks(source):
            _native.predict(
                *forest_arrays(forest),
                block.values,
                block.is_bfloat16,
                sums[rows],
                self._n_threads,
            )

    def predict_leaves(self, forest: Forest, source: FeatureSource, leaves: Int32Array) -> None:
        """See ComputeBackend."""
        for rows, block in host_blocks(source):
            _native.predict_leaves(
                *forest_arrays(forest),
                block.values,
                block.is_bfloat16,
                leaves[rows],
                self._n_threads,
            )
