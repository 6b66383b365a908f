"""Metrics: exact functions of integer sums of per-row float32 losses.

    row losses (float32) -> fixed point -> int64 sum over rows and ranks -> weighted mean -> finish

A non-finite loss makes the metric infinite; it is never an error.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import IntEnum
from fractions import Fraction

import numpy as np

from torchgbdt.core.arrays import Float32Array
from torchgbdt.core.errors import InvalidParameterError
from torchgbdt.core.fixed_point import flush_subnormals
from torchgbdt.core.objectives import squared_error_residuals


class MetricKind(IntEnum):
    """Which loss kernel a metric needs; the numbers are those of csrc/shared."""

    SQUARED_ERROR = 0
    ABSOLUTE_ERROR = 1


class Metric(ABC):
    """A weighted mean of per-row losses, and a function of it."""

    name: str
    kind: MetricKind
    higher_is_better: bool = False

    @abstractmethod
    def row_losses(self, predictions: Float32Array, labels: Float32Array) -> Float32Array:
        """Losses before weighting, float32 >= 0, flushed, (n_rows,); see ``Objective``."""

    @abstractmethod
    def finish(self, mean: float) -> float:
        """The metric from the weighted mean loss."""


class RootMeanSquaredError(Metric):
    """sqrt(mean of e^2)."""

    name = "rmse"
    kind = MetricKind.SQUARED_ERROR

    def row_losses(self, predictions: Float32Array, labels: Float32Array) -> Float32Array:
        """e * e in float32."""
        residuals = squared_error_residuals(predictions, labels)
        with np.errstate(over="ignore"):
            return flush_subnormals(residuals * residuals)

    def finish(self, mean: float) -> float:
        """Square root; correctly rounded by IEEE 754."""
        return float(np.sqrt(mean))


class MeanAbsoluteError(Metric):
    """mean of |e|."""

    name = "mae"
    kind = MetricKind.ABSOLUTE_ERROR

    def row_losses(self, predictions: Float32Array, labels: Float32Array) -> Float32Array:
        """|e| in float32."""
        return np.abs(squared_error_residuals(predictions, labels))

    def finish(self, mean: float) -> float:
        """The mean itself."""
        return mean


METRICS: dict[str, type[Metric]] = {
    metric.name: metric for metric in (RootMeanSquaredError, MeanAbsoluteError)
}


def make_metrics(names: Sequence[str]) -> list[Metric]:
    """The metrics of these names; InvalidParameterError names the allowed ones."""
    unknown = [name for name in names if name not in METRICS]
    if unknown:
        allowed = ", ".join(repr(known) for known in METRICS)
        raise InvalidParameterError(f"eval_metric must be among {allowed}; found {unknown[0]!r}.")
    return [METRICS[name]() for name in names]


def weighted_losses(losses: Float32Array, weights: Float32Array | None) -> Float32Array:
    """``loss * weight`` in float32, flushed; the losses themselves without weights."""
    if weights is None:
        return losses
    with np.errstate(over="ignore", invalid="ignore"):
        return flush_subnormals(losses * weights)


def mean_loss(loss_sum: int, scale: int, total_weight: Fraction) -> float:
    """``loss_sum * 2^-scale / total_weight``, an exact quotient rounded once to float64."""
    return float(Fraction(loss_sum) / Fraction(2) ** scale / total_weight)
