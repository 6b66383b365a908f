"""What a model predicts and what its metrics are, from its arrays alone, in Python numbers."""

import math
from fractions import Fraction

import numpy as np
from support.naive_backend import NaiveBackend, fixed_point, float32, row_loss
from support.runs import Rows

from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.model import Model


def counting(rows: Rows) -> Rows:
    """The rows that count, as the contract sees them: float32 weights, tiny ones are zero."""
    y = np.array([0.0 if float32(label) == 0 else label for label in rows.y.tolist()])
    margins = None
    if rows.margins is not None:
        margins = np.array([float32(m) for m in rows.margins.tolist()])
    if rows.weights is None:
        return Rows(rows.X, y, None, margins)
    weights = np.array([float32(w) for w in rows.weights.tolist()])
    return Rows(rows.X, y, weights, margins)[weights > 0]


def leaf_sums(model: Model, rows: Rows, n_rounds: int) -> list[float]:
    """float32 sums of leaf values in tree order, from raw values."""
    sums = np.zeros((rows.n_rows, 1), np.float32)
    NaiveBackend().predict(model.truncate(n_rounds).forest, HostMatrix(rows.X), sums)
    return sums[:, 0].tolist()


def raw_predictions(model: Model, rows: Rows, n_rounds: int) -> list[float]:
    """``hi + (lo + (margin + sum))`` in float32, with hi + lo = baseline."""
    (baseline,) = model.baseline.tolist()
    high = float32(baseline)
    low = float32(baseline - high)
    sums = leaf_sums(model, rows, n_rounds)
    if rows.margins is not None:
        sums = [float32(m + s) for m, s in zip(rows.margins.tolist(), sums, strict=True)]
    return [float32(high + float32(low + s)) for s in sums]


def metric(name: str, model: Model, rows: Rows, n_rounds: int) -> float:
    """The weighted mean loss as an exact quotient of integers, and its square root for rmse."""
    (baseline,) = model.baseline.tolist()
    labels = [label - baseline for label in rows.y.tolist()]
    if rows.margins is not None:
        labels = [label - m for label, m in zip(labels, rows.margins.tolist(), strict=True)]
    weights = [None] * rows.n_rows if rows.weights is None else rows.weights.tolist()
    sums = leaf_sums(model, rows, n_rounds)
    losses = [
        row_loss(name, s, float32(label), w)
        for s, label, w in zip(sums, labels, weights, strict=True)
    ]
    if not all(map(math.isfinite, losses)):
        return math.inf
    largest = max(losses)
    bits = 62 - rows.n_rows.bit_length()
    scale = min(bits - math.frexp(largest)[1], 120) if largest else 0
    total = Fraction(sum(fixed_point(loss, scale) for loss in losses)) / Fraction(2) ** scale
    mean = float(total / sum(Fraction(1.0 if w is None else w) for w in weights))
    return math.sqrt(mean) if name == "rmse" else mean
