"""Gradients, losses and rankings, one row at a time, in Python numbers rounded to float32.

Written from the formulas of the design, not from the code that is compared with them. Only ``exp``
and ``log1p`` of one number come from ``core.portable_math``, which has tests of its own.
"""

import ctypes
import math
import struct
from fractions import Fraction
from functools import lru_cache

import numpy as np

from torchgbdt.core import portable_math

NAN = float("nan")


def float32(x: float) -> float:
    """Rounded to float32; magnitudes below 2^-126 are +0.

    Python's float64 results of one operation on float32 numbers round to those of float32: 53 bits
    are more than 2 * 24 + 2.
    """
    rounded = ctypes.c_float(x).value
    return 0.0 if abs(rounded) < 2.0**-126 else rounded


@lru_cache(maxsize=2**14)
def fixed_point(x: float, scale: int) -> int:
    """``x * 2^scale`` to the nearest integer, ties to even."""
    return round(Fraction(x) * Fraction(2) ** scale)


def scale_of(largest: float, n_rows: int) -> int:
    """The power of two at which n_rows numbers up to ``largest`` sum within 62 bits."""
    if largest == 0:
        return 0
    return min(62 - n_rows.bit_length() - math.frexp(largest)[1], 120)


@lru_cache(maxsize=2**17)
def exp(x: float) -> float:
    return float(portable_math.exp(np.array([x], np.float32))[0])


@lru_cache(maxsize=2**17)
def log1p(x: float) -> float:
    return float(portable_math.log1p(np.array([x], np.float32))[0])


def weighted(value: float, weight: float | None) -> float:
    return value if weight is None else float32(value * weight)


def raw_prediction(baseline: float, total: float, margin: float | None) -> float:
    """``hi + (lo + (margin + sum))``, with hi + lo = baseline."""
    high = float32(baseline)
    low = float32(baseline - high)
    if margin is not None:
        total = float32(margin + total)
    return float32(high + float32(low + total))


def gradients(objective: str, x: list[float], label: float) -> tuple[list[float], list[float]]:
    """Unweighted gradients and Hessians of one row, one of each per output.

    ``x`` are raw predictions and ``label`` is a class code; for squared error sums of leaf values
    and a centred label.
    """
    if objective == "squared_error":
        return [float32(x[0] - label)], [1.0]
    if objective == "logistic":
        g, h = _logistic_gradient(x[0], label)
        return [g], [h]
    return _softmax_gradients(x, int(label))


def _logistic_gradient(x: float, label: float) -> tuple[float, float]:
    """sigmoid(x) for the first class, -sigmoid(-x) for the second; h = sigmoid(x) sigmoid(-x)."""
    if math.isnan(x):
        return NAN, NAN
    t = exp(-min(abs(x), 86.0))
    large, small = float32(1 / float32(1 + t)), float32(t / float32(1 + t))
    of_x, of_minus_x = (large, small) if x >= 0 else (small, large)
    return (-of_minus_x if label == 1 else of_x), float32(small / float32(1 + t))


def _softmax_gradients(x: list[float], label: int) -> tuple[list[float], list[float]]:
    """p_k - [y = k] and 2 p_k (1 - p_k), where 1 - p_k is a sum of the other classes' terms."""
    if any(map(math.isnan, x)):
        return [NAN] * len(x), [NAN] * len(x)
    largest, t, rest = _softmax_terms(x)
    total = float32(1 + rest)
    g, h = [], []
    for k, term in enumerate(t):
        others = rest if x[k] == largest else float32(total - term)
        p, q = float32(term / total), float32(others / total)
        g.append(float32(-q if k == label else p))
        h.append(float32(float32(2 * p) * q))
    return g, h


def _softmax_terms(x: list[float]) -> tuple[float, list[float], float]:
    """The largest x, exp(x - largest) of each class, and their sum without the first largest.

    Where the largest is infinite, its term is NaN, and so are its gradient and its loss.
    """
    largest = max(x)
    t = [exp(max(float32(value - largest), -86.0)) for value in x]
    rest = 0.0
    for k, term in enumerate(t):
        if k != x.index(largest):
            rest = float32(rest + term)
    return largest, t, rest


def row_loss(objective: str, metric: str, x: list[float], label: float) -> float:
    """Unweighted loss of one row; x and label as in ``gradients``."""
    if any(map(math.isnan, x)):
        return NAN
    if objective == "squared_error":
        e = float32(x[0] - label)
        return abs(e) if metric == "mae" else float32(e * e)
    if metric == "error":
        return float(likeliest(objective, x) != label)
    if objective == "logistic":
        wrong_way = -x[0] if label == 1 else x[0]
        return float32(log1p(exp(-abs(x[0]))) + max(wrong_way, 0.0))
    largest, _, rest = _softmax_terms(x)
    return float32(log1p(rest) + float32(largest - x[int(label)]))


def likeliest(objective: str, x: list[float]) -> int:
    """The first class whose raw prediction is largest; the second of two needs one above 0."""
    return int(x[0] > 0) if objective == "logistic" else x.index(max(x))


def order_key(x: float) -> int:
    """An integer in the order of float32 numbers; both zeros have 0."""
    (bits,) = struct.unpack("<I", struct.pack("<f", abs(x)))
    return -bits if x < 0 else bits


def ranked(
    raw: list[float], codes: list[float], weights: list[float] | None, scale: int
) -> dict[int, list[int]]:
    """Distinct keys, ascending, and the fixed-point weights of both classes of each."""
    table: dict[int, list[int]] = {}
    for row, (x, code) in enumerate(zip(raw, codes, strict=True)):
        weight = 1.0 if weights is None else weights[row]
        table.setdefault(order_key(x), [0, 0])[int(code)] += max(fixed_point(weight, scale), 1)
    return dict(sorted(table.items()))
