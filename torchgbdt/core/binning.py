"""Thresholds: where the values of each feature are cut into bins, and the cutting itself.

    distinct values of the column, where few ----------> one bin per value   --> BinThresholds
    values of the sampled rows, where those are many --> weighted quantiles  -/

Fitted once, by this one function, on the host, for every backend; the same thresholds come out
whatever the number of ranks. Only blocks of a few columns exist as float64 at any time.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from torchgbdt.core.arrays import (
    BIN_DTYPE,
    THRESHOLD_DTYPE,
    BinArray,
    BoolArray,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
    RecordArray,
)
from torchgbdt.core.columns import NUMPY_COLUMN_READER, ColumnReader
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.feature_source import FeatureSource
from torchgbdt.core.fixed_point import HESSIAN_BITS, round_hessians, scale_exponent
from torchgbdt.core.quantiles import cut_weighted, midpoints
from torchgbdt.core.random import Purpose, random_keys
from torchgbdt.core.settings import BinningSettings

SAMPLE_ROWS = 200_000
"""Rows that quantiles are taken from; enough to place 255 cuts within about 0.1% of their rank."""

_KEY_BLOCK = 65_536
_LARGEST_KEY = 2**64 - 1
_SAMPLE_BYTES = 24 << 20


@dataclass(frozen=True)
class BinThresholds:
    """The thresholds of all features, one after another.

    Value bin b of a feature holds x with threshold[b-1] < x <= threshold[b]; the last value bin has
    no upper threshold (+inf). Code ``n_value_bins`` means missing.

    Attributes
    ----------
    values : float64, (offsets[-1],); ascending within a feature.
    offsets : int64, (n_features + 1,); feature f owns values[offsets[f]:offsets[f + 1]].
    n_value_bins : int32, (n_features,), 0..255; 0 where every row is missing.
    """

    values: Float64Array
    offsets: Int64Array
    n_value_bins: Int32Array

    @property
    def n_features(self) -> int:
        """Features, constant and all-missing ones included."""
        return int(self.n_value_bins.size)

    @cached_property
    def bin_offsets(self) -> Int64Array:
        """int64, (n_features + 1,): first histogram cell of each feature, n_value_bins + 1 each."""
        return np.concatenate(([0], np.cumsum(self.n_value_bins + 1))).astype(np.int64)

    @property
    def total_bins(self) -> int:
        """Histogram cells of one node: all codes of all features."""
        return int(self.bin_offsets[-1])

    @cached_property
    def upper_bounds(self) -> Float64Array:
        """float64, (total_bins,): the largest x of each histogram cell; +inf for the last ones."""
        bounds = np.full(self.total_bins, np.inf)
        shift = np.repeat(self.bin_offsets[:-1] - self.offsets[:-1], np.diff(self.offsets))
        bounds[np.arange(self.values.size) + shift] = self.values
        return bounds

    def of_feature(self, feature: int) -> Float64Array:
        """The thresholds between the value bins of one feature, ascending."""
        return self.values[self.offsets[feature] : self.offsets[feature + 1]]

    def upper_bound(self, feature: int, value_bin: int) -> float:
        """The largest x that falls into a value bin; +inf for the last one."""
        return float(self.upper_bounds[self.bin_offsets[feature] + value_bin])

    @classmethod
    def from_features(cls, distinct_or_cut: list[tuple[Float64Array, int]]) -> "BinThresholds":
        """Join (thresholds, number of value bins) of each feature."""
        sizes = [thresholds.size for thresholds, _ in distinct_or_cut]
        return cls(
            np.concatenate([t for t, _ in distinct_or_cut]).astype(THRESHOLD_DTYPE),
            np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            np.array([n_bins for _, n_bins in distinct_or_cut], np.int32),
        )


def bin_column(values: Float64Array, thresholds: BinThresholds, feature: int) -> BinArray:
    """Bin codes of one feature's values, the definition every backend is held to.

    Parameters
    ----------
    values : float64, (n_rows,); NaN is missing, infinities are values. IN.

    Returns
    -------
    uint8, (n_rows,): the number of thresholds below x, or ``n_value_bins`` where x is missing.
    """
    missing_code = thresholds.n_value_bins[feature]
    if missing_code == 0:
        return np.zeros(values.shape, BIN_DTYPE)
    codes = np.searchsorted(thresholds.of_feature(feature), values, side="left")
    return np.where(np.isnan(values), missing_code, codes).astype(BIN_DTYPE)


def fit_thresholds(
    source: FeatureSource,
    kept_rows: Int64Array | None,
    first_row_id: int,
    weights: Float32Array | None,
    settings: BinningSettings,
    communicator: Communicator,
    reader: ColumnReader = NUMPY_COLUMN_READER,
) -> BinThresholds:
    """Fit the thresholds of every feature.

    Parameters
    ----------
    source : this rank's X.
    kept_rows : int64, ascending rows of ``source`` with a positive weight; None for all. IN.
    first_row_id : global id of this rank's first kept row.
    weights : float32 > 0, one per kept row, or None. IN.
    communicator : the ranks whose rows together are the data set.
    reader : reads and sorts columns; any one gives the same thresholds.
    """
    n_rows = source.n_rows if kept_rows is None else int(kept_rows.size)
    max_value_bins = settings.max_bins - 1
    sampled = sample_rows(n_rows, first_row_id, settings.random_state, communicator)
    sample_weights = _integer_weights(
        None if weights is None else weights[sampled], sampled.size, communicator
    )
    source_rows = sampled if kept_rows is None else kept_rows[sampled]

    features: list[tuple[Float64Array, int]] = []
    step = max(1, _SAMPLE_BYTES // (8 * max(sampled.size, 1)))
    for start in range(0, source.n_features, step):
        block = range(start, min(start + step, source.n_features))
        few = [
            _merge_distinct(values, max_value_bins, communicator)
            for values in reader.distinct_values(source, kept_rows, block, max_value_bins)
        ]
        fitted = {
            feature: (midpoints(values[:-1], values[1:]), values.size)
            for feature, values in zip(block, few, strict=True)
            if values is not None
        }
        many = [feature for feature in block if feature not in fitted]
        if many:
            span = range(many[0], many[-1] + 1)
            samples = _SampledColumns(source, source_rows, span, sample_weights, reader)
            for feature in many:
                thresholds = samples.cut(feature, max_value_bins, communicator)
                fitted[feature] = (thresholds, thresholds.size + 1)
        features.extend(fitted[feature] for feature in block)
    return BinThresholds.from_features(features)


def sample_rows(
    n_rows: int, first_row_id: int, random_state: int, communicator: Communicator
) -> Int64Array:
    """This rank's rows among the SAMPLE_ROWS rows with the smallest random keys, ascending.

    Keys depend on global row ids only; equal keys go by row id.
    """
    total = sum(_gather_sizes(n_rows, communicator))
    if total <= SAMPLE_ROWS:
        return np.arange(n_rows, dtype=np.int64)
    # Keys are uniform, so those up to this bound are a few more than the sample, in all but one
    # of 10^15 cases; keeping those alone saves sorting the others.
    expected = SAMPLE_ROWS + 8 * int(SAMPLE_ROWS**0.5) + 64
    bound = min(expected * 2**64 // total, _LARGEST_KEY)
    candidates = _rows_with_keys(n_rows, first_row_id, random_state, bound)
    if sum(_gather_sizes(candidates.size, communicator)) < SAMPLE_ROWS:
        candidates = _rows_with_keys(n_rows, first_row_id, random_state, _LARGEST_KEY)
    everywhere = _smallest_keys(np.concatenate(communicator.gather(_smallest_keys(candidates))))
    local = everywhere["row"].astype(np.int64) - first_row_id
    return local[(local >= 0) & (local < n_rows)]


def _gather_sizes(size: int, communicator: Communicator) -> list[int]:
    return [int(part[0]) for part in communicator.gather(np.array([size], np.int64))]


def _rows_with_keys(n_rows: int, first_row_id: int, random_state: int, bound: int) -> RecordArray:
    """Global ids and keys of this rank's rows whose key is at most ``bound``; rows ascend."""
    blocks: list[RecordArray] = [np.zeros(0, [("key", np.uint64), ("row", np.uint64)])]
    for start in range(0, n_rows, _KEY_BLOCK):
        rows = np.arange(start, min(start + _KEY_BLOCK, n_rows), dtype=np.uint64)
        rows += np.uint64(first_row_id)
        keys = random_keys(random_state, Purpose.BINNING_SAMPLE, 0, rows)
        chosen = np.flatnonzero(keys <= np.uint64(bound))
        block = np.empty(chosen.size, blocks[0].dtype)
        block["key"], block["row"] = keys[chosen], rows[chosen]
        blocks.append(block)
    return np.concatenate(blocks)


def _smallest_keys(candidates: RecordArray) -> RecordArray:
    """The SAMPLE_ROWS candidates with the smallest keys; rows ascend, before and after."""
    if candidates.size <= SAMPLE_ROWS:
        return candidates
    keys = candidates["key"]
    cut = np.partition(keys, SAMPLE_ROWS - 1)[SAMPLE_ROWS - 1]
    chosen: BoolArray = keys <= cut
    surplus = np.count_nonzero(chosen) - SAMPLE_ROWS
    tied = np.flatnonzero(keys == cut)
    chosen[tied[tied.size - surplus :]] = False
    smallest: RecordArray = candidates[chosen]
    return smallest


def _integer_weights(
    weights: Float32Array | None, n_sampled: int, communicator: Communicator
) -> Int64Array | None:
    """Weights of this rank's sampled rows as integers >= 1, on one scale over all ranks.

    None if no rank has weights.
    """
    if not communicator.any_true(weights is not None):
        return None
    local = np.ones(n_sampled, np.float32) if weights is None else weights
    largest = communicator.max_float64(np.array([local.max(initial=0)], np.float64))
    scale = scale_exponent(float(largest[0]), HESSIAN_BITS)
    rounded: Int64Array = round_hessians(local, scale).astype(np.int64)
    return rounded


def _merge_distinct(
    local: Float64Array | None, limit: int, communicator: Communicator
) -> Float64Array | None:
    """The distinct values of a feature over all ranks, ascending; None if more than ``limit``."""
    if communicator.any_true(local is None) or local is None:
        return None
    merged = np.unique(np.concatenate(communicator.gather(local)))
    return merged if merged.size <= limit else None


class _SampledColumns:
    """The sampled values of some features on this rank; float64, NaN among them.

    Without weights they are sorted here; with weights each rank's are sorted with theirs.
    """

    def __init__(
        self,
        source: FeatureSource,
        rows: Int64Array,
        features: range,
        weights: Int64Array | None,
        reader: ColumnReader,
    ) -> None:
        self._first = features.start
        self._weights = weights
        self._reader = reader
        if weights is None:
            self._columns = reader.sort_columns(source, rows, features)
        else:
            self._columns = source.sample(rows, slice(features.start, features.stop)).T

    def cut(self, feature: int, n_bins: int, communicator: Communicator) -> Float64Array:
        """Thresholds between bins of like weight, over the sampled values of all ranks."""
        column = self._columns[feature - self._first]
        if self._weights is None:
            parts = communicator.gather(column[: np.searchsorted(column, np.inf, side="right")])
            values = parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))
            return self._reader.cut_column(values, n_bins)
        is_present = ~np.isnan(column)
        values = np.concatenate(communicator.gather(column[is_present] + 0.0))
        weights = np.concatenate(communicator.gather(self._weights[is_present]))
        order = np.argsort(values)
        return cut_weighted(values[order], weights[order], n_bins)
