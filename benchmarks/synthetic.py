"""Synthetic rows: a smooth target plus noise, the same bits on every machine.

Only integers, and additions and multiplications of numbers one by one, are used: no logarithm or
cosine of a C library, no sum whose order numpy chooses. So a seed means one data set everywhere,
and test metrics can be compared between machines.

Features are uniform in [-1, 1), in steps of 2^-23: continuous for every histogram, so each of them
fills all its bins. The target is made of Friedman's function (Multivariate Adaptive Regression
Splines, 1991, with the product in place of its sine) on several groups of five features, each with
less weight than the one before; what features are left have no effect. No effect shows only in
combination with another: greedy trees would find that by chance, and metrics would say who was
lucky.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

GROUP_FEATURES = 5
BLOCK_ROWS = 65_536

Float32Array = NDArray[np.float32]
Float64Array = NDArray[np.float64]


def make_rows(
    seed: int, n_rows: int, n_features: int, n_groups: int, n_classes: int, noise: float
) -> tuple[Float32Array, Float32Array]:
    """Draw rows and their labels.

    Parameters
    ----------
    n_groups : groups of features that the target depends on.
    n_classes : 0 for a real target; 2 or more for class labels 0, 1, ..., about equally frequent.
    noise : standard deviation of what is added to the target, whose own is 1; for classes, to the
        score of each.

    Returns
    -------
    X float32, (n_rows, n_features), C order, and y float32, (n_rows,).
    """
    X = np.empty((n_rows, n_features), np.float32)
    y = np.empty(n_rows, np.float32)
    words = np.random.Philox(key=seed)
    for rows in _blocks(n_rows):
        x = _uniform(words, (rows.stop - rows.start, n_features))
        X[rows] = x
        n_scores = n_classes if n_classes > 2 else 1
        scores = [
            _signal(x, n_groups, first_group) + noise * _noise(words, x.shape[0])
            for first_group in range(n_scores)
        ]
        if n_classes == 0:
            y[rows] = scores[0]
        elif n_classes == 2:
            y[rows] = scores[0] > 0
        else:
            y[rows] = np.argmax(scores, axis=0)
    return X, y


def _blocks(n_rows: int) -> Iterator[slice]:
    for start in range(0, n_rows, BLOCK_ROWS):
        yield slice(start, min(start + BLOCK_ROWS, n_rows))


def _uniform(words: np.random.Philox, shape: tuple[int, int]) -> Float64Array:
    """Multiples of 2^-23 in [-1, 1), two from each word."""
    n = shape[0] * shape[1]
    halves = words.random_raw((n + 1) // 2).astype("<u8", copy=False).view("<u4")[:n] >> 8
    return (halves.astype(np.float64) * 2.0**-23 - 1).reshape(shape)


def _noise(words: np.random.Philox, n: int) -> Float64Array:
    """Sums of eight 16-bit numbers, standardized: bell-shaped, within 4.9 standard deviations."""
    parts = words.random_raw(2 * n).astype("<u8", copy=False).view("<u2").reshape(n, 8)
    total = np.zeros(n, np.int64)
    for part in range(8):
        total += parts[:, part]
    # one part has variance (2^32 - 1) / 12
    return (total.astype(np.float64) - 8 * 32767.5) / math.sqrt(8 * (2.0**32 - 1) / 12)


def _signal(x: Float64Array, n_groups: int, first_group: int) -> Float64Array:
    """The target without noise: mean 0, standard deviation 1 if its features are different ones."""
    n_features = x.shape[1]
    total = np.zeros(x.shape[0])
    weights = [1 / (1 + group) for group in range(n_groups)]
    for group, weight in enumerate(weights):
        first = (first_group + group) * GROUP_FEATURES
        a, b, c, d, e = (x[:, (first + i) % n_features] for i in range(GROUP_FEATURES))
        total += weight * ((1 + a) * (1 + b) + c * c + d + 0.5 * e - 4 / 3)
    # a b has variance 1/9; a, b and d have 1/3, c^2 has 4/45, e / 2 has 1/12; no two are correlated
    variance = (1 / 9 + 3 / 3 + 4 / 45 + 1 / 12) * sum(weight * weight for weight in weights)
    return total / math.sqrt(variance)
