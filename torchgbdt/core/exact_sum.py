"""Sums of floating-point numbers without any rounding, for baselines and total weights."""

from fractions import Fraction

import numpy as np

from torchgbdt.core.arrays import SUM_DTYPE, AnyArray, Float32Array, Float64Array, Int64Array

_MANTISSA_BITS = 53  # of a float64
_LIMB_BITS = 27  # half of them, rounded up
_LOWEST_EXPONENT = -1200  # below that of the last bit of the smallest float64, 2^-1074
_N_EXPONENTS = 2400  # up to beyond 2^1024
_BLOCK = 1 << 16  # that many halves of 2^27 stay exact in bincount's float64


class ExactSum:
    """A sum of float64 numbers without any rounding, mergeable over ranks.

    The state is one int64 array, (2, n_exponents): for each binary exponent the sum of the upper
    and of the lower half of the 53-bit mantissas. Halves have 27 bits, so 2^32 of them stay below
    2^60; adding the arrays of two ranks adds the sums.
    """

    def __init__(self) -> None:
        self.limbs: Int64Array = np.zeros((2, _N_EXPONENTS), SUM_DTYPE)

    def add(self, values: Float64Array) -> "ExactSum":
        """Add finite float64 values, in blocks so that no full-size temporary appears."""
        for start in range(0, values.size, _BLOCK):
            self._add_block(values[start : start + _BLOCK])
        return self

    def _add_block(self, values: Float64Array) -> None:
        mantissa, exponent = np.frexp(values)
        integers = np.ldexp(mantissa, _MANTISSA_BITS).astype(np.int64)
        index = exponent.astype(np.int64) - _MANTISSA_BITS - _LOWEST_EXPONENT
        upper = integers >> _LIMB_BITS
        lower = integers - (upper << _LIMB_BITS)
        for limb, part in enumerate((upper, lower)):
            sums = np.bincount(index, weights=part, minlength=_N_EXPONENTS)
            self.limbs[limb] += sums.astype(np.int64)

    def total(self) -> Fraction:
        """The exact sum."""
        result = Fraction(0)
        for index in np.flatnonzero(self.limbs.any(axis=0)):
            integer = (int(self.limbs[0, index]) << _LIMB_BITS) + int(self.limbs[1, index])
            result += integer * Fraction(2) ** (int(index) + _LOWEST_EXPONENT)
        return result


def exact_weighted_sum(values: AnyArray, weights: Float32Array | None) -> ExactSum:
    """Exact sum of ``w * y``: float64 y split into halves whose products with a float32 are exact.

    A 53-bit y is cut into 26 + 27 bits by masking; each half times a 24-bit weight fits 53 bits.
    """
    result = ExactSum()
    for start in range(0, values.shape[0], _BLOCK):
        part = np.ascontiguousarray(values[start : start + _BLOCK], np.float64)
        if weights is None:
            result.add(part)
            continue
        weight = weights[start : start + _BLOCK].astype(np.float64)
        upper = (part.view(np.int64) & ~np.int64((1 << _LIMB_BITS) - 1)).view(np.float64)
        result.add(upper * weight).add((part - upper) * weight)
    return result


def exact_class_sums(
    codes: AnyArray, weights: Float32Array | None, n_classes: int
) -> list[ExactSum]:
    """Exact sum of the weights of each class; rows without weights count 1.

    Parameters
    ----------
    codes : integers in 0..n_classes - 1, (n_rows,). IN.
    """
    counts = np.bincount(codes, minlength=n_classes)
    if weights is None:
        return [ExactSum().add(np.array([float(count)])) for count in counts]
    by_class = weights[np.argsort(codes, kind="stable")].astype(np.float64)
    ends = np.cumsum(counts)
    return [ExactSum().add(by_class[end - n : end]) for n, end in zip(counts, ends, strict=True)]
