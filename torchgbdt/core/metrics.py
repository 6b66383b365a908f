"""Metrics: exact functions of integer sums of per-row float32 losses, or of ranked rows.

    MeanLoss   row losses (float32) -> fixed point -> int64 sum over rows and ranks -> finish
    Ranking    raw predictions as integer keys, weights in fixed point -> finish

A non-finite loss makes the metric the worst there is; it is never an error.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import IntEnum
from fractions import Fraction

import numpy as np

from torchgbdt.core import portable_math
from torchgbdt.core.array_ops import NUMPY, Array, ArrayOps
from torchgbdt.core.errors import InvalidParameterError
from torchgbdt.core.fixed_point import flush_subnormals
from torchgbdt.core.objectives import (
    Logistic,
    Objective,
    Softmax,
    SquaredError,
    squared_error_residuals,
)
from torchgbdt.core.probabilities import softmax_terms
from torchgbdt.core.ranking import OrderedPairs


class MetricKind(IntEnum):
    """Which loss kernel a metric needs; the numbers are those of csrc/shared."""

    SQUARED_ERROR = 0
    ABSOLUTE_ERROR = 1
    LOGISTIC_LOSS = 2
    LOGISTIC_ERROR = 3
    SOFTMAX_LOSS = 4
    SOFTMAX_ERROR = 5


class Metric(ABC):
    """What a model is judged by.

    Attributes
    ----------
    name : as typed by the user and shown in the history.
    objective : the objective whose predictions and labels it reads.
    """

    name: str
    objective: type[Objective]
    higher_is_better: bool = False

    @property
    def worst(self) -> float:
        """Its value where a loss is not finite."""
        return -math.inf if self.higher_is_better else math.inf


class MeanLoss(Metric):
    """A weighted mean of per-row losses, and a function of it."""

    kind: MetricKind
    needs_variance: bool = False

    @abstractmethod
    def row_losses(self, predictions: Array, labels: Array, ops: ArrayOps = NUMPY) -> Array:
        """Losses before weighting, float32 >= 0, flushed, (n_rows,).

        ``predictions`` and ``labels`` are those of ``Objective.gradients``.
        """

    def finish(self, mean: Fraction, label_variance: Fraction) -> float:
        """The metric; by default the mean itself.

        Parameters
        ----------
        mean : the exact weighted mean of the losses.
        label_variance : the weighted variance of the targets; 0 unless ``needs_variance``.
        """
        return float(mean)


class _SquaredLoss(MeanLoss):
    kind = MetricKind.SQUARED_ERROR
    objective = SquaredError

    def row_losses(self, predictions: Array, labels: Array, ops: ArrayOps = NUMPY) -> Array:
        """e * e in float32."""
        residuals = squared_error_residuals(predictions[:, 0], labels, ops)
        with np.errstate(over="ignore"):
            return flush_subnormals(residuals * residuals, ops)


class RootMeanSquaredError(_SquaredLoss):
    """sqrt(mean of e^2)."""

    name = "rmse"

    def finish(self, mean: Fraction, label_variance: Fraction) -> float:
        """Square root of the rounded mean; correctly rounded by IEEE 754."""
        return math.sqrt(float(mean))


class RSquared(_SquaredLoss):
    """1 - mean of e^2 / variance of y: 1 is perfect, 0 is what the mean of y achieves.

    Where y does not vary it is 1 if every error is 0, else 0, as in scikit-learn's ``r2_score``.
    """

    name = "r2"
    higher_is_better = True
    needs_variance = True

    def finish(self, mean: Fraction, label_variance: Fraction) -> float:
        """An exact quotient, rounded once."""
        if label_variance == 0:
            return float(mean == 0)
        return float(1 - mean / label_variance)


class MeanAbsoluteError(MeanLoss):
    """mean of |e|."""

    name = "mae"
    kind = MetricKind.ABSOLUTE_ERROR
    objective = SquaredError

    def row_losses(self, predictions: Array, labels: Array, ops: ArrayOps = NUMPY) -> Array:
        """|e| in float32."""
        return abs(squared_error_residuals(predictions[:, 0], labels, ops))


class LogisticLoss(MeanLoss):
    """Negative log-likelihood: log(1 + exp(-x)) for the second class, log(1 + exp(x)) else."""

    name = "logloss"
    kind = MetricKind.LOGISTIC_LOSS
    objective = Logistic

    def row_losses(self, predictions: Array, labels: Array, ops: ArrayOps = NUMPY) -> Array:
        """``log1p(exp(-|x|)) + max(0, x)``, or ``max(0, -x)`` for the second class."""
        x = predictions[:, 0]
        wrong_way = ops.where(labels == 1, -x, x)
        softened = portable_math.log1p(portable_math.exp(-abs(x), ops), ops)
        return flush_subnormals(softened + ops.where(wrong_way > 0, wrong_way, 0.0), ops)


class LogisticError(MeanLoss):
    """Share of rows whose likelier class is not their label."""

    name = "error"
    kind = MetricKind.LOGISTIC_ERROR
    objective = Logistic

    def row_losses(self, predictions: Array, labels: Array, ops: ArrayOps = NUMPY) -> Array:
        """1 where wrong, else 0; NaN where the prediction is."""
        x = predictions[:, 0]
        wrong = ops.to_float32((x > 0) != (labels == 1))
        return ops.where(x != x, x, wrong)


class SoftmaxLoss(MeanLoss):
    """Negative log-likelihood: log(sum of exp(x_k)) - x_y."""

    name = "logloss"
    kind = MetricKind.SOFTMAX_LOSS
    objective = Softmax

    def row_losses(self, predictions: Array, labels: Array, ops: ArrayOps = NUMPY) -> Array:
        """``log1p(rest) + (largest - x_y)``; see ``SoftmaxTerms``."""
        terms = softmax_terms(predictions, ops)
        own = predictions[:, 0]
        for k in range(1, predictions.shape[1]):
            own = ops.where(labels == k, predictions[:, k], own)
        with np.errstate(over="ignore", invalid="ignore"):
            distance = flush_subnormals(terms.largest - own, ops)
            return flush_subnormals(portable_math.log1p(terms.rest, ops) + distance, ops)


class SoftmaxError(MeanLoss):
    """Share of rows whose likeliest class is not their label."""

    name = "error"
    kind = MetricKind.SOFTMAX_ERROR
    objective = Softmax

    def row_losses(self, predictions: Array, labels: Array, ops: ArrayOps = NUMPY) -> Array:
        """1 where wrong, else 0; NaN where a prediction is."""
        wrong = ops.to_float32(ops.first_largest(predictions) != labels)
        return ops.where((predictions != predictions).any(axis=1), math.nan, wrong)


class AreaUnderCurve(Metric):
    """How well raw predictions separate two classes: area under the ROC curve.

    The share of pairs of both classes that are ordered rightly; ties count half.
    """

    name = "auc"
    objective = Logistic
    higher_is_better = True

    def finish(self, pairs: OrderedPairs) -> float:
        """The share, rounded once; NaN where a class has no row."""
        if pairs.total == 0:
            return math.nan
        return float(Fraction(pairs.twice_right, 2 * pairs.total))


METRICS: tuple[type[Metric], ...] = (
    RootMeanSquaredError,
    MeanAbsoluteError,
    RSquared,
    LogisticLoss,
    LogisticError,
    AreaUnderCurve,
    SoftmaxLoss,
    SoftmaxError,
)


def make_metrics(names: Sequence[str] | None, objective: type[Objective]) -> list[Metric]:
    """The metrics of these names for an objective; its default metric for None.

    Raises
    ------
    InvalidParameterError : a name that is no metric of the objective; the allowed ones are named.
    """
    known = {metric.name: metric for metric in METRICS if issubclass(objective, metric.objective)}
    metrics = []
    for name in (objective.default_metric,) if names is None else names:
        if name not in known:
            allowed = ", ".join(repr(allowed) for allowed in known)
            others = [metric.objective.name for metric in METRICS if metric.name == name]
            hint = f", a metric of objective={others[0]!r}" if others else ""
            raise InvalidParameterError(
                f"eval_metric must be among {allowed} for objective={objective.name!r}; found "
                f"{name!r}{hint}."
            )
        metrics.append(known[name]())
    return metrics


def mean_loss(loss_sum: int, scale: int, total_weight: Fraction) -> Fraction:
    """``loss_sum * 2^-scale / total_weight``, exactly."""
    return Fraction(loss_sum) / Fraction(2) ** scale / total_weight
