"""exp, log and log1p in float32 with the same bits on every device.

    exp    2^n (1 + r + r² q(r))             x = n ln 2 + r
    log    e ln 2 + f - f²/2 + f³ R(f)       x = (1 + f) 2^e
    log1p  the same                          1 + x = (1 + f) 2^e

Only additions, subtractions and multiplications that IEEE 754 rounds, comparisons, and integer
operations on bits: the same formula for every array library, see ``array_ops``. Twin of
csrc/shared/portable_math.h, which says where the coefficients come from; errors are below 0.9 ulp.

Inputs below 2^-126 count as +0, results below it are +0, and there is one NaN, whichever comes in.
"""

from math import inf, nan
from typing import Any

import numpy as np

from torchgbdt.core.array_ops import NUMPY, ArrayOps

_SMALLEST_NORMAL = 2.0**-126
_ONE = 0x3F800000
"""The bits of 1; 2^23 more is 2."""
_BORDER = 0x3F400002
"""The bits of 3/4 + 2^-23, where mantissas begin."""


@np.errstate(all="ignore")
def exp(x: Any, ops: ArrayOps = NUMPY) -> Any:
    """e^x: +inf above 88.7228317, +0 below -87.3365402 (where e^x < 2^-126). float32 -> float32."""
    shift = 12582912.0  # 1.5 * 2^23: adding it rounds to an integer, the low bits of the sum
    shifted = x * 1.44269502 + shift
    ln2_high, ln2_low = _times_ln2(shifted - shift)
    high = x - ln2_high
    r = high - ln2_low
    q = 1.38634094e-3
    for coefficient in (8.36743135e-3, 4.16672416e-2, 0.166665345, 0.5):
        q = q * r + coefficient
    power = 1.0 + (high + (r * r * q - ln2_low))
    result = ops.from_bits(ops.bits(power) + (ops.bits(shifted) << 23))
    result = ops.where(x > 88.7228317, inf, result)
    result = ops.where(x < -87.3365402, 0.0, result)
    return ops.where(x != x, nan, result)


@np.errstate(all="ignore")
def log(x: Any, ops: ArrayOps = NUMPY) -> Any:
    """ln x: -inf at 0, NaN below. float32 -> float32."""
    mantissa, exponent = _split_exponent(x, ops)
    result = _log_of_parts(mantissa - 1.0, exponent, ops)
    result = ops.where(x == inf, inf, result)
    result = ops.where(x < 0.0, nan, result)
    result = ops.where(abs(x) < _SMALLEST_NORMAL, -inf, result)
    return ops.where(x != x, nan, result)


@np.errstate(all="ignore")
def log1p(x: Any, ops: ArrayOps = NUMPY) -> Any:
    """ln(1 + x): -inf at -1, NaN below. float32 -> float32."""
    _, exponent = _split_exponent(1.0 + x, ops)
    scaled = ops.from_bits(ops.bits(x) - (exponent << 23))
    power = ops.from_bits(_ONE - (exponent << 23))  # 2^-exponent, if exponent < 127
    f = scaled + ops.where(exponent >= 25, -1.0, power - 1.0)
    result = _log_of_parts(f, exponent, ops)
    result = ops.where(x == inf, inf, result)
    result = ops.where(x == -1.0, -inf, result)
    result = ops.where(x < -1.0, nan, result)
    result = ops.where(abs(x) < _SMALLEST_NORMAL, 0.0, result)
    return ops.where(x != x, nan, result)


def _times_ln2(n: Any) -> tuple[Any, Any]:
    """n * ln 2 as high + low for integers |n| <= 128; high is exact: its constant has 15 bits."""
    return n * 0.693145752, n * 1.42860677e-6


def _split_exponent(x: Any, ops: ArrayOps) -> tuple[Any, Any]:
    """m (float32) and e (int32) of x = m * 2^e, for x >= 2^-126; m from 3/4 to 3/2, see C++."""
    shifted = ops.bits(x) + (_ONE - _BORDER)  # the border becomes 1
    return ops.from_bits((shifted & 0x007FFFFF) + _BORDER), (shifted >> 23) - 127


def _log_of_parts(f: Any, exponent: Any, ops: ArrayOps) -> Any:
    """log((1 + f) * 2^exponent) for -1/4 < f <= 1/2."""
    ln2_high, ln2_low = _times_ln2(ops.to_float32(exponent))
    square = f * f
    r = -4.51523438e-2
    for coefficient in (
        0.104725577,
        -0.131639376,
        0.144776300,
        -0.166468784,
        0.199908480,
        -0.250001103,
        0.333334506,
    ):
        r = r * f + coefficient
    return ln2_high + (f - (0.5 * square - (square * f * r + ln2_low)))
