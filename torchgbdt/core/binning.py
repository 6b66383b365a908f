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
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.feature_source import FeatureSource
from torchgbdt.core.fixed_point import HESSIAN_BITS, round_hessians, scale_exponent
from torchgbdt.core.random import Purpose, random_keys
from torchgbdt.core.settings import BinningSettings

SAMPLE_ROWS = 200_000
"""Rows that quantiles are taken from; enough to place 255 cuts within about 0.1% of their rank."""

_FIRST_SCAN_ROWS = 4_096
_SCAN_ROWS = 65_536
_KEY_BLOCK = 262_144
_SAMPLE_BLOCK_FEATURES = 8


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
) -> BinThresholds:
    """Fit the thresholds of every feature.

    Parameters
    ----------
    source : this rank's X.
    kept_rows : int64, ascending rows of ``source`` with a positive weight; None for all. IN.
    first_row_id : global id of this rank's first kept row.
    weights : float32 > 0, one per kept row, or None. IN.
    communicator : the ranks whose rows together are the data set.
    """
    n_rows = source.n_rows if kept_rows is None else int(kept_rows.size)
    max_value_bins = settings.max_bins - 1
    sampled = sample_rows(n_rows, first_row_id, settings.random_state, communicator)
    sample_weights = _integer_weights(
        None if weights is None else weights[sampled], sampled.size, communicator
    )
    source_rows = sampled if kept_rows is None else kept_rows[sampled]

    features: list[tuple[Float64Array, int]] = []
    for start in range(0, source.n_features, _SAMPLE_BLOCK_FEATURES):
        block = range(start, min(start + _SAMPLE_BLOCK_FEATURES, source.n_features))
        distinct = [
            _merged_distinct_values(source, kept_rows, feature, max_value_bins, communicator)
            for feature in block
        ]
        columns = None
        if any(values is None for values in distinct):
            columns = source.sample(source_rows, slice(block.start, block.stop))
        for values, feature in zip(distinct, block, strict=True):
            if values is None:
                assert columns is not None
                column = columns[:, feature - block.start]
                features.append(
                    _fit_quantiles(column, sample_weights, max_value_bins, communicator)
                )
            else:
                features.append((midpoints(values[:-1], values[1:]), values.size))
    return BinThresholds.from_features(features)


def midpoints(lower: Float64Array, upper: Float64Array) -> Float64Array:
    """Thresholds t between neighbouring values a < b, such that a <= t < b.

    t = a/2 + b/2 in float64; a itself where rounding or an infinity would break the inequality.
    """
    with np.errstate(invalid="ignore"):
        middle = lower / 2 + upper / 2
        return np.where((lower <= middle) & (middle < upper), middle, lower)


def quantile_cuts(weights: Int64Array, n_bins: int) -> Int64Array:
    """Positions i such that cutting after each of them makes at most n_bins bins of like weight.

    A heavy value, one that weighs at least a fair share by itself, closes a bin. The other values
    share the other bins: each takes values until it holds ceil(light weight left / bins left).
    Before a heavy value, light ones of less than half a share join its bin. Integers only: no
    rounding, no order.

        weights 1 1 1 1 9 1 1 1, n_bins 3:   1 1 1 1 | 9 | 1 1 1

    Parameters
    ----------
    weights : int64 > 0, (n_values,), in the order of the values; their sum < 2^54. IN.
    """
    if weights.size <= n_bins:
        return np.arange(weights.size - 1, dtype=np.int64)
    heavy = _heavy_values(weights, n_bins)
    heavy_positions = [*np.flatnonzero(heavy).tolist(), weights.size]  # the last one is never met
    cumulative = np.cumsum(np.where(heavy, 0, weights))
    light_bins, light_total, light_used = n_bins - int(heavy.sum()), int(cumulative[-1]), 0
    cuts: list[int] = []
    start, next_heavy = 0, 0
    while len(cuts) < n_bins - 1:
        light_left = light_total - light_used
        target = light_used + -(-light_left // light_bins) if light_bins else light_total + 1
        full = int(np.searchsorted(cumulative[start:], target, side="left")) + start
        end = heavy_positions[next_heavy]
        light_before = int(cumulative[end - 1]) - light_used if end > start else 0
        if full < end:
            position, light_bins = full, light_bins - 1
        elif 2 * light_before * light_bins >= light_left and light_before > 0:
            position, light_bins = end - 1, light_bins - 1
        else:
            position, next_heavy = end, next_heavy + 1
        if position >= weights.size - 1:
            break
        cuts.append(position)
        start, light_used = position + 1, int(cumulative[position])
    return np.array(cuts, np.int64)


def _heavy_values(weights: Int64Array, n_bins: int) -> BoolArray:
    """Values that weigh at least a fair share of what is not heavy; fewer than n_bins of them."""
    heavy = np.zeros(weights.size, np.bool_)
    while True:
        light_bins, light = n_bins - int(heavy.sum()), int(weights[~heavy].sum())
        new = ~heavy & (weights * light_bins >= light)
        if not new.any():
            return heavy
        heavy |= new


def sample_rows(
    n_rows: int, first_row_id: int, random_state: int, communicator: Communicator
) -> Int64Array:
    """This rank's rows among the SAMPLE_ROWS rows with the smallest random keys, ascending.

    Keys depend on global row ids only; equal keys go by row id.
    """
    totals = [int(part[0]) for part in communicator.gather(np.array([n_rows], np.int64))]
    if sum(totals) <= SAMPLE_ROWS:
        return np.arange(n_rows, dtype=np.int64)
    best: RecordArray = np.zeros(0, [("key", np.uint64), ("row", np.uint64)])
    for start in range(0, n_rows, _KEY_BLOCK):
        rows = np.arange(start, min(start + _KEY_BLOCK, n_rows), dtype=np.uint64)
        rows += np.uint64(first_row_id)
        block = np.empty(rows.size, best.dtype)
        block["row"] = rows
        block["key"] = random_keys(random_state, Purpose.BINNING_SAMPLE, 0, rows)
        best = _smallest_keys(np.concatenate((best, block)))
    everywhere = _smallest_keys(np.concatenate(communicator.gather(best)))
    local = everywhere["row"].astype(np.int64) - first_row_id
    return local[(local >= 0) & (local < n_rows)]


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
    return round_hessians(local, scale).astype(np.int64)


def _merged_distinct_values(
    source: FeatureSource,
    kept_rows: Int64Array | None,
    feature: int,
    limit: int,
    communicator: Communicator,
) -> Float64Array | None:
    """The distinct values of a feature over all ranks, ascending; None if more than ``limit``."""
    local = distinct_values(source, kept_rows, feature, limit)
    if communicator.any_true(local is None) or local is None:
        return None
    merged = np.unique(np.concatenate(communicator.gather(local)))
    return merged if merged.size <= limit else None


def distinct_values(
    source: FeatureSource, kept_rows: Int64Array | None, feature: int, limit: int
) -> Float64Array | None:
    """This rank's distinct values of a feature, ascending, NaN left out, -0 as +0.

    Returns None, without reading on, as soon as there are more than ``limit``.
    """
    n_rows = source.n_rows if kept_rows is None else kept_rows.size
    distinct = np.zeros(0, np.float64)
    start, step = 0, _FIRST_SCAN_ROWS
    while start < n_rows:
        stop = min(start + step, n_rows)
        if kept_rows is None:
            values = source.column(feature, start, stop)
        else:
            values = source.sample(kept_rows[start:stop], slice(feature, feature + 1))[:, 0]
        values = values[~np.isnan(values)] + 0.0
        distinct = np.unique(np.concatenate((distinct, values)))
        if distinct.size > limit:
            return None
        start, step = stop, _SCAN_ROWS
    return distinct


def _fit_quantiles(
    column: Float64Array,
    weights: Int64Array | None,
    max_value_bins: int,
    communicator: Communicator,
) -> tuple[Float64Array, int]:
    """Thresholds and number of value bins of a feature with many values, from its sample."""
    present = ~np.isnan(column)
    values = np.concatenate(communicator.gather(column[present] + 0.0))
    if weights is None:
        distinct, weight_of_value = np.unique(values, return_counts=True)
    else:
        all_weights = np.concatenate(communicator.gather(weights[present]))
        distinct, position = np.unique(values, return_inverse=True)
        weight_of_value = np.zeros(distinct.size, np.int64)
        np.add.at(weight_of_value, position, all_weights)
    cuts = quantile_cuts(weight_of_value, max_value_bins)
    return midpoints(distinct[cuts], distinct[cuts + 1]), cuts.size + 1
