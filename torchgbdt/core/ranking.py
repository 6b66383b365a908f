"""Rows in the order of their predictions: how often the classes' pairs are ordered rightly.

    raw predictions --integer keys--> distinct keys with the classes' weights --merge ranks--> pairs

Keys are integers in the order of the float32 numbers, weights are integers in fixed point: sums
and products are exact, so neither the order of rows nor their division among ranks matters.
"""

from dataclasses import dataclass

import numpy as np

from torchgbdt.core.array_ops import NUMPY, Array, ArrayOps
from torchgbdt.core.arrays import (
    FIXED_DTYPE,
    AnyArray,
    Float32Array,
    Int32Array,
    Int64Array,
)
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.fixed_point import loss_bits, round_weights, scale_exponent

_DIGIT_BITS = 16  # products of two digits sum exactly in int64 over 2^31 rows
_DIGITS = 4  # of integers in 0..2^63 - 1


@dataclass(frozen=True)
class RankedWeights:
    """Distinct predictions in ascending order, with the weights of the rows that have them.

    Attributes
    ----------
    keys : int32, (n_distinct,); ascending, ordered like the predictions.
    weights : int64, (n_distinct, 2); fixed-point weights of the first and of the second class.
    finite : no prediction is NaN.
    """

    keys: Int32Array
    weights: Int64Array
    finite: bool


@dataclass(frozen=True)
class OrderedPairs:
    """Pairs of a row of the first class and one of the second, by the products of their weights.

    Mann and Whitney's U, in exact integers.

    Attributes
    ----------
    twice_right : twice the pairs whose row of the second class has the larger prediction; a tie
        counts half.
    total : all pairs.
    finite : no prediction is NaN; else the others are 0.
    """

    twice_right: int
    total: int
    finite: bool


def weight_scale(largest: float, total_rows: int) -> int:
    """The power of two at which weights become integers whose sum stays below 2^63.

    Parameters
    ----------
    largest : the largest weight over all ranks; > 0.
    """
    return scale_exponent(largest, loss_bits(total_rows))


def rank_rows(
    raw: Float32Array, labels: Float32Array, weights: Float32Array | None, scale: int
) -> RankedWeights:
    """The ranking of this rank's rows. As with Hessians, no positive weight rounds to 0.

    Parameters
    ----------
    raw : float32, (n_rows,); raw predictions. IN.
    labels : float32, (n_rows,); 0 or 1. IN.
    weights : float32 > 0, (n_rows,), or None for weights of 1. IN.
    scale : from ``weight_scale``.
    """
    if np.isnan(raw).any():
        return RankedWeights(np.zeros(0, FIXED_DTYPE), np.zeros((0, 2), np.int64), finite=False)
    given = np.ones(raw.size, np.float32) if weights is None else weights
    integers = round_weights(given, scale)
    return _sorted(order_keys(raw), np.stack(by_class(integers, labels), axis=1))


def by_class(weights: Array, labels: Array, ops: ArrayOps = NUMPY) -> tuple[Array, Array]:
    """Weights of the first and of the second class, (n_rows,) each, 0 for rows of the other."""
    return ops.where(labels == 0, weights, 0), ops.where(labels == 1, weights, 0)


def order_keys(values: Array, ops: ArrayOps = NUMPY) -> Array:
    """Integers in the order of float32 numbers, int32; -0 and 0 have the same key.

    Its own inverse on them: ``ops.from_bits(order_keys(ops.from_bits(keys)))``.
    """
    bits = ops.bits(values)
    return ops.where(bits < 0, -(2**31) - bits, bits)


def merge_rankings(ranked: RankedWeights, communicator: Communicator) -> RankedWeights:
    """The ranking of all ranks' rows."""
    if communicator.size == 1:
        return ranked
    if communicator.any_true(not ranked.finite):
        return RankedWeights(ranked.keys[:0], ranked.weights[:0], finite=False)
    keys = np.concatenate(communicator.gather(ranked.keys))
    return _sorted(keys, np.concatenate(communicator.gather(ranked.weights)))


def count_pairs(ranked: RankedWeights) -> OrderedPairs:
    """The pairs of the rows of a ranking."""
    if not ranked.finite:
        return OrderedPairs(0, 0, finite=False)
    first, second = ranked.weights[:, 0], ranked.weights[:, 1]
    up_to = np.cumsum(first)
    sums = np.stack(pair_sums(first, second, up_to - first, up_to))
    return pairs_of_sums(sums.tolist())


def pair_sums(first: Array, second: Array, below: Array, up_to: Array) -> list[Array]:
    """What ``pairs_of_sums`` makes pairs of: int64 numbers, as arrays without axes.

    Parameters
    ----------
    first, second : int64, (n,); the weights of both classes, of rows or of groups of tied rows; a
        class's sum stays below 2^62. IN.
    below, up_to : int64, (n,); the first class's weight at smaller predictions than this one, and
        at those and this one. IN.
    """
    digits = _digits(second), _digits(below + up_to)
    return [first.sum(), second.sum(), *((x * y).sum() for x in digits[0] for y in digits[1])]


def pairs_of_sums(sums: list[int]) -> OrderedPairs:
    """Exact pairs from ``pair_sums``: the sum of products of two integers, by their digits."""
    first, second, *products = sums
    twice_right = sum(
        product << (_DIGIT_BITS * (index // _DIGITS + index % _DIGITS))
        for index, product in enumerate(products)
    )
    return OrderedPairs(twice_right, first * second, finite=True)


def _digits(values: Array) -> list[Array]:
    """Digits of 16 bits of integers >= 0, the lowest first."""
    mask = (1 << _DIGIT_BITS) - 1
    return [(values >> (_DIGIT_BITS * index)) & mask for index in range(_DIGITS)]


def _sorted(keys: Int32Array, weights: AnyArray) -> RankedWeights:
    """Rows of equal keys added up, keys ascending."""
    if keys.size == 0:
        return RankedWeights(keys, weights, finite=True)
    order = np.argsort(keys)  # of equal keys in any order: integers add up to the same
    keys = keys[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return RankedWeights(keys[starts], np.add.reduceat(weights[order], starts), finite=True)
