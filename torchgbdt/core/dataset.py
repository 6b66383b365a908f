"""A data set after quantization: bins, thresholds, labels and weights of the rows that count.

Rows of weight zero are dropped at the door: they get no bin, no id, no sample and no count. What is
left is numbered in input order. ``subset`` shares the thresholds, so folds are binned once.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from torchgbdt.core.arrays import (
    MAX_ROWS,
    AnyArray,
    BinMatrix,
    BoolArray,
    Float32Array,
    Int64Array,
)
from torchgbdt.core.binning import BinThresholds, fit_thresholds
from torchgbdt.core.columns import NUMPY_COLUMN_READER, ColumnReader
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.feature_source import FeatureSource
from torchgbdt.core.settings import BinningSettings

BinFeatures: TypeAlias = Callable[[FeatureSource, Int64Array | None, BinThresholds], BinMatrix]
"""``ComputeBackend.bin_features``: source, kept rows, thresholds -> bins."""


@dataclass(frozen=True)
class Dataset:
    """Binned rows of one rank.

    Attributes
    ----------
    bins : uint8, (n_rows, n_features), where the backend that made them trains.
    labels : (n_rows,), numbers or texts as they came; None for data that is only predicted on.
    weights : float32 > 0, (n_rows,); None if no sample_weight was given.
    kept_rows : int64, (n_rows,), the input row of each row; None if every input row counts.
    n_input_rows : rows the user passed, before rows of weight zero were dropped.
    """

    bins: BinMatrix
    thresholds: BinThresholds
    labels: AnyArray | None
    weights: Float32Array | None
    kept_rows: Int64Array | None
    n_input_rows: int
    settings: BinningSettings
    feature_names: tuple[str, ...] | None = None

    @property
    def n_rows(self) -> int:
        """Rows that count."""
        return int(self.bins.shape[0])

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return self.thresholds.n_features

    def dropped_rows(self) -> BoolArray | None:
        """bool, (n_input_rows,), the rows of weight zero; None if every input row counts."""
        if self.kept_rows is None:
            return None
        dropped = np.ones(self.n_input_rows, np.bool_)
        dropped[self.kept_rows] = False
        return dropped

    def labels_that_count(self) -> AnyArray:
        """The labels: those of dropped rows are gone."""
        assert self.labels is not None
        return self.labels

    def of_kept_rows(self, per_input_row: AnyArray) -> AnyArray:
        """The entries of a per-input-row array that belong to rows that count."""
        return per_input_row if self.kept_rows is None else per_input_row[self.kept_rows]

    def subset(self, rows: AnyArray) -> "Dataset":
        """Rows of this data set, in the given order, with the same thresholds.

        Parameters
        ----------
        rows : integers, input rows in 0..n_input_rows - 1, repeats allowed; or bool, one per
            input row. IN.

        Raises
        ------
        InvalidDataError : no rows, an index out of range, or another dtype.
        """
        chosen = _check_subset_rows(rows, self.n_input_rows)
        position, kept = chosen, None
        if self.kept_rows is not None:
            position_of_input = np.full(self.n_input_rows, -1, np.int64)
            position_of_input[self.kept_rows] = np.arange(self.n_rows)
            kept = np.flatnonzero(position_of_input[chosen] >= 0)
            position = position_of_input[chosen][kept]
        if position.size == 0:
            raise InvalidDataError("rows selects no row with a positive weight; select some.")
        return replace(
            self,
            bins=self.bins[position],
            labels=None if self.labels is None else self.labels[position],
            weights=None if self.weights is None else self.weights[position],
            kept_rows=kept,
            n_input_rows=int(chosen.size),
        )


def quantize(
    source: FeatureSource,
    labels: AnyArray | None,
    weights: Float32Array | None,
    settings: BinningSettings,
    bin_features: BinFeatures,
    *,
    feature_names: tuple[str, ...] | None = None,
    thresholds: BinThresholds | None = None,
    communicator: Communicator = SINGLE_RANK,
    reader: ColumnReader = NUMPY_COLUMN_READER,
) -> Dataset:
    """Quantize the features of X into bins.

    Parameters
    ----------
    source : X of this rank.
    labels : checked by ``row_values.check_labels``, one per input row. IN.
    weights : checked by ``row_values.check_weights``, one per input row. IN.
    bin_features : the backend's kernel.
    thresholds : those of the training data, for data that is evaluated; None to fit them.
    communicator : the ranks whose rows together are the data set.
    reader : reads columns where thresholds are fitted; the backend.

    Raises
    ------
    InvalidDataError : no row with a positive weight on any rank, or more than 2^32 of them.
    """
    kept_rows = None
    if weights is not None and not np.all(weights > 0):
        kept_rows = np.flatnonzero(weights > 0)
        weights = weights[kept_rows]
        labels = None if labels is None else labels[kept_rows]
    n_rows = source.n_rows if kept_rows is None else int(kept_rows.size)
    if thresholds is None:
        first_row_id = _first_row_id(n_rows, communicator)
        thresholds = fit_thresholds(
            source, kept_rows, first_row_id, weights, settings, communicator, reader
        )
    bins = bin_features(source, kept_rows, thresholds)
    return Dataset(
        bins, thresholds, labels, weights, kept_rows, source.n_rows, settings, feature_names
    )


def _check_subset_rows(rows: AnyArray, n_input_rows: int) -> Int64Array:
    if rows.ndim != 1 or rows.dtype.kind not in "biu":
        raise InvalidDataError(
            f"rows must be a 1-D array of integers or bools; found dtype {rows.dtype}, shape "
            f"{tuple(rows.shape)}."
        )
    if rows.dtype.kind == "b":
        if rows.size != n_input_rows:
            raise InvalidDataError(
                f"rows is a mask of {rows.size} entries; the data set has {n_input_rows} rows."
            )
        return np.flatnonzero(rows)
    if rows.size and (rows.min() < 0 or rows.max() >= n_input_rows):
        raise InvalidDataError(
            f"rows must lie in 0..{n_input_rows - 1}; found {rows.min()}..{rows.max()}."
        )
    return rows.astype(np.int64)


def _first_row_id(n_rows: int, communicator: Communicator) -> int:
    """Global id of this rank's first row: ranks number their rows one after another."""
    counts = [int(part[0]) for part in communicator.gather(np.array([n_rows], np.int64))]
    if sum(counts) == 0:
        raise InvalidDataError("no row has a positive weight; nothing can be trained on.")
    if sum(counts) > MAX_ROWS:
        raise InvalidDataError(f"{sum(counts)} rows; at most 2^32 can be trained on.")
    return sum(counts[: communicator.rank])
