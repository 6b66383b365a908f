"""Quantile bins: sorted values are cut where each bin holds its share of their weight.

Integers only: no rounding, and no order in which anything is added up.
"""

import numpy as np

from torchgbdt.core.arrays import BoolArray, Float64Array, Int64Array


def cut_column(values: Float64Array, n_bins: int) -> Float64Array:
    """Thresholds between at most n_bins bins of sorted values, each of which weighs 1.

    Parameters
    ----------
    values : float64, (n_values,), ascending; no NaN and no -0. IN.
    n_bins : 1..255.

    Returns
    -------
    float64, (at most n_bins - 1,), ascending.
    """
    starts = _group_starts(values)
    ends = np.append(starts[1:], values.size)
    return _cut(values[starts], ends - starts, n_bins)


def cut_weighted(values: Float64Array, weights: Int64Array, n_bins: int) -> Float64Array:
    """The same of values that weigh something; int64 > 0, (n_values,), their sum < 2^54. IN."""
    starts = _group_starts(values)
    weight_of_value = np.add.reduceat(weights, starts) if starts.size else weights
    return _cut(values[starts], weight_of_value, n_bins)


def _cut(distinct: Float64Array, weights: Int64Array, n_bins: int) -> Float64Array:
    cuts = quantile_cuts(weights, n_bins)
    return midpoints(distinct[cuts], distinct[cuts + 1])


def _group_starts(ascending: Float64Array) -> Int64Array:
    """Where each run of equal values begins."""
    is_first = np.ones(ascending.size, np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)


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
    cumulative = np.cumsum(weights)
    heavy_positions = [weights.size]  # never met
    if int(weights.max()) * n_bins >= int(cumulative[-1]):  # else none is heavy
        heavy = _heavy_values(weights, n_bins)
        heavy_positions = [*np.flatnonzero(heavy).tolist(), weights.size]
        cumulative = np.cumsum(np.where(heavy, 0, weights))
    light_bins, light_total, light_used = n_bins - len(heavy_positions) + 1, int(cumulative[-1]), 0
    cuts: list[int] = []
    start, next_heavy = 0, 0
    while len(cuts) < n_bins - 1:
        light_left = light_total - light_used
        target = light_used + -(-light_left // light_bins) if light_bins else light_total + 1
        full = max(start, int(cumulative.searchsorted(target)))
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
