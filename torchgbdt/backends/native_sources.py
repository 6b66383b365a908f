"""How sources and forests are handed to native kernels: where they lie if that is possible."""

from collections.abc import Iterator

import numpy as np

from torchgbdt.core.arrays import BinArray, Float32Array, Float64Array, Int32Array, Int64Array
from torchgbdt.core.feature_source import FeatureSource, HostMatrix, row_blocks
from torchgbdt.core.tree import Forest


def forest_arrays(
    forest: Forest,
) -> tuple[Int64Array, Int32Array, Float64Array, Int32Array, BinArray, Float32Array]:
    """The arrays of a forest that prediction reads, in the order of the kernel's arguments."""
    nodes = forest.nodes
    return (forest.offsets, nodes.feature, nodes.threshold, nodes.left, nodes.flags, nodes.value)


def host_blocks(
    source: FeatureSource, kept_rows: Int64Array | None = None
) -> Iterator[tuple[slice, HostMatrix]]:
    """All (kept) rows of a source: a host matrix as it lies, another one a block at a time."""
    if isinstance(source, HostMatrix) and kept_rows is None:
        yield slice(None), source
        return
    n_rows = source.n_rows if kept_rows is None else kept_rows.size
    for rows in row_blocks(n_rows, 8 * source.n_features):
        chosen = np.arange(rows.start, rows.stop) if kept_rows is None else kept_rows[rows]
        yield rows, HostMatrix(source.sample(chosen, slice(0, source.n_features)))


def host_rows(
    source: FeatureSource, rows: Int64Array, features: range
) -> tuple[HostMatrix, Int64Array | None, int]:
    """A matrix, its rows that are meant (None for all) and its column of the first feature.

    A host matrix stays where it lies; of another source the chosen values are copied.
    """
    if isinstance(source, HostMatrix):
        return source, rows, features.start
    return HostMatrix(source.sample(rows, slice(features.start, features.stop))), None, 0
