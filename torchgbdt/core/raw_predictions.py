"""Raw predictions: baseline plus margins plus sums of leaf values.

The sum is float32 in tree order from +0; the baseline is a float64, added as two float32 parts (or
in float64): large offsets cost nothing.
"""

import numpy as np

from torchgbdt.core.array_ops import NUMPY, Array, ArrayOps
from torchgbdt.core.arrays import Float32Array, Float64Array
from torchgbdt.core.fixed_point import flush_subnormals


def raw_float32(
    baseline: Float64Array, sums: Float32Array, margins: Float32Array | None
) -> Float32Array:
    """``hi + (lo + (margin + sum))`` in float32, each result flushed.

    All arrays are (n_rows, n_outputs), ``margins`` may be None.
    """
    raw: Float32Array = add_baseline(baseline_parts(baseline), sums, margins)
    return raw


def add_baseline(
    parts: tuple[Array, Array], sums: Array, margins: Array | None, ops: ArrayOps = NUMPY
) -> Array:
    """See ``raw_float32``; ``parts`` from ``baseline_parts``, as arrays of the library of ops."""
    high, low = parts
    with np.errstate(over="ignore"):
        total = sums if margins is None else flush_subnormals(margins + sums, ops)
        return flush_subnormals(high + flush_subnormals(low + total, ops), ops)


def raw_float64(
    baseline: Array, sums: Array, margins: Array | None, ops: ArrayOps = NUMPY
) -> Array:
    """``float64(baseline) + float64(margin + sum)``; (n_rows, n_outputs).

    ``baseline`` : float64, (n_outputs,), an array of the library of ops.
    """
    with np.errstate(over="ignore"):
        total = sums if margins is None else flush_subnormals(margins + sums, ops)
    return baseline + ops.to_float64(total)


def baseline_parts(baseline: Float64Array) -> tuple[Float32Array, Float32Array]:
    """``hi = float32(b)``, ``lo = float32(b - hi)``: two float32 that hold about 48 bits of b."""
    high = flush_subnormals(baseline)
    return high, flush_subnormals(baseline - high.astype(np.float64))
