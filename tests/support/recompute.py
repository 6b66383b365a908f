"""What a model predicts and what its metrics are, from its arrays alone, in Python numbers."""

import math
from fractions import Fraction

import numpy as np
from support.naive_backend import NaiveBackend
from support.naive_losses import (
    fixed_point,
    float32,
    raw_prediction,
    row_loss,
    scale_of,
    weighted,
)
from support.runs import Rows

from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.model import Model

Table = list[list[float]]
"""One list of outputs per row."""


def counting(rows: Rows) -> Rows:
    """The rows that count, as the contract sees them: float32 weights, tiny ones are zero."""
    y, margins = rows.y, None
    if y.dtype.kind == "f":
        y = np.array([0.0 if float32(label) == 0 else label for label in y.tolist()])
    if rows.margins is not None:
        flat = [float32(m) for m in rows.margins.ravel().tolist()]
        margins = np.array(flat).reshape(rows.n_rows, -1)
    if rows.weights is None:
        return Rows(rows.X, y, None, margins)
    weights = np.array([float32(w) for w in rows.weights.tolist()])
    return Rows(rows.X, y, weights, margins)[weights > 0]


def leaf_sums(model: Model, rows: Rows, n_rounds: int) -> Table:
    """float32 sums of leaf values in tree order, from raw values."""
    sums = np.zeros((rows.n_rows, model.n_outputs), np.float32)
    NaiveBackend().predict(model.truncate(n_rounds).forest, HostMatrix(rows.X), sums)
    return sums.tolist()


def raw_predictions(model: Model, rows: Rows, n_rounds: int) -> Table:
    margins = [[None] * model.n_outputs] * rows.n_rows
    if rows.margins is not None:
        margins = rows.margins.tolist()
    baseline = model.baseline.tolist()
    return [
        [raw_prediction(*parts) for parts in zip(baseline, sums, given, strict=True)]
        for sums, given in zip(leaf_sums(model, rows, n_rounds), margins, strict=True)
    ]


def metric(name: str, model: Model, rows: Rows, n_rounds: int) -> float:
    """The metric of the rows that count, as it stands in the history after ``n_rounds``."""
    if name == "auc":
        raw = [x for (x,) in raw_predictions(model, rows, n_rounds)]
        return area_under_curve(raw, class_codes(model, rows), _weights(rows))
    mean = mean_loss(name, model, rows, n_rounds)
    if name == "r2":
        variance = label_variance(rows)
        if mean == math.inf:
            return -math.inf
        return float(1 - mean / variance) if variance else float(mean == 0)
    return math.sqrt(float(mean)) if name == "rmse" else float(mean)


def mean_loss(name: str, model: Model, rows: Rows, n_rounds: int) -> Fraction | float:
    """The weighted mean as an exact quotient of integers; inf if a loss is not finite."""
    if model.classes is None:
        predictions, labels = leaf_sums(model, rows, n_rounds), centred_labels(model, rows)
    else:
        predictions = raw_predictions(model, rows, n_rounds)
        labels = class_codes(model, rows)
    weights = _weights(rows)
    losses = [
        weighted(row_loss(model.objective, name, x, label), None if rows.weights is None else w)
        for x, label, w in zip(predictions, labels, weights, strict=True)
    ]
    if not all(map(math.isfinite, losses)):
        return math.inf
    scale = scale_of(max(losses), rows.n_rows)
    total = Fraction(sum(fixed_point(loss, scale) for loss in losses)) / Fraction(2) ** scale
    return total / sum(map(Fraction, weights))


def centred_labels(model: Model, rows: Rows) -> list[float]:
    (baseline,) = model.baseline.tolist()
    labels = [label - baseline for label in rows.y.tolist()]
    if rows.margins is not None:
        labels = [y - m for y, (m,) in zip(labels, rows.margins.tolist(), strict=True)]
    return [float32(label) for label in labels]


def class_codes(model: Model, rows: Rows) -> list[int]:
    assert model.classes is not None
    return [model.classes.tolist().index(label) for label in rows.y.tolist()]


def label_variance(rows: Rows) -> Fraction:
    """Of targets rounded to float32 about their rounded mean."""
    weights = [Fraction(w) for w in _weights(rows)]
    pairs = list(zip(weights, rows.y.tolist(), strict=True))
    mean = float(sum(w * Fraction(y) for w, y in pairs) / sum(weights))
    moments = [
        sum(w * Fraction(float32(y - mean)) ** power for w, y in pairs) / sum(weights)
        for power in (1, 2)
    ]
    return moments[1] - moments[0] ** 2


def area_under_curve(raw: list[float], codes: list[int], weights: list[float]) -> float:
    """The weight of (first class, second class) pairs in the right order, pair by pair."""
    scale = scale_of(max(weights), len(weights))
    fixed = [max(fixed_point(w, scale), 1) for w in weights]
    first, second = (
        [(x, w) for x, code, w in zip(raw, codes, fixed, strict=True) if code == wanted]
        for wanted in (0, 1)
    )
    if not first or not second:
        return math.nan
    twice = sum(v * w * ((a < b) + (a <= b)) for a, v in first for b, w in second)
    return float(Fraction(twice, 2 * sum(v * w for _, v in first for _, w in second)))


def _weights(rows: Rows) -> list[float]:
    return [1.0] * rows.n_rows if rows.weights is None else rows.weights.tolist()
