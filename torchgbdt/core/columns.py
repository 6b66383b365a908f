"""What thresholds are fitted from: the distinct values of columns, or their sampled values sorted.

Sorting and cutting take most of the time of fitting. A backend may bring its own ways, which give
the same arrays; what is made of them is decided in ``binning`` alone.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from torchgbdt.core import quantiles
from torchgbdt.core.arrays import Float64Array, Int64Array
from torchgbdt.core.feature_source import FeatureSource

_FIRST_SCAN_ROWS = 4_096
_SCAN_ROWS = 65_536


class ColumnReader(Protocol):
    """How columns are read and sorted; a ``ComputeBackend`` is one."""

    def distinct_values(
        self, source: FeatureSource, kept_rows: Int64Array | None, features: range, limit: int
    ) -> list[Float64Array | None]:
        """See the function of this name."""
        ...

    def sort_columns(
        self, source: FeatureSource, rows: Int64Array, features: range
    ) -> Float64Array:
        """See the function of this name."""
        ...

    def cut_column(self, values: Float64Array, n_bins: int) -> Float64Array:
        """See ``quantiles.cut_column``."""
        ...


def distinct_values(
    source: FeatureSource, kept_rows: Int64Array | None, features: range, limit: int
) -> list[Float64Array | None]:
    """This rank's distinct values of some features: ascending, NaN left out, -0 as +0.

    None for a feature that has more than ``limit``; reading stops as soon as that is seen.

    Parameters
    ----------
    kept_rows : int64, the rows that count; None for all. IN.
    features : columns of ``source``, one after another.
    limit : 1..255.
    """
    return [_distinct_values(source, kept_rows, feature, limit) for feature in features]


def _distinct_values(
    source: FeatureSource, kept_rows: Int64Array | None, feature: int, limit: int
) -> Float64Array | None:
    distinct = np.zeros(0, np.float64)
    for values in _column_stretches(source, kept_rows, feature):
        distinct = np.unique(np.concatenate((distinct, values[~np.isnan(values)] + 0.0)))
        if distinct.size > limit:
            return None
    return distinct


def _column_stretches(
    source: FeatureSource, kept_rows: Int64Array | None, feature: int
) -> Iterator[Float64Array]:
    """A column piece by piece, the first one short: most columns show there what they are."""
    n_rows = source.n_rows if kept_rows is None else kept_rows.size
    start, step = 0, _FIRST_SCAN_ROWS
    while start < n_rows:
        stop = min(start + step, n_rows)
        if kept_rows is None:
            yield source.column(feature, start, stop)
        else:
            yield source.sample(kept_rows[start:stop], slice(feature, feature + 1))[:, 0]
        start, step = stop, _SCAN_ROWS


def sort_columns(source: FeatureSource, rows: Int64Array, features: range) -> Float64Array:
    """Chosen rows of some features, each feature's values ascending, -0 as +0 and NaN last.

    Parameters
    ----------
    rows : int64, rows of ``source``. IN.
    features : columns of ``source``, one after another.

    Returns
    -------
    float64, (n_features, n_chosen).
    """
    columns = np.ascontiguousarray(source.sample(rows, slice(features.start, features.stop)).T)
    columns += 0.0
    columns.sort(axis=1)
    return columns


class NumpyColumnReader:
    """The definition: the functions of this module, and of ``quantiles``."""

    distinct_values = staticmethod(distinct_values)
    sort_columns = staticmethod(sort_columns)
    cut_column = staticmethod(quantiles.cut_column)


NUMPY_COLUMN_READER = NumpyColumnReader()
