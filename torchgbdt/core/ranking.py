"""Rows in the order of their predictions: how often the classes' pairs are ordered rightly.

    raw predictions --integer keys--> distinct keys with the classes' weights --merge ranks--> auc

Keys are integers in the order of the float32 numbers, weights are integers in fixed point: sums
and products are exact, so neither the order of rows nor their division among ranks matters.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

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
    by_class = [np.where(labels == label, integers, 0) for label in (0, 1)]
    return _sorted(order_keys(raw), np.stack(by_class, axis=1))


def order_keys(values: Float32Array) -> Int32Array:
    """Integers in the order of float32 numbers; -0 and 0 have the same key."""
    bits = (values + np.float32(0)).view(FIXED_DTYPE)
    return np.where(bits < 0, np.int32(-(2**31)) - bits, bits).astype(FIXED_DTYPE)


def merge_rankings(ranked: RankedWeights, communicator: Communicator) -> RankedWeights:
    """The ranking of all ranks' rows."""
    if communicator.size == 1:
        return ranked
    if communicator.any_true(not ranked.finite):
        return RankedWeights(ranked.keys[:0], ranked.weights[:0], finite=False)
    keys = np.concatenate(communicator.gather(ranked.keys))
    return _sorted(keys, np.concatenate(communicator.gather(ranked.weights)))


def area_under_curve(weights: Int64Array) -> float:
    """The share of (first class, second class) pairs that are ordered rightly; ties count half.

    Area under the receiver operating characteristic, by Mann and Whitney's U: exact, rounded once.
    NaN where one of the classes has no weight.

    Parameters
    ----------
    weights : from ``RankedWeights``. IN.
    """
    first, second = weights[:, 0], weights[:, 1]
    below = np.cumsum(first) - first
    total = int(first.sum()) * int(second.sum())
    if total == 0:
        return float("nan")
    twice = 2 * _exact_dot(second, below) + _exact_dot(second, first)
    return float(Fraction(twice, 2 * total))


def _exact_dot(a: Int64Array, b: Int64Array) -> int:
    """The sum of products of integers in 0..2^63 - 1, exactly, by digits of 16 bits."""
    return sum(
        int(np.dot(x, y)) << (_DIGIT_BITS * (i + j))
        for i, x in enumerate(_digits(a))
        for j, y in enumerate(_digits(b))
    )


def _digits(values: Int64Array) -> list[Int64Array]:
    """Digits of 16 bits, the lowest first; leading ones that are 0 everywhere are left out."""
    n_digits = -(-int(values.max(initial=0)).bit_length() // _DIGIT_BITS)
    mask = np.int64((1 << _DIGIT_BITS) - 1)
    return [(values >> (_DIGIT_BITS * index)) & mask for index in range(n_digits)]


def _sorted(keys: Int32Array, weights: AnyArray) -> RankedWeights:
    """Rows of equal keys added up, keys ascending."""
    if keys.size == 0:
        return RankedWeights(keys, weights, finite=True)
    order = np.argsort(keys)  # of equal keys in any order: integers add up to the same
    keys = keys[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return RankedWeights(keys[starts], np.add.reduceat(weights[order], starts), finite=True)
