"""Losses of logistic and softmax: by hand, against the true ones, ties, and at the extremes."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from support.exact import assert_identical
from support.tolerances import PORTABLE_MATH_ULPS

from torchgbdt.core import portable_math
from torchgbdt.core.metrics import (
    AreaUnderCurve,
    LogisticError,
    LogisticLoss,
    SoftmaxError,
    SoftmaxLoss,
)
from torchgbdt.core.ranking import OrderedPairs

INF, NAN = float("inf"), float("nan")
LARGEST = float(np.finfo(np.float32).max)
ULP = 2.0**-24  # of float32 just below 1
FAINT = float(portable_math.exp(np.array([-86], np.float32))[0])
"""exp(-86), below which no term of a softmax falls."""


def float32(*values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def logistic_loss(x: Any, y: Any) -> np.ndarray:
    return LogisticLoss().row_losses(float32(*x)[:, None], float32(*y))


def softmax_loss(rows: Any, y: Any) -> np.ndarray:
    return SoftmaxLoss().row_losses(float32(*rows), float32(*y))


def assert_within(found: float, exact: mpmath.mpf, roundings: float) -> None:
    """Off by what ``exp`` and ``log1p`` and so many roundings may add up to."""
    limit = (2 * PORTABLE_MATH_ULPS + roundings / 2) * 2.0**-23
    assert abs(found - exact) <= mpmath.mpf(limit) * exact, (found, exact)


# --------------------------------------------------------------------------------------- losses


def test_losses_of_a_tie_are_the_logarithm_of_the_number_of_classes() -> None:
    ln2 = float(np.float32(math.log(2)))
    assert_identical(logistic_loss([0, -0.0, 0], [0, 0, 1]), float32(ln2, ln2, ln2))
    assert_identical(softmax_loss([[3, 3], [-5, -5]], [0, 1]), float32(ln2, ln2))
    assert_identical(softmax_loss([[1] * 4] * 2, [0, 3]), portable_math.log1p(float32(3, 3)))


def test_the_loss_of_a_wrong_class_grows_with_the_distance() -> None:
    t = portable_math.exp(float32(-3))
    low = portable_math.log1p(t)
    assert_identical(
        logistic_loss([3, -3, 3, -3], [1, 0, 0, 1]), np.tile(low, 4) + float32(0, 0, 3, 3)
    )
    assert_identical(softmax_loss([[0, 3], [0, 3]], [1, 0]), np.tile(low, 2) + float32(0, 3))


@pytest.mark.parametrize("x", [*np.linspace(-80, 80, 33).tolist(), 1e-3, -1e-3, 1e-8, -1e-8])
def test_logistic_losses_are_negative_log_likelihoods(x: float) -> None:
    x = float(np.float32(x))
    for y, found in enumerate(logistic_loss([x, x], [0, 1]).tolist()):
        with mpmath.workdps(60):
            assert_within(found, mpmath.log1p(mpmath.exp(-x if y else x)), 1)


@pytest.mark.parametrize("seed", range(20))
def test_softmax_losses_are_negative_log_likelihoods(seed: int) -> None:
    rng = np.random.default_rng(seed)
    row = rng.normal(0, 10.0 ** rng.uniform(-3, 1), 4).astype(np.float32)
    distance = 2 * float(np.abs(row - row.max()).max())  # its rounding is one of the exponential
    for y in range(4):
        (found,) = softmax_loss([row], [y]).tolist()
        with mpmath.workdps(60):
            exact = [mpmath.mpf(float(x)) for x in row]
            assert_within(found, mpmath.log(sum(map(mpmath.exp, exact))) - exact[y], 5 + distance)


def test_two_classes_of_softmax_lose_what_logistic_does() -> None:
    x = np.linspace(-85, 85, 400, dtype=np.float32)
    y = np.arange(400) % 2
    both = np.stack((np.zeros_like(x), x), axis=1)
    assert_identical(softmax_loss(both, y), logistic_loss(x, y))


@pytest.mark.parametrize(
    ("x", "right", "wrong"),
    [
        # logistic: exp(-87) = 1.6e-38 is above 2^-126, exp(-88) is not
        (88, 0, 88),
        (1000, 0, 1000),
        (LARGEST, 0, LARGEST),
        (INF, 0, INF),
    ],
)
def test_logistic_losses_at_the_extremes(x: float, right: float, wrong: float) -> None:
    found = logistic_loss([x, x, -x, -x], [1, 0, 0, 1])
    assert_identical(found, float32(right, wrong, right, wrong))


def test_softmax_losses_at_the_extremes() -> None:
    found = softmax_loss([[0, 1000]] * 2 + [[0, -LARGEST], [LARGEST, -LARGEST]], [1, 0, 1, 1])
    assert_identical(found, float32(FAINT, 1000, LARGEST, INF))


def test_losses_that_are_no_number_stay_in_their_row_and_are_no_warning() -> None:
    assert np.isnan(logistic_loss([1, NAN, 2], [0, 1, 1])).tolist() == [False, True, False]
    for row in ([NAN, 0, 0], [0, 0, NAN], [INF, INF, 0]):
        found = softmax_loss([[1, 2, 3], row, [1, 2, 3]], [0, 1, 2])
        assert np.isnan(found).tolist() == [False, True, False]


# --------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("x", "wrong"),
    [
        # wrong for the first and for the second class; a tie counts as the first
        (1, (1, 0)),
        (-1, (0, 1)),
        (0.0, (0, 1)),
        (-0.0, (0, 1)),
        (ULP / 2, (1, 0)),  # though exp(-x) is 1, and so both probabilities 1/2
        (4 * ULP, (1, 0)),
        (INF, (1, 0)),
        (-INF, (0, 1)),
        (NAN, (NAN, NAN)),
    ],
)
def test_logistic_errors_by_hand(x: float, wrong: tuple[float, float]) -> None:
    found = LogisticError().row_losses(float32([x], [x]), float32(0, 1))
    np.testing.assert_array_equal(found, float32(*wrong))
    assert found.dtype == np.float32


@pytest.mark.parametrize(
    ("row", "right"),
    [
        ([0, 1, 2], 2),
        ([2, 1, 0], 0),
        ([1, 1, 1], 0),
        ([0, 1, 1], 1),
        ([0, ULP / 2, 0], 1),
        ([0, 4 * ULP, 0], 1),
        ([-LARGEST, LARGEST, 0], 1),
    ],
)
def test_softmax_errors_by_hand(row: list[float], right: int) -> None:
    found = SoftmaxError().row_losses(float32(row, row, row), float32(0, 1, 2))
    assert_identical(found, (np.arange(3) != right).astype(np.float32))


@pytest.mark.parametrize("position", [0, 1, 2])
def test_an_error_of_what_is_no_number_is_none(position: int) -> None:
    row = [0.0, 1.0, 2.0]
    row[position] = NAN
    found = SoftmaxError().row_losses(float32([0, 1, 2], row), float32(0, 2))
    np.testing.assert_array_equal(found, float32(1, NAN))


# ------------------------------------------------------------------------------------------ auc


def test_the_area_is_finished_from_ranked_weights() -> None:
    # weights (first, second) per distinct prediction, ascending: 1*3 pairs of (1 + 2) * 3 in order,
    # and 2 * 3 tied
    assert AreaUnderCurve().finish(OrderedPairs(9, 9, True)) == 0.5
    assert AreaUnderCurve().finish(OrderedPairs(12, 9, True)) == 2 / 3
    assert math.isnan(AreaUnderCurve().finish(OrderedPairs(0, 0, True)))
