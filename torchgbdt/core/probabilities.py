"""From raw predictions to class probabilities: logistic and softmax, once for numpy.

Everything is float32 arithmetic on the portable ``exp``, so gradients, metrics and the
probabilities of ``predict_proba`` agree on every machine; csrc/shared holds the C++ twin.
"""

from dataclasses import dataclass

import numpy as np

from torchgbdt.core import portable_math
from torchgbdt.core.arrays import AnyArray, BoolArray, Float32Array, Int32Array
from torchgbdt.core.fixed_point import flush_subnormals

LARGEST_EXPONENT = np.float32(86)
"""Where magnitudes are clamped: exp(-86) = 4.5e-38 is a normal float32, and so is the logistic
Hessian t / (1 + t)^2 there, so no row's Hessian vanishes."""


@dataclass(frozen=True)
class LogisticTerms:
    """Of x, float32 (n_rows,): t = exp(-|x|), small = t / (1 + t), large = 1 / (1 + t)."""

    t: Float32Array
    small: Float32Array
    large: Float32Array


def logistic_terms(x: Float32Array) -> LogisticTerms:
    """The parts of sigmoid(x), which is ``large`` where x >= 0, else ``small``; NaN stays NaN."""
    size = np.abs(x)
    t = portable_math.exp(-np.where(size > LARGEST_EXPONENT, LARGEST_EXPONENT, size))
    return LogisticTerms(t, t / (1 + t), 1 / (1 + t))


@dataclass(frozen=True)
class SoftmaxTerms:
    """Of raw predictions x, float32 (n_rows, n_classes).

    Attributes
    ----------
    largest : float32, (n_rows,); the largest x of a row.
    t : float32, (n_rows, n_classes); exp(x - largest), its argument not below -86.
    rest : float32, (n_rows,); sum of t in ascending class order, without the first largest.
    """

    largest: Float32Array
    t: Float32Array
    rest: Float32Array


def softmax_terms(x: Float32Array) -> SoftmaxTerms:
    """The parts of softmax(x) = t / (1 + rest)."""
    largest = x[:, 0]
    for column in x.T[1:]:
        largest = np.where(column > largest, column, largest)
    with np.errstate(over="ignore", invalid="ignore"):
        distance = flush_subnormals(x - largest[:, None])
    t = portable_math.exp(np.where(distance < -LARGEST_EXPONENT, -LARGEST_EXPONENT, distance))
    rest = np.zeros_like(largest)
    left_out = np.zeros(x.shape[0], np.bool_)
    for column, term in zip(x.T, t.T, strict=True):
        first_largest = (column == largest) & ~left_out
        left_out |= first_largest
        rest = np.where(first_largest, rest, rest + term)
    return SoftmaxTerms(largest, t, rest)


def logistic_classes(x: Float32Array) -> BoolArray:
    """Whether the second class is the likelier one; a tie is the first class. bool, (n_rows,)."""
    result: BoolArray = (x > 0) & (logistic_terms(x).t < 1)
    return result


def softmax_classes(x: Float32Array) -> Int32Array:
    """The first of the likeliest classes; int32, (n_rows,)."""
    result: Int32Array = np.argmax(softmax_terms(x).t, axis=1).astype(np.int32)
    return result


def predicted_codes(link: str, raw: Float32Array) -> Int32Array:
    """The code of each row's likeliest class, the first one of a tie; int32, (n_rows,).

    Parameters
    ----------
    link : "logistic" or "softmax".
    raw : float32, (n_rows, n_outputs). IN.
    """
    if link == "softmax":
        return softmax_classes(raw)
    return logistic_classes(raw[:, 0]).astype(np.int32)


def probabilities(link: str, raw: Float32Array, dtype: type[np.floating]) -> AnyArray:
    """Probabilities of all classes, (n_rows, n_classes), summed and divided in ``dtype``.

    In float64 the largest of a row is that of its ``predicted_codes``, the first one of a tie; in
    float32 a quotient may round to that of an earlier class.

    Parameters
    ----------
    link, raw : as in ``predicted_codes``.
    dtype : float32 or float64.
    """
    if link == "softmax":
        t = softmax_terms(raw).t.astype(dtype)
        total = np.zeros(raw.shape[0], dtype)
        for column in t.T:
            total = total + column
        shares = t / total[:, None]
        return flush_subnormals(shares) if shares.dtype == np.float32 else shares
    x = raw[:, 0]
    t = logistic_terms(x).t.astype(dtype)
    small, large = t / (1 + t), 1 / (1 + t)
    positive = x >= 0
    return np.stack((np.where(positive, small, large), np.where(positive, large, small)), axis=1)
