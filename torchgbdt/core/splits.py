"""Split gain, leaf weight and the choice of the best split: the one definition in Python.

    score(G, H)  = G^2 / (H + reg_lambda)
    weight(G, H) = -G / (H + reg_lambda)
    gain         = 0.5 * (score(left) + score(right) - score(parent)) - gamma

XGBoost: A Scalable Tree Boosting System, Chen & Guestrin 2016, equations 5-7. Evaluated in float64
in exactly the order written below; csrc/cpu/split_gain.h is the same in C++, held bit-equal.

Ties: when gains are bit-equal, the smaller feature wins, then the smaller threshold bin, then
missing-right before missing-left.
"""

from dataclasses import dataclass

import numpy as np

from torchgbdt.core.arrays import (
    BoolArray,
    Float64Array,
    Int64Array,
    RecordArray,
)
from torchgbdt.core.binning import BinThresholds
from torchgbdt.core.fixed_point import to_float

SPLIT_DTYPE = np.dtype(
    [
        ("gain", np.float64),
        ("left_count", np.int64),
        ("right_count", np.int64),
        ("feature", np.int32),
        ("split_bin", np.int32),
        ("found", np.bool_),
        ("missing_left", np.bool_),
    ],
    align=True,
)
"""The best split of one node; all zero where ``found`` is False. Counts are over all ranks."""


@dataclass(frozen=True)
class SplitRules:
    """What makes a candidate valid and what it gains, for one tree.

    Attributes
    ----------
    min_hessian : int64, (n_outputs,); ``fixed_point.minimum_hessian`` at this tree's scale.
    scales : int64, (n_outputs, 2); powers of two of the gradient and Hessian sums.
    """

    reg_lambda: float
    gamma: float
    min_samples_leaf: int
    min_hessian: Int64Array
    scales: Int64Array


@dataclass(frozen=True)
class Histograms:
    """Integer totals of each bin of each node, over all ranks.

    Attributes
    ----------
    counts : int64, (n_nodes, total_bins); rows. Features lie one after another as
        ``BinThresholds.bin_offsets`` says, each with its value bins and then its missing bin.
    gradients, hessians : int64, (n_nodes, n_outputs, total_bins); fixed point.
    """

    counts: Int64Array
    gradients: Int64Array
    hessians: Int64Array


def score(gradient: Float64Array, hessian: Float64Array, reg_lambda: float) -> Float64Array:
    """``(G*G) / (H + lambda)``, 0 where the denominator is 0. float64, any shape."""
    return _quotient(gradient * gradient, hessian + reg_lambda)


def leaf_weight(gradient: Float64Array, hessian: Float64Array, reg_lambda: float) -> Float64Array:
    """``-G / (H + lambda)``, +0 where it is 0 or the denominator is 0. float64, any shape."""
    weight: Float64Array = 0.0 - _quotient(gradient, hessian + reg_lambda)  # 0 - 0 is +0
    return weight


def _quotient(numerator: Float64Array, denominator: Float64Array) -> Float64Array:
    quotient = np.zeros(numerator.shape)
    with np.errstate(over="ignore"):  # a gradient without Hessian over a tiny lambda
        return np.divide(numerator, denominator, out=quotient, where=denominator != 0)


def split_gain(left: Int64Array, parent: Int64Array, rules: SplitRules) -> Float64Array:
    """Loss reduction of splitting ``parent`` into ``left`` and the rest.

    Parameters
    ----------
    left : int64, (..., n_outputs, 2); gradient and Hessian sums. IN.
    parent : int64, broadcastable to ``left``. IN.

    Returns
    -------
    float64, (...); loss units.
    """
    total = np.zeros(left.shape[:-2])
    for output in range(rules.scales.shape[0]):
        left_score = _output_score(left, output, rules)
        right_score = _output_score(parent - left, output, rules)
        parent_score = _output_score(parent, output, rules)
        with np.errstate(invalid="ignore"):  # inf - inf is NaN, and no gain
            total = total + ((left_score + right_score) - parent_score)
    return (0.5 * total) - rules.gamma


def _output_score(sums: Int64Array, output: int, rules: SplitRules) -> Float64Array:
    gradient_scale, hessian_scale = rules.scales[output].tolist()
    gradient = to_float(sums[..., output, 0], gradient_scale)
    hessian = to_float(sums[..., output, 1], hessian_scale)
    return score(gradient, hessian, rules.reg_lambda)


def find_best_splits(
    histograms: Histograms,
    node_counts: Int64Array,
    node_sums: Int64Array,
    thresholds: BinThresholds,
    rules: SplitRules,
) -> tuple[RecordArray, Int64Array]:
    """The best split of each node.

    Parameters
    ----------
    node_counts : int64, (n_nodes,); rows over all ranks. IN.
    node_sums : int64, (n_nodes, n_outputs, 2); gradient and Hessian totals. IN.

    Returns
    -------
    records : SPLIT_DTYPE, (n_nodes,).
    left_sums : int64, (n_nodes, n_outputs, 2); totals of the left children, 0 where not found.
    """
    n_nodes = node_counts.size
    records = np.zeros(n_nodes, SPLIT_DTYPE)
    left_sums = np.zeros_like(node_sums)
    for feature in np.flatnonzero(thresholds.n_value_bins):
        left_counts, left, legal = _candidates(histograms, thresholds, int(feature))
        parent = node_sums[:, None, None]
        right_counts = node_counts[:, None, None] - left_counts
        legal &= np.minimum(left_counts, right_counts) >= rules.min_samples_leaf
        legal &= _has_enough_hessian(left, parent, rules)
        _drop_proportional(left, np.broadcast_to(parent, left.shape), legal)

        gains = split_gain(left, parent, rules)
        gains = np.where(legal & (gains > 0), gains, -np.inf).reshape(n_nodes, -1)
        best = gains.argmax(axis=1)  # the first one: smallest bin, missing-right first
        nodes = np.arange(n_nodes)
        better = gains[nodes, best] > records["gain"]
        nodes, best = nodes[better], best[better]
        split_bin, side = np.divmod(best, 2)
        missing = histograms.counts[nodes, thresholds.bin_offsets[feature + 1] - 1]
        left_count = left_counts[nodes, split_bin, side]
        right_count = right_counts[nodes, split_bin, side]
        records["found"][nodes] = True
        records["gain"][nodes] = gains[nodes, best]
        records["feature"][nodes] = feature
        records["split_bin"][nodes] = split_bin
        records["left_count"][nodes] = left_count
        records["right_count"][nodes] = right_count
        records["missing_left"][nodes] = np.where(missing > 0, side == 1, left_count > right_count)
        left_sums[nodes] = left[nodes, split_bin, side]
    return records, left_sums


def _candidates(
    histograms: Histograms, thresholds: BinThresholds, feature: int
) -> tuple[Int64Array, Int64Array, BoolArray]:
    """Left counts, left sums and legality of every (node, value bin, side of the missing rows).

    Shapes (n_nodes, n_value_bins, 2), the same + (n_outputs, 2), and (n_nodes, n_value_bins, 2).
    """
    first, end = thresholds.bin_offsets[feature : feature + 2]
    missing_bin = end - 1
    both = (histograms.gradients[:, :, first:end], histograms.hessians[:, :, first:end])
    sums = np.stack(both, axis=-1).transpose(0, 2, 1, 3)  # (n_nodes, bins, n_outputs, 2)
    counts = histograms.counts[:, first:end]

    without_missing = np.cumsum(counts[:, :-1], axis=1)
    left_counts = np.stack((without_missing, without_missing + counts[:, -1:]), axis=2)
    left_without = np.cumsum(sums[:, :-1], axis=1)
    left_sums = np.stack((left_without, left_without + sums[:, -1:]), axis=2)

    has_missing = histograms.counts[:, missing_bin] > 0
    legal = np.ones(left_counts.shape, np.bool_)
    legal[:, :, 1] = has_missing[:, None]
    legal[:, -1, :] = has_missing[:, None]
    return left_counts, left_sums, legal


def _has_enough_hessian(left: Int64Array, parent: Int64Array, rules: SplitRules) -> BoolArray:
    """Both children reach min_hessian in every output whose node has any Hessian; one must."""
    left_h, parent_h = left[..., 1], parent[..., 1]
    enough = np.minimum(left_h, parent_h - left_h) >= rules.min_hessian
    counted = np.broadcast_to(parent_h > 0, enough.shape)
    result: BoolArray = (enough | ~counted).all(axis=-1) & counted.any(axis=-1)
    return result


def _drop_proportional(left: Int64Array, parent: Int64Array, legal: BoolArray) -> None:
    """Clear ``legal`` where GL*HR == GR*HL in every output: such a split gains nothing.

    Floating point would see noise there. Equality of the wrapped int64 products is necessary and
    cheap; the few that pass are confirmed with Python's integers.
    """
    right = parent - left
    same = (left[..., 0] * right[..., 1] == right[..., 0] * left[..., 1]).all(axis=-1)
    for index in zip(*np.nonzero(same & legal), strict=True):
        pairs = zip(left[index].tolist(), right[index].tolist(), strict=True)
        if all(gl * hr == gr * hl for (gl, hl), (gr, hr) in pairs):
            legal[index] = False
