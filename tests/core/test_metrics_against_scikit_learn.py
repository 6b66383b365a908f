"""Every metric, on a prepared run, against scikit-learn's.

Weights, labels and predictions are such that scikit-learn's sums are exact: 64 rows, and weights of
quarters that sum to 64. Only logarithms are not; see ``tolerances``.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics
from support.runs import integer_thresholds
from support.tolerances import PORTABLE_MATH_ULPS

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.backend import RunRows, RunSettings
from torchgbdt.core.communicator import SINGLE_RANK
from torchgbdt.core.metrics import make_metrics
from torchgbdt.core.objectives import find_objective
from torchgbdt.core.probabilities import probabilities
from torchgbdt.core.ranking import weight_scale
from torchgbdt.core.rounds import EvaluatedSet, Evaluation

N_ROWS = 64
RNG = np.random.default_rng(7)

WEIGHTS = RNG.permutation(np.repeat([0.25, 0.75, 1.0, 2.0], N_ROWS // 4))
RAW = RNG.permutation(np.repeat(np.arange(-4, 4) / 2, N_ROWS // 8))
TARGETS = RNG.permutation(np.repeat([0.0, 8.0], N_ROWS // 2))
TWO = RNG.permutation(np.repeat([0, 1], N_ROWS // 2))
FOUR = RNG.permutation(np.repeat([0, 1, 2, 3], N_ROWS // 4))
RAW_OF_FOUR = RNG.integers(-8, 8, (N_ROWS, 4)) / 4

every_weight = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])


def variance(y: np.ndarray, weights: np.ndarray | None) -> Fraction:
    w = [Fraction(1.0 if weights is None else weights[row]) for row in range(N_ROWS)]
    mean = sum(a * b for a, b in zip(w, map(Fraction, y), strict=True)) / sum(w)
    return sum(a * (b - mean) ** 2 for a, b in zip(w, map(Fraction, y), strict=True)) / sum(w)


def evaluate(
    name: str, objective: str, raw: np.ndarray, y: np.ndarray, weights: np.ndarray | None
) -> float:
    """The metric of a run that starts at these raw predictions."""
    n_classes = raw.shape[1] if objective == "softmax" else 2
    one = find_objective(objective).for_classes(n_classes)
    backend = OracleBackend()
    w = None if weights is None else weights.astype(np.float32)
    rows = RunRows(
        np.zeros((N_ROWS, 1), np.uint8),
        y.astype(np.float32),
        w,
        None,
        N_ROWS,
        raw.astype(np.float32),
    )
    thresholds = integer_thresholds([1])
    backend.prepare(rows, [], RunSettings(thresholds, one, np.zeros(one.n_outputs), 1, False, 1))
    total = Fraction(float(N_ROWS if weights is None else weights.sum()))
    largest = 1.0 if weights is None else float(weights.max())
    data = EvaluatedSet(0, total, variance(y, weights), weight_scale(largest, N_ROWS))
    metric = make_metrics((name,), type(one))
    evaluation = Evaluation(backend, SINGLE_RANK, metric, {"train": data})
    evaluation.record()
    (found,) = evaluation.history["train"][name]
    return found


def test_the_data_is_as_it_says() -> None:
    assert WEIGHTS.sum() == N_ROWS
    assert len(set(RAW)) == 8 and len({*RAW_OF_FOUR.reshape(-1)}) == 16


@every_weight
def test_squared_and_absolute_errors(weights: np.ndarray | None) -> None:
    def found(name: str) -> float:
        return evaluate(name, "squared_error", RAW[:, None], TARGETS, weights)

    given: dict[str, Any] = {"sample_weight": weights}
    assert found("rmse") == sklearn_metrics.root_mean_squared_error(TARGETS, RAW, **given)
    assert found("mae") == sklearn_metrics.mean_absolute_error(TARGETS, RAW, **given)


def test_r2_of_a_variance_that_is_a_power_of_two() -> None:
    assert variance(TARGETS, None) == 16
    found = evaluate("r2", "squared_error", RAW[:, None], TARGETS, None)
    assert found == sklearn_metrics.r2_score(TARGETS, RAW)
    assert found < 0
    assert evaluate("r2", "squared_error", TARGETS[:, None] - 1, TARGETS, None) == 1 - 1 / 16


@pytest.mark.parametrize(("error", "expected"), [(0.0, 1.0), (0.5, 0.0)])
def test_r2_of_targets_that_do_not_vary(error: float, expected: float) -> None:
    constant = np.full(N_ROWS, 3.0)
    predictions = constant + error * (np.arange(N_ROWS) % 2)
    assert sklearn_metrics.r2_score(constant, predictions) == expected
    found = evaluate("r2", "squared_error", predictions[:, None], constant, None)
    assert found == expected


@every_weight
def test_shares_of_wrong_classes(weights: np.ndarray | None) -> None:
    right = sklearn_metrics.accuracy_score(TWO, RAW > 0, sample_weight=weights)
    assert evaluate("error", "logistic", RAW[:, None], TWO, weights) == 1 - right
    likeliest = RAW_OF_FOUR.argmax(axis=1)
    right = sklearn_metrics.accuracy_score(FOUR, likeliest, sample_weight=weights)
    assert evaluate("error", "softmax", RAW_OF_FOUR, FOUR, weights) == 1 - right


def test_area_under_the_curve() -> None:
    # 32 rows of each class: scikit-learn's rates are multiples of 1/32.
    found = evaluate("auc", "logistic", RAW[:, None], TWO, None)
    assert found == sklearn_metrics.roc_auc_score(TWO, RAW)
    assert 0 < found < 1


@every_weight
def test_logarithmic_losses(weights: np.ndarray | None) -> None:
    # exp, log1p, and at most as many roundings as there are classes and steps; scikit-learn's own
    # are far smaller.
    limit = (2 * PORTABLE_MATH_ULPS + 4) * 2.0**-23
    for objective, raw, y in (("logistic", RAW[:, None], TWO), ("softmax", RAW_OF_FOUR, FOUR)):
        shares = probabilities(objective, raw.astype(np.float32), np.float64)
        expected = sklearn_metrics.log_loss(y, shares, sample_weight=weights)
        found = evaluate("logloss", objective, raw, y, weights)
        assert abs(found - expected) <= limit * expected
