"""Objectives: baseline, centred labels, gradients and Hessians, each written once for numpy.

The oracle calls ``gradients`` as it stands; the C++ and Metal twins live in csrc/shared and are
held bit-equal by the contract suite.
"""

from abc import ABC, abstractmethod
from enum import IntEnum

import numpy as np

from torchgbdt.core.arrays import AnyArray, Float32Array, Float64Array
from torchgbdt.core.errors import InvalidParameterError
from torchgbdt.core.exact_sum import ExactSum
from torchgbdt.core.fixed_point import flush_subnormals


class ObjectiveKind(IntEnum):
    """Which gradient kernel an objective needs; the numbers are those of csrc/shared."""

    SQUARED_ERROR = 0


class Objective(ABC):
    """A loss whose gradients drive the boosting.

    Attributes
    ----------
    name : as typed by the user and stored in model files.
    link : name of the function from raw predictions to means, part of the model digest.
    constant_hessian : whether h = 1 for every row of weight 1.
    default_metric : evaluated when the user names none.
    """

    name: str
    kind: ObjectiveKind
    link: str
    constant_hessian: bool
    default_metric: str

    n_outputs: int = 1
    trees_per_round: int = 1

    @abstractmethod
    def fit_baseline(self, weighted_labels: ExactSum, weights: ExactSum) -> Float64Array:
        """The best constant prediction, float64 (n_outputs,), from exact sums over all ranks."""

    @abstractmethod
    def center_labels(
        self, labels: AnyArray, baseline: Float64Array, margins: Float32Array | None
    ) -> Float32Array:
        """Labels as the kernels see them, float32 (n_rows,), from float64 differences."""

    @abstractmethod
    def gradients(
        self, predictions: Float32Array, labels: Float32Array, weights: Float32Array | None
    ) -> tuple[Float32Array, Float32Array]:
        """Gradient and Hessian of each row's loss.

        Parameters
        ----------
        predictions : float32, (n_rows, n_outputs), sums of leaf values without the baseline. IN.
        labels : float32, (n_rows,), from ``center_labels``. IN.
        weights : float32, (n_rows,), or None. IN.

        Returns
        -------
        Two float32 arrays, (n_rows, trees_per_round); loss units per raw-prediction unit.
        """


class SquaredError(Objective):
    """Half the squared difference: g = w * (prediction - label), h = w.

    Both differ from the baseline by the same amount, so the kernels see e = sum - (y - baseline),
    with y - baseline subtracted in float64: offsets of 1e9 cost no precision.
    """

    name = "squared_error"
    kind = ObjectiveKind.SQUARED_ERROR
    link = "identity"
    constant_hessian = True
    default_metric = "rmse"

    def fit_baseline(self, weighted_labels: ExactSum, weights: ExactSum) -> Float64Array:
        """The weighted mean: a quotient of exact sums, rounded once."""
        return np.array([float(weighted_labels.total() / weights.total())])

    def center_labels(
        self, labels: AnyArray, baseline: Float64Array, margins: Float32Array | None
    ) -> Float32Array:
        """``float32(y - baseline)``, less the margin in float64 where margins are given."""
        residuals = labels.astype(np.float64) - baseline[0]
        return flush_subnormals(residuals if margins is None else residuals - margins)

    def gradients(
        self, predictions: Float32Array, labels: Float32Array, weights: Float32Array | None
    ) -> tuple[Float32Array, Float32Array]:
        """See the class."""
        residuals = squared_error_residuals(predictions, labels)
        if weights is None:
            return residuals[:, None], np.ones_like(residuals)[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            gradients = flush_subnormals(residuals * weights)
        return gradients[:, None], weights[:, None].copy()


def squared_error_residuals(predictions: Float32Array, labels: Float32Array) -> Float32Array:
    """``e = sum - centred label`` in float32, flushed; (n_rows,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        return flush_subnormals(predictions[:, 0] - labels)


OBJECTIVES: dict[str, type[Objective]] = {SquaredError.name: SquaredError}


def make_objective(name: str) -> Objective:
    """The objective of that name; InvalidParameterError names the allowed ones."""
    if name not in OBJECTIVES:
        allowed = ", ".join(repr(known) for known in OBJECTIVES)
        raise InvalidParameterError(f"objective must be one of {allowed}; found {name!r}.")
    return OBJECTIVES[name]()
