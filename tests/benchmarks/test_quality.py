"""Test metrics, and answers that are refused before their time counts."""

import math
from dataclasses import replace

import numpy as np
import pytest
from quality import WrongAnswerError, checked_metric, metric_of, metric_of_constant
from workloads import FULL

REGRESSION, SOFTMAX, LOGISTIC = FULL["W1"], replace(FULL["W5"], n_classes=4), FULL["W6"]
LABELS = np.array([0, 1, 1, 0], np.float32)


def test_rmse_by_hand() -> None:
    assert metric_of(REGRESSION, np.array([3, 1, 1, 4]), LABELS) == 2.5  # sqrt((9 + 16) / 4)


def test_log_loss_by_hand() -> None:
    probability_of_1 = np.array([0.5, 0.5, 0.25, 0.5])
    assert metric_of(LOGISTIC, probability_of_1, LABELS) == math.log(2) * 5 / 4
    assert metric_of(SOFTMAX, np.full((4, 4), 0.25), LABELS) == math.log(4)


def test_a_probability_of_0_is_no_infinite_loss() -> None:
    assert math.isfinite(metric_of(LOGISTIC, np.array([1, 0, 0, 1]), LABELS))


def test_constants_by_hand() -> None:
    assert metric_of_constant(REGRESSION, LABELS) == 0.5
    assert metric_of_constant(LOGISTIC, LABELS) == math.log(2)


@pytest.mark.parametrize(
    ("predicted", "message"),
    [
        (np.zeros((4, 1)), "shape"),
        (np.array([0, 1, np.nan, 0]), "not finite"),
        (np.full(4, 0.5), "not below 0.45"),  # the constant itself has 0.5
    ],
)
def test_what_was_not_learned_is_refused(predicted: np.ndarray, message: str) -> None:
    with pytest.raises(WrongAnswerError, match=message):
        checked_metric(REGRESSION, predicted, LABELS)


def test_what_was_learned_has_its_metric() -> None:
    assert checked_metric(REGRESSION, LABELS, LABELS) == 0
