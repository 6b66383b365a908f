"""Metrics: float32 row losses, and an exact mean of their integer sums."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.exact import assert_identical

from torchgbdt.core.errors import InvalidParameterError
from torchgbdt.core.metrics import (
    MeanAbsoluteError,
    MetricKind,
    RootMeanSquaredError,
    make_metrics,
    mean_loss,
    weighted_losses,
)

LARGEST = float(np.finfo(np.float32).max)
SMALLEST = 2.0**-126


def float32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def column(*values: float) -> np.ndarray:
    return np.array(values, np.float32)[:, None]


def test_make_metrics_keeps_the_order() -> None:
    metrics = make_metrics(("mae", "rmse"))
    assert [type(metric) for metric in metrics] == [MeanAbsoluteError, RootMeanSquaredError]
    assert [metric.name for metric in metrics] == ["mae", "rmse"]
    assert not any(metric.higher_is_better for metric in metrics)
    assert make_metrics(()) == []


def test_metric_kinds_keep_their_numbers() -> None:
    # Kernels are chosen by them.
    assert (MetricKind.SQUARED_ERROR, MetricKind.ABSOLUTE_ERROR) == (0, 1)
    assert RootMeanSquaredError.kind is MetricKind.SQUARED_ERROR
    assert MeanAbsoluteError.kind is MetricKind.ABSOLUTE_ERROR


def test_make_metrics_names_the_first_unknown_one_and_what_is_allowed() -> None:
    with pytest.raises(InvalidParameterError) as caught:
        make_metrics(("rmse", "auc", "logloss"))
    assert str(caught.value) == "eval_metric must be among 'rmse', 'mae'; found 'auc'."


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
    assert weighted_losses(losses, None) is losses


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
    assert_identical(weighted_losses(float32(loss), float32(weight)), float32(expected))


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
    expected = float(Fraction(total) * Fraction(1, 2) ** scale / total_weight)
    assert_identical(mean_loss(total, scale, total_weight), expected)


def test_mean_loss_by_hand() -> None:
    assert mean_loss(12, 2, Fraction(6)) == 0.5  # 12 / 4 / 6
    assert mean_loss(3, -1, Fraction(4)) == 1.5  # 3 * 2 / 4


@pytest.mark.parametrize(
    ("mean", "expected"), [(0.0, 0.0), (2.25, 1.5), (2.0, 1.4142135623730951), (np.inf, np.inf)]
)
def test_rmse_is_the_root_of_the_mean(mean: float, expected: float) -> None:
    assert_identical(RootMeanSquaredError().finish(mean), expected)  # a Python float as well


def test_mae_is_the_mean() -> None:
    assert_identical(MeanAbsoluteError().finish(0.1), 0.1)
