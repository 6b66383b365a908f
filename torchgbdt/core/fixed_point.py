"""Fixed point: how float32 gradients become integers whose sums have no order.

    q = round_half_even(g * 2^s),   s = min(bits - e, 120),   max|g| = m * 2^e, 1/2 <= m < 1

Multiplying by a power of two is exact, so q is the same integer on every device, and every sum of
q is the same whatever the order, the threads or the ranks.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from torchgbdt.core.array_ops import NUMPY, Array, ArrayOps
from torchgbdt.core.arrays import SUM_DTYPE, Float64Array, Int64Array

GRADIENT_BITS = 30
"""|q| <= 2^30: the sum of 2^32 rows stays below 2^62."""

HESSIAN_BITS = 29
"""One bit fewer than gradients, so that G*H cross products stay below 2^123."""

MAX_SCALE = 120
"""Keeps 2^s and 2^-s normal float32 numbers."""

_WORD_BITS = 62
_EXPONENT_BITS = 0x7F800000


def flush_subnormals(values: Array, ops: ArrayOps = NUMPY) -> Array:
    """Round to float32 and replace every magnitude below 2^-126, and -0, by +0.

    The one function that decides what happens to tiny values, because devices flush them; it asks
    for bits, as comparisons depend on the device. Infinities and NaN pass through; values beyond
    float32 become infinite. Any shape; the result is a copy.
    """
    rounded = ops.to_float32(values)
    return ops.where((ops.bits(rounded) & _EXPONENT_BITS) == 0, 0.0, rounded)


def is_finite(values: Array, ops: ArrayOps = NUMPY) -> Array:
    """Whether float32 numbers are neither NaN nor infinite, by their bits. bool, same shape."""
    return (ops.bits(values) & _EXPONENT_BITS) != _EXPONENT_BITS


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


def round_gradients(gradients: Array, scale: int, ops: ArrayOps = NUMPY) -> Array:
    """Gradients in fixed point: ``round_half_even(g * 2^scale)``. float32 -> int32, same shape.

    The product is exact in float32, unless it falls below 2^-126, and there it rounds to 0.
    """
    return ops.to_int32(_scaled(gradients, scale, ops))


def round_hessians(hessians: Array, scale: int, ops: ArrayOps = NUMPY) -> Array:
    """Hessians in fixed point; a positive one never rounds to 0. float32 >= 0 -> int32."""
    rounded = ops.to_int32(_scaled(hessians, scale, ops))
    return ops.where((hessians > 0) & (rounded == 0), 1, rounded)


def round_weights(weights: Array, scale: int, ops: ArrayOps = NUMPY) -> Array:
    """Weights in fixed point; a positive one never rounds to 0. float32 >= 0 -> int64."""
    rounded = round_losses(weights, scale, ops)
    return ops.where((weights > 0) & (rounded == 0), 1, rounded)


def round_losses(losses: Array, scale: int, ops: ArrayOps = NUMPY) -> Array:
    """Losses in fixed point: ``round_half_even(loss * 2^scale)``. float32 -> int64, same shape."""
    return ops.to_int64(_scaled(losses, scale, ops))


def are_raised(hessians: Array, scale: int, ops: ArrayOps = NUMPY) -> Array:
    """Whether positive Hessians would round to 0 and are raised to 1; for diagnostics."""
    return (hessians > 0) & (_scaled(hessians, scale, ops) == 0)


def _scaled(values: Array, scale: int, ops: ArrayOps) -> Array:
    """``round_half_even(value * 2^scale)`` as float32; 2^scale and the result are within it."""
    return ops.round_half_even(values * 2.0**scale)


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
