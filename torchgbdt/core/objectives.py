"""Objectives: baseline, labels as kernels see them, gradients and Hessians.

    squared_error   one output; labels are centred on the baseline, predictions are sums of leaves
    logistic        one output, two classes; labels are class codes, predictions are raw
    softmax         K outputs, K classes; the same

The gradients are formulas for any array library (see ``array_ops``), which the oracle and the torch
backend call as they stand; the C++ and Metal twins live in csrc/shared and are held bit-equal by
the contract suite.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import IntEnum
from fractions import Fraction

import numpy as np

from torchgbdt.core.array_ops import NUMPY, Array, ArrayOps
from torchgbdt.core.arrays import AnyArray, Float32Array, Float64Array
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError
from torchgbdt.core.exact_log import exact_log
from torchgbdt.core.exact_sum import ExactSum, exact_class_sums, exact_weighted_sum
from torchgbdt.core.fixed_point import flush_subnormals
from torchgbdt.core.probabilities import (
    SoftmaxTerms,
    logistic_terms,
    softmax_term,
    softmax_terms,
)


class ObjectiveKind(IntEnum):
    """Which gradient kernel an objective needs; the numbers are those of csrc/shared."""

    SQUARED_ERROR = 0
    LOGISTIC = 1
    SOFTMAX = 2


class Objective(ABC):
    """A loss whose gradients drive the boosting.

    Attributes
    ----------
    name : as typed by the user and stored in model files.
    link : name of the function from raw predictions to means, part of the model digest.
    takes_classes : whether labels are classes; kernels then see their codes.
    centers_labels : whether labels come less the baseline and the margins, and predictions as sums
        of leaf values; else predictions are raw.
    constant_hessian : whether h = 1 for every row of weight 1.
    default_metric : evaluated when the user names none.
    n_outputs : columns of the raw prediction.
    trees_per_round : trees that one round grows, each for one or all of the outputs.
    """

    name: str
    kind: ObjectiveKind
    link: str
    takes_classes: bool
    centers_labels: bool
    constant_hessian: bool
    default_metric: str

    n_outputs: int = 1
    trees_per_round: int = 1

    @classmethod
    def for_classes(cls, n_classes: int | None) -> "Objective":
        """The objective of a run whose labels have this many classes; None for real targets.

        Raises
        ------
        InvalidDataError : it does not fit that number of classes.
        """
        return cls()

    @abstractmethod
    def label_sums(self, labels: AnyArray, weights: Float32Array | None) -> list[ExactSum]:
        """Exact sums over this rank's rows that the baseline is fitted from.

        ``labels`` are real targets, or class codes.
        """

    @abstractmethod
    def fit_baseline(self, label_sums: Sequence[Fraction], total_weight: Fraction) -> Float64Array:
        """The best constant prediction, float64 (n_outputs,), from sums over all ranks."""

    @abstractmethod
    def kernel_labels(
        self, labels: AnyArray, baseline: Float64Array, margins: Float32Array | None
    ) -> Float32Array:
        """Labels as the kernels see them, float32 (n_rows,)."""

    def shared_terms(self, predictions: Array, ops: ArrayOps = NUMPY) -> SoftmaxTerms | None:
        """What the gradients of all outputs share, if anything.

        ``predictions`` : float32, (n_rows, n_outputs), each column as x of ``output_gradients``.
        """
        return None

    @abstractmethod
    def output_gradients(
        self,
        x: Array,
        labels: Array,
        weights: Array | None,
        output: int,
        terms: SoftmaxTerms | None,
        ops: ArrayOps = NUMPY,
    ) -> tuple[Array, Array]:
        """Gradient and Hessian of each row's loss by one output.

        Parameters
        ----------
        x : float32, (n_rows,); this output's sum of leaf values where labels are centred, else its
            raw prediction. IN.
        labels : float32, (n_rows,), from ``kernel_labels``. IN.
        weights : float32, (n_rows,), or None. IN.
        terms : from ``shared_terms`` of the predictions of all outputs.

        Returns
        -------
        Two float32 arrays, (n_rows,); loss units per raw-prediction unit.
        """

    def gradients(
        self, predictions: Float32Array, labels: Float32Array, weights: Float32Array | None
    ) -> tuple[Float32Array, Float32Array]:
        """``output_gradients`` of all outputs: two float32 arrays, (n_rows, n_outputs).

        ``predictions`` as in ``shared_terms``.
        """
        terms = self.shared_terms(predictions)
        gradients, hessians = zip(
            *(
                self.output_gradients(predictions[:, output], labels, weights, output, terms)
                for output in range(self.n_outputs)
            ),
            strict=True,
        )
        return np.stack(gradients, axis=1), np.stack(hessians, axis=1)


class SquaredError(Objective):
    """Half the squared difference: g = w * (prediction - label), h = w.

    Both differ from the baseline by the same amount, so the kernels see e = sum - (y - baseline),
    with y - baseline subtracted in float64: offsets of 1e9 cost no precision.
    """

    name = "squared_error"
    kind = ObjectiveKind.SQUARED_ERROR
    link = "identity"
    takes_classes = False
    centers_labels = True
    constant_hessian = True
    default_metric = "rmse"

    def label_sums(self, labels: AnyArray, weights: Float32Array | None) -> list[ExactSum]:
        """The sum of w * y."""
        return [exact_weighted_sum(labels, weights)]

    def fit_baseline(self, label_sums: Sequence[Fraction], total_weight: Fraction) -> Float64Array:
        """The weighted mean: a quotient of exact sums, rounded once."""
        return np.array([float(label_sums[0] / total_weight)])

    def kernel_labels(
        self, labels: AnyArray, baseline: Float64Array, margins: Float32Array | None
    ) -> Float32Array:
        """``float32(y - baseline)``, less the margin in float64 where margins are given."""
        residuals = labels.astype(np.float64) - baseline[0]
        if margins is not None:
            residuals = residuals - margins[:, 0]
        rounded: Float32Array = flush_subnormals(residuals)
        return rounded

    def output_gradients(
        self,
        x: Array,
        labels: Array,
        weights: Array | None,
        output: int,
        terms: SoftmaxTerms | None,
        ops: ArrayOps = NUMPY,
    ) -> tuple[Array, Array]:
        """See the class."""
        residuals = squared_error_residuals(x, labels, ops)
        ones = ops.zeros_like(residuals) + 1.0
        return weighted(residuals, weights, ops), weighted(ones, weights, ops)


def squared_error_residuals(x: Array, labels: Array, ops: ArrayOps = NUMPY) -> Array:
    """``e = sum - centred label`` in float32, flushed; (n_rows,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        return flush_subnormals(x - labels, ops)


class _Classification(Objective):
    """What objectives on class codes share: an exact sum of weights per class, nothing centred."""

    takes_classes = True
    centers_labels = False
    constant_hessian = False
    default_metric = "logloss"

    n_classes: int

    def label_sums(self, labels: AnyArray, weights: Float32Array | None) -> list[ExactSum]:
        """The weight of each class."""
        return exact_class_sums(labels, weights, self.n_classes)

    def kernel_labels(
        self, labels: AnyArray, baseline: Float64Array, margins: Float32Array | None
    ) -> Float32Array:
        """Class codes; float32 holds them exactly, and all objectives share one label buffer."""
        return labels.astype(np.float32)


class Logistic(_Classification):
    """Negative log-likelihood of two classes; raw predictions x are log-odds of the second.

    With s = sigmoid: g = w * (s(x) - y), h = w * s(x) * s(-x). s(x) - 1 is taken as -s(-x), and h
    as a product of two small factors: nothing cancels, h > 0 wherever |x| is clamped (86).
    """

    name = "logistic"
    kind = ObjectiveKind.LOGISTIC
    link = "logistic"
    n_classes = 2

    @classmethod
    def for_classes(cls, n_classes: int | None) -> "Logistic":
        """See Objective; two classes."""
        if n_classes != 2:
            raise InvalidDataError(
                f"y has {n_classes} classes; objective='logistic' takes two. Use "
                f"objective='softmax'."
            )
        return cls()

    def fit_baseline(self, label_sums: Sequence[Fraction], total_weight: Fraction) -> Float64Array:
        """The log-odds of the second class."""
        return np.array([exact_log(label_sums[1] / label_sums[0])])

    def output_gradients(
        self,
        x: Array,
        labels: Array,
        weights: Array | None,
        output: int,
        terms: SoftmaxTerms | None,
        ops: ArrayOps = NUMPY,
    ) -> tuple[Array, Array]:
        """See the class."""
        parts = logistic_terms(x, ops)
        sigmoid = ops.where(x >= 0, parts.large, parts.small)
        opposite = ops.where(x >= 0, parts.small, parts.large)
        gradients = flush_subnormals(ops.where(labels == 1, -opposite, sigmoid), ops)
        hessians = flush_subnormals(parts.small / (1 + parts.t), ops)
        return weighted(gradients, weights, ops), weighted(hessians, weights, ops)


class Softmax(_Classification):
    """Negative log-likelihood of K classes, one raw prediction each: p = softmax(x).

    g_k = w * (p_k - [y = k]) and h_k = w * 2 * p_k * (1 - p_k). The Hessian of a row's loss is
    diag(p) - p p^T; trees see one output each, so a diagonal has to stand for it. 2 p (1 - p) is
    the smallest multiple of its own diagonal that bounds it from above for every p (Gershgorin:
    the off-diagonal magnitudes of row k sum to p_k (1 - p_k)), so that the steps of all K trees at
    once do not overshoot the loss's own quadratic model. For two classes and no regularization the
    step in log-odds is that of ``Logistic``; reg_lambda acts on each of the two outputs, so it is
    that of ``Logistic`` at reg_lambda / 2. XGBoost takes the same factor, scikit-learn takes 1,
    LightGBM K / (K - 1).
    """

    name = "softmax"
    kind = ObjectiveKind.SOFTMAX
    link = "softmax"

    def __init__(self, n_classes: int) -> None:
        self.n_classes = self.n_outputs = self.trees_per_round = n_classes

    @classmethod
    def for_classes(cls, n_classes: int | None) -> "Softmax":
        """See Objective; two or more classes."""
        assert n_classes is not None
        return cls(n_classes)

    def fit_baseline(self, label_sums: Sequence[Fraction], total_weight: Fraction) -> Float64Array:
        """The logarithm of each class's share."""
        return np.array([exact_log(label_sum / total_weight) for label_sum in label_sums])

    def shared_terms(self, predictions: Array, ops: ArrayOps = NUMPY) -> SoftmaxTerms:
        """See Objective."""
        return softmax_terms(predictions, ops)

    def output_gradients(
        self,
        x: Array,
        labels: Array,
        weights: Array | None,
        output: int,
        terms: SoftmaxTerms | None,
        ops: ArrayOps = NUMPY,
    ) -> tuple[Array, Array]:
        """See the class. 1 - p_k is the sum of the other classes' terms: nothing cancels."""
        assert terms is not None
        total = 1 + terms.rest
        t = softmax_term(x, terms.largest, ops)
        others = ops.where(x == terms.largest, terms.rest, total - t)
        p, q = flush_subnormals(t / total, ops), flush_subnormals(others / total, ops)
        gradients = flush_subnormals(ops.where(labels == output, -q, p), ops)  # no -0
        hessians = flush_subnormals((2 * p) * q, ops)
        return weighted(gradients, weights, ops), weighted(hessians, weights, ops)


def weighted(values: Array, weights: Array | None, ops: ArrayOps = NUMPY) -> Array:
    """``values * weight`` in float32, flushed, (n_rows,); the values themselves without weights."""
    if weights is None:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        return flush_subnormals(values * weights, ops)


OBJECTIVES: dict[str, type[Objective]] = {
    objective.name: objective for objective in (SquaredError, Logistic, Softmax)
}


def find_objective(name: str) -> type[Objective]:
    """The objective of that name; InvalidParameterError names the allowed ones."""
    if name not in OBJECTIVES:
        allowed = ", ".join(repr(known) for known in OBJECTIVES)
        raise InvalidParameterError(f"objective must be one of {allowed}; found {name!r}.")
    return OBJECTIVES[name]
