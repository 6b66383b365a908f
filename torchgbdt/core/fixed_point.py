"""Fixed point: how float32 gradients become integers whose sums have no order.

    q = round_half_even(g * 2^s),   s = min(bits - e, 120),   max|g| = m * 2^e, 1/2 <= m < 1

Multiplying by a power of two is exact, so q is the same integer on every device, and every sum of
q is the same whatever the order, the threads or the ranks.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from torchgbdt.core.arrays import (
    FIXED_DTYPE,
    SMALLEST_NORMAL,
    SUM_DTYPE,
    AnyArray,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
)

GRADIENT_BITS = 30
"""|q| <= 2^30: the sum of 2^32 rows stays below 2^62."""

HESSIAN_BITS = 29
"""One bit fewer than gradients, so that G*H cross products stay below 2^123."""

MAX_SCALE = 120
"""Keeps 2^s and 2^-s normal float32 numbers."""

_WORD_BITS = 62


def flush_subnormals(values: AnyArray) -> Float32Array:
    """Round to float32 and replace every magnitude below 2^-126 by +0.

    The one function that decides what happens to tiny values, because devices flush them.
    Infinities and NaN pass through; values beyond float32 become infinite.
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        rounded = np.asarray(values).astype(np.float32)
    rounded[np.abs(rounded) < SMALLEST_NORMAL] = 0
    return rounded


def scale_exponent(largest: float, bits: int) -> int:
    """The s for which ``largest * 2^s`` fits into ``bits`` bits; 0 if largest is 0.

    Parameters
    ----------
    largest : finite, >= 0; the largest magnitude over all rows and ranks.
    """
    if largest == 0.0:
        return 0
    _, exponent = math.frexp(largest)
    return min(bits - exponent, MAX_SCALE)


def round_gradients(gradients: Float32Array, scale: int) -> Int32Array:
    """Gradients in fixed point: ``round_half_even(g * 2^scale)``. float32 -> int32, same shape."""
    return np.rint(np.ldexp(gradients.astype(np.float64), scale)).astype(FIXED_DTYPE)


def round_hessians(hessians: Float32Array, scale: int) -> Int32Array:
    """Hessians in fixed point; a positive one never rounds to 0. float32 >= 0 -> int32."""
    return round_weights(hessians, scale).astype(FIXED_DTYPE)


def round_weights(weights: Float32Array, scale: int) -> Int64Array:
    """Weights in fixed point; a positive one never rounds to 0. float32 >= 0 -> int64."""
    rounded = np.rint(np.ldexp(weights.astype(np.float64), scale)).astype(SUM_DTYPE)
    return np.where(weights > 0, np.maximum(rounded, 1), rounded)


def count_raised_hessians(hessians: Float32Array, scale: int) -> int:
    """How many positive Hessians would round to 0 and are raised to 1; for diagnostics."""
    rounded = np.rint(np.ldexp(hessians.astype(np.float64), scale))
    return int(np.count_nonzero((hessians > 0) & (rounded == 0)))


def to_float(sums: Int64Array, scale: int | Int64Array) -> Float64Array:
    """Integer sums as float64: one correctly rounded conversion, one exact power of two.

    ``scale`` is one for all sums or an array that broadcasts against them.
    """
    result: Float64Array = np.ldexp(sums.astype(np.float64), -scale)
    return result


@lru_cache(maxsize=64)  # a run asks with few scales, a constant Hessian with one
def minimum_hessian(min_child_weight: float, scale: int) -> int:
    """The smallest integer Hessian sum a child may have: ``max(1, ceil(w * 2^scale))``.

    Clipped to int64: no node's Hessian sum reaches 2^62.
    """
    exact = Fraction(min_child_weight) * Fraction(2) ** scale
    return min(max(1, -((-exact.numerator) // exact.denominator)), np.iinfo(SUM_DTYPE).max)


def loss_bits(n_rows: int) -> int:
    """Bits per row that a loss may use so that n_rows of them sum within int64."""
    return _WORD_BITS - max(n_rows, 1).bit_length()
