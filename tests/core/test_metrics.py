"""Metrics: float32 row losses, and an exact mean of their integer sums."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.exact import assert_identical

from torchgbdt.core.errors import InvalidParameterError
from torchgbdt.core.metrics import (
    AreaUnderCurve,
    LogisticError,
    LogisticLoss,
    MeanAbsoluteError,
    Metric,
    MetricKind,
    RootMeanSquaredError,
    RSquared,
    SoftmaxError,
    SoftmaxLoss,
    make_metrics,
    mean_loss,
)
from torchgbdt.core.objectives import Logistic, Objective, Softmax, SquaredError, weighted

LARGEST = float(np.finfo(np.float32).max)
SMALLEST = 2.0**-126


def float32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def column(*values: float) -> np.ndarray:
    return np.array(values, np.float32)[:, None]


# ---------------------------------------------------------------------------------------- names


def test_make_metrics_keeps_the_order() -> None:
    metrics = make_metrics(("mae", "rmse"), SquaredError)
    assert [type(metric) for metric in metrics] == [MeanAbsoluteError, RootMeanSquaredError]
    assert [metric.name for metric in metrics] == ["mae", "rmse"]
    assert not any(metric.higher_is_better for metric in metrics)
    assert make_metrics((), SquaredError) == []


@pytest.mark.parametrize(
    ("objective", "names", "types"),
    [
        (
            SquaredError,
            ("rmse", "mae", "r2"),
            [RootMeanSquaredError, MeanAbsoluteError, RSquared],
        ),
        (Logistic, ("logloss", "error", "auc"), [LogisticLoss, LogisticError, AreaUnderCurve]),
        (Softmax, ("logloss", "error"), [SoftmaxLoss, SoftmaxError]),
    ],
)
def test_each_objective_has_metrics_of_its_own(
    objective: type[Objective], names: tuple[str, ...], types: list[type[Metric]]
) -> None:
    assert [type(metric) for metric in make_metrics(names, objective)] == types
    assert [type(metric) for metric in make_metrics(names[::-1], objective)] == types[::-1]
    for other in {"rmse", "mae", "r2", "logloss", "error", "auc", "mse", ""} - set(names):
        with pytest.raises(InvalidParameterError) as caught:
            make_metrics((names[0], other), objective)
        owner = {"rmse": "squared_error", "mae": "squared_error", "r2": "squared_error"}
        owner |= dict.fromkeys(("logloss", "error", "auc"), "logistic")
        hint = f", a metric of objective={owner[other]!r}" if other in owner else ""
        assert str(caught.value) == (
            f"eval_metric must be among {', '.join(map(repr, names))} for objective="
            f"{objective.name!r}; found {other!r}{hint}."
        )


@pytest.mark.parametrize(
    ("objective", "expected"),
    [(SquaredError, RootMeanSquaredError), (Logistic, LogisticLoss), (Softmax, SoftmaxLoss)],
)
def test_without_names_the_objective_is_judged_by_its_own(
    objective: type[Objective], expected: type[Metric]
) -> None:
    (metric,) = make_metrics(None, objective)
    assert type(metric) is expected


def test_metric_kinds_keep_their_numbers() -> None:
    # Kernels are chosen by them.
    assert (MetricKind.SQUARED_ERROR, MetricKind.ABSOLUTE_ERROR) == (0, 1)
    assert (MetricKind.LOGISTIC_LOSS, MetricKind.LOGISTIC_ERROR) == (2, 3)
    assert (MetricKind.SOFTMAX_LOSS, MetricKind.SOFTMAX_ERROR) == (4, 5)
    assert RootMeanSquaredError.kind is RSquared.kind is MetricKind.SQUARED_ERROR
    assert MeanAbsoluteError.kind is MetricKind.ABSOLUTE_ERROR
    assert (LogisticLoss.kind, LogisticError.kind) == (2, 3)
    assert (SoftmaxLoss.kind, SoftmaxError.kind) == (4, 5)


def test_the_worst_value_is_on_the_side_that_is_worse() -> None:
    worst = {
        metric.name: metric.worst for one in (SquaredError, Logistic) for metric in all_of(one)
    }
    assert worst == {
        **{"rmse": np.inf, "mae": np.inf, "r2": -np.inf},
        **{"logloss": np.inf, "error": np.inf, "auc": -np.inf},
    }
    better = {metric.name for metric in all_of(SquaredError, Logistic) if metric.higher_is_better}
    assert better == {"r2", "auc"}


def all_of(*objectives: type[Objective]) -> list[Metric]:
    names = {"squared_error": ("rmse", "mae", "r2"), "logistic": ("logloss", "error", "auc")}
    return [metric for one in objectives for metric in make_metrics(names[one.name], one)]


# ---------------------------------------------------------------------------------- row losses


def test_squared_losses_by_hand() -> None:
    found = RootMeanSquaredError().row_losses(column(1, -2, 0), float32(-1, 1, 0))
    assert_identical(found, float32(4, 9, 0))


def test_absolute_losses_by_hand() -> None:
    found = MeanAbsoluteError().row_losses(column(1, -2, 0), float32(-1, 1, 0))
    assert_identical(found, float32(2, 3, 0))


def test_squared_loss_is_rounded_to_float32_after_each_step() -> None:
    # e = float32(1 + 2^-23 - 2^-30) = 1 + 2^-23; e * e = 1 + 2^-22 + 2^-46 rounds to 1 + 2^-22.
    found = RootMeanSquaredError().row_losses(column(1 + 2.0**-23), float32(2.0**-30))
    assert_identical(found, float32(1 + 2.0**-22))


@pytest.mark.parametrize("metric", [RootMeanSquaredError(), MeanAbsoluteError()])
@pytest.mark.parametrize("residual", [SMALLEST / 2, -SMALLEST / 2, 0.0, -0.0])
def test_tiny_losses_are_plus_zero(metric: RootMeanSquaredError, residual: float) -> None:
    prediction = SMALLEST + residual
    assert_identical(metric.row_losses(column(prediction), float32(SMALLEST)), float32(0))


def test_a_square_below_the_smallest_normal_is_plus_zero() -> None:
    e = 2.0**-63.5
    found = RootMeanSquaredError().row_losses(column(2.0**-63, e), float32(0, 0))
    assert_identical(found, float32(SMALLEST, 0))


@pytest.mark.parametrize(
    ("metric", "residual"), [(RootMeanSquaredError(), 2e19), (MeanAbsoluteError(), np.inf)]
)
def test_losses_beyond_float32_are_infinite_and_no_warning(
    metric: RootMeanSquaredError, residual: float
) -> None:
    assert metric.row_losses(column(residual, -residual), float32(0, 0)).tolist() == [np.inf] * 2


def test_a_loss_that_is_no_number_is_no_warning() -> None:
    assert np.isnan(MeanAbsoluteError().row_losses(column(np.inf), float32(np.inf)))


# ------------------------------------------------------------------------------------- weights


def test_losses_without_weights_are_themselves() -> None:
    losses = float32(1, 2)
    assert weighted(losses, None) is losses


@pytest.mark.parametrize(
    ("loss", "weight", "expected"),
    [
        (3, 0.5, 1.5),
        (1 + 2.0**-23, 3, 3 + 2.0**-21),  # 3 + 1.5 units of 2^-22: the tie goes to even
        (2.0**-100, 2.0**-27, 0),
        (2.0**-100, 2.0**-26, SMALLEST),
        (LARGEST, 2, np.inf),
        (np.inf, 2.0**-126, np.inf),
    ],
)
def test_weighted_losses_by_hand(loss: float, weight: float, expected: float) -> None:
    assert_identical(weighted(float32(loss), float32(weight)), float32(expected))


# --------------------------------------------------------------------------------------- means


@given(
    st.integers(0, 2**62),
    st.integers(-98, 120),
    st.floats(SMALLEST, 2.0**160).map(Fraction) | st.integers(1, 2**32).map(Fraction),
)
@example(2**53 + 1, 0, Fraction(1))
@example(2**53 + 1, 0, Fraction(3))  # an integer; 2^53 / 3 rounds to another number
@example(1, 0, Fraction(3))
@example(0, 0, Fraction(5))
def test_mean_loss_is_an_exact_quotient_rounded_once(
    total: int, scale: int, total_weight: Fraction
) -> None:
    expected = Fraction(total) * Fraction(1, 2) ** scale / total_weight
    assert mean_loss(total, scale, total_weight) == expected
    assert_identical(MeanAbsoluteError().finish(expected, Fraction(0)), float(expected))


def test_mean_loss_by_hand() -> None:
    assert mean_loss(12, 2, Fraction(6)) == 0.5  # 12 / 4 / 6
    assert mean_loss(3, -1, Fraction(4)) == 1.5  # 3 * 2 / 4


@pytest.mark.parametrize(("mean", "expected"), [(0.0, 0.0), (2.25, 1.5), (2.0, 1.4142135623730951)])
def test_rmse_is_the_root_of_the_mean(mean: float, expected: float) -> None:
    found = RootMeanSquaredError().finish(Fraction(mean), Fraction(0))
    assert_identical(found, expected)  # a Python float as well


def test_mae_is_the_mean() -> None:
    assert_identical(MeanAbsoluteError().finish(Fraction(1, 10), Fraction(0)), 0.1)


@pytest.mark.parametrize(
    ("mean", "variance", "expected"),
    [
        (Fraction(0), Fraction(2), 1.0),
        (Fraction(2), Fraction(2), 0.0),
        (Fraction(1, 2), Fraction(2), 0.75),
        (Fraction(6), Fraction(2), -2.0),
        (Fraction(1, 3), Fraction(1), 2 / 3),  # 1 - 1/3 rounded once; 1 - (1/3) is one unit more
        (Fraction(1, 2**1000), Fraction(1), 1.0),
        (Fraction(0), Fraction(0), 1.0),  # constant targets: perfect, or not
        (Fraction(1, 2**500), Fraction(0), 0.0),
    ],
)
def test_r2_is_the_share_of_the_variance_explained(
    mean: Fraction, variance: Fraction, expected: float
) -> None:
    assert_identical(RSquared().finish(mean, variance), expected)
    assert RSquared.needs_variance
    assert not RootMeanSquaredError.needs_variance
