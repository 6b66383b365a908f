"""From raw predictions to class probabilities: logistic and softmax.

Everything is float32 arithmetic on the portable ``exp``, so gradients, metrics and the
probabilities of ``predict_proba`` agree on every machine; csrc/shared holds the C++ twin.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from torchgbdt.core import portable_math
from torchgbdt.core.array_ops import NUMPY, Array, ArrayOps
from torchgbdt.core.feature_source import row_blocks
from torchgbdt.core.fixed_point import flush_subnormals

LARGEST_EXPONENT = 86.0
"""Where magnitudes are clamped: exp(-86) = 4.5e-38 is a normal float32, and so is the logistic
Hessian t / (1 + t)^2 there, so no row's Hessian vanishes."""


_BYTES_PER_CLASS = 64
"""Of the temporary arrays that probabilities of one row take."""


@dataclass(frozen=True)
class LogisticTerms:
    """Of x, float32 (n_rows,): t = exp(-|x|), small = t / (1 + t), large = 1 / (1 + t)."""

    t: Array
    small: Array
    large: Array


def logistic_terms(x: Array, ops: ArrayOps = NUMPY) -> LogisticTerms:
    """The parts of sigmoid(x), which is ``large`` where x >= 0, else ``small``; NaN stays NaN."""
    size = abs(x)
    t = portable_math.exp(-ops.where(size > LARGEST_EXPONENT, LARGEST_EXPONENT, size), ops)
    return LogisticTerms(t, t / (1 + t), 1 / (1 + t))


@dataclass(frozen=True)
class SoftmaxTerms:
    """Of raw predictions x, float32 (n_rows, n_classes).

    Attributes
    ----------
    largest : float32, (n_rows,); the largest x of a row.
    rest : float32, (n_rows,); sum of t = ``softmax_term(x, largest)`` in ascending class order,
        without the first largest.
    """

    largest: Array
    rest: Array


def softmax_terms(x: Array, ops: ArrayOps = NUMPY) -> SoftmaxTerms:
    """What the classes of a row share of softmax(x) = t / (1 + rest)."""
    largest = x[:, 0]
    for k in range(1, x.shape[1]):
        column = x[:, k]
        largest = ops.where(column > largest, column, largest)
    rest = ops.zeros_like(largest)
    left_out = rest != 0  # no row so far
    for k in range(x.shape[1]):
        column = x[:, k]
        first_largest = (column == largest) & ~left_out
        left_out = left_out | first_largest
        rest = ops.where(first_largest, rest, rest + softmax_term(column, largest, ops))
    return SoftmaxTerms(largest, rest)


def softmax_term(x: Array, largest: Array, ops: ArrayOps = NUMPY) -> Array:
    """``t = exp(x - largest)``, its argument not below -86; float32, any shape."""
    with np.errstate(over="ignore", invalid="ignore"):
        distance = flush_subnormals(x - largest, ops)
    return portable_math.exp(
        ops.where(distance < -LARGEST_EXPONENT, -LARGEST_EXPONENT, distance), ops
    )


def predicted_codes(raw: Array, ops: ArrayOps = NUMPY) -> Array:
    """The code of each row's likeliest class, int64, (n_rows,): the first largest prediction.

    With one output the second class needs x > 0. Raw predictions decide, not probabilities, which
    may be equal where those are not.

    Parameters
    ----------
    raw : float32 or float64, (n_rows, n_outputs). IN.
    """
    n_rows, n_outputs = raw.shape
    if n_outputs == 1:
        return ops.to_int64(raw[:, 0] > 0)
    codes = ops.empty((n_rows,), ops.to_int64(raw[:0]))
    for rows in row_blocks(n_rows, _BYTES_PER_CLASS * n_outputs):
        codes[rows] = ops.first_largest(raw[rows])
    return codes


def probabilities(link: str, raw: Array, dtype: type[np.floating], ops: ArrayOps = NUMPY) -> Array:
    """Probabilities of all classes, (n_rows, n_classes), summed and divided in ``dtype``.

    Parameters
    ----------
    link : "logistic" or "softmax".
    raw : float32, (n_rows, n_outputs). IN.
    dtype : float32 or float64.
    """
    of_block, n_classes = _logistic, 2
    if link == "softmax":
        of_block, n_classes = _softmax, raw.shape[1]
    to_float = ops.to_float64 if dtype == np.float64 else ops.to_float32
    result = ops.empty((raw.shape[0], n_classes), to_float(raw[:0]))
    for rows in row_blocks(raw.shape[0], _BYTES_PER_CLASS * n_classes):
        for k, column in enumerate(of_block(raw[rows], to_float, ops)):
            result[rows, k] = column if dtype == np.float64 else flush_subnormals(column, ops)
    return result


def _logistic(raw: Array, to_float: Callable[[Array], Array], ops: ArrayOps) -> Iterator[Array]:
    x = raw[:, 0]
    t = to_float(logistic_terms(x, ops).t)
    small, large = t / (1 + t), 1 / (1 + t)
    positive = x >= 0
    yield ops.where(positive, small, large)
    yield ops.where(positive, large, small)


def _softmax(raw: Array, to_float: Callable[[Array], Array], ops: ArrayOps) -> Iterator[Array]:
    largest = softmax_terms(raw, ops).largest
    t = to_float(softmax_term(raw, largest[:, None], ops))
    total = ops.zeros_like(t[:, 0])
    for k in range(t.shape[1]):
        total = total + t[:, k]
    for k in range(t.shape[1]):
        yield t[:, k] / total
