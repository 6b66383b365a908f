"""Baselines and variances of labelled data: exact sums over all ranks, rounded once."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from core.high_precision import log
from core.small_runs import labels, quantized, raw
from hypothesis import given
from hypothesis import strategies as st
from support.exact import assert_identical
from support.ranks import run_ranks

from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.quantized_data import total_weights
from torchgbdt.core.run_data import TrainingData

LARGEST = float(np.finfo(np.float32).max)

weights = st.floats(2.0**-126, LARGEST, width=32)


def baseline(
    data: TrainingData, given: float | None = None, objective: str = "squared_error"
) -> list[float]:
    fitted = quantized(data, objective=objective).fit_baseline(given, SINGLE_RANK)
    assert fitted.dtype == np.float64
    return fitted.tolist()


def test_baseline_is_the_mean_of_kept_rows_weighted() -> None:
    assert baseline(TrainingData(raw(4))) == [1.5]
    # (0 * 3 + 3 * 1) / 4; rows 1 and 2 do not count
    assert baseline(TrainingData(raw(4, weights=np.array([3, 0, 0, 1])))) == [0.75]


@pytest.mark.parametrize(
    ("objective", "n_outputs"), [("squared_error", 1), ("logistic", 1), ("softmax", 2)]
)
def test_a_given_baseline_is_taken_for_every_output(objective: str, n_outputs: int) -> None:
    data = labels([0, 0, 1])
    assert baseline(TrainingData(data), 7.25, objective) == [7.25] * n_outputs
    margins = np.ones((3, n_outputs))
    assert baseline(TrainingData(data, margins=margins), 7.25, objective) == [7.25] * n_outputs


@pytest.mark.parametrize(
    ("objective", "n_outputs"), [("squared_error", 1), ("logistic", 1), ("softmax", 2)]
)
def test_margins_replace_the_fitted_baseline(objective: str, n_outputs: int) -> None:
    data = TrainingData(labels([0, 0, 1]), margins=np.ones((3, n_outputs)))
    assert baseline(data, None, objective) == [0.0] * n_outputs


@pytest.mark.parametrize("weighted", [False, True])
def test_baseline_of_ranks_is_that_of_all_rows_bit_for_bit(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    y = 1e9 + rng.normal(size=9)
    weights = rng.random(9).astype(np.float32) if weighted else None
    parts = [slice(0, 2), slice(2, 2), slice(2, 9)] if not weighted else [slice(0, 2), slice(2, 9)]

    def work(communicator: Communicator) -> tuple[np.ndarray, list[Fraction]]:
        rows = parts[communicator.rank]
        own = y[rows]
        part = raw(own.size, y=own, weights=None if weights is None else weights[rows])
        data = TrainingData(part)
        fitted = quantized(data, communicator).fit_baseline(None, communicator)
        return fitted, total_weights(quantized(data, communicator), communicator)

    exact = [Fraction(1)] * 9 if weights is None else [Fraction(float(w)) for w in weights]
    mean = sum(Fraction(a) * w for a, w in zip(y.tolist(), exact, strict=True)) / sum(exact)
    for fitted, totals in run_ranks(len(parts), work):
        assert_identical(fitted, np.array([float(mean)]))
        assert totals == [sum(exact)]


# -------------------------------------------------------------------------------------- classes


def test_log_odds_by_hand() -> None:
    # Three of the first class for one of the second: ln(1/3) = -1.09861228866810969...
    assert baseline(TrainingData(labels([0, 0, 1, 0])), None, "logistic") == [-1.0986122886681098]
    assert baseline(TrainingData(labels([0, 1, 1, 0])), None, "logistic") == [0.0]
    # 1 * 1/4 for 1/2 + 1/2: ln(1/4); the row of weight 0 does not count
    one = labels([0, 1, 0, 1], np.array([0.5, 0.25, 0.5, 0]))
    assert baseline(TrainingData(one), None, "logistic") == [-1.3862943611198906]


def test_log_shares_by_hand() -> None:
    # Shares 1/2, 1/4, 1/4: -ln 2 = -0.693147180559945309..., -2 ln 2.
    expected = [-0.6931471805599453, -1.3862943611198906, -1.3862943611198906]
    assert baseline(TrainingData(labels([3, 7, 9, 3])), None, "softmax") == expected
    weighted = labels([3, 7, 9], np.array([2.0**60, 2.0**59, 2.0**59]))
    assert baseline(TrainingData(weighted), None, "softmax") == expected


@given(st.lists(st.tuples(st.integers(0, 3), weights), min_size=1, max_size=10), weights)
def test_log_odds_and_log_shares_are_rounded_once(
    rows: list[tuple[int, float]], first: float
) -> None:
    y = [0, 1, 2, 3, *(label for label, _ in rows)]
    w = [first, 1.0, first, 3.0, *(weight for _, weight in rows)]
    of_class = [Fraction(0)] * 4
    for label, weight in zip(y, w, strict=True):
        of_class[label] += Fraction(weight)
    found = baseline(TrainingData(labels(y, np.array(w))), None, "softmax")
    assert found == [float(log(one / sum(of_class))) for one in of_class]
    odds = (of_class[1] + of_class[3]) / (of_class[0] + of_class[2])
    two = labels([label % 2 for label in y], np.array(w))
    assert baseline(TrainingData(two), None, "logistic") == [float(log(odds))]


@pytest.mark.parametrize("objective", ["logistic", "softmax"])
@pytest.mark.parametrize("weighted", [False, True])
def test_baseline_of_ranks_is_that_of_all_classes_bit_for_bit(
    objective: str, weighted: bool
) -> None:
    # The ranks see different classes, the second one no row that counts at all.
    y = [np.array([4, 4]), np.array([2]), np.array([2, 4, 2])]
    w: list[Any] = [np.array([0.1, 3.7]), np.array([0.0]), np.array([1e-6, 1e6, 0.3])]
    if not weighted:
        y[1], w = np.zeros(0, np.int64), [None] * 3

    def work(communicator: Communicator) -> np.ndarray:
        one = TrainingData(labels(y[communicator.rank], w[communicator.rank]))
        return quantized(one, communicator, objective=objective).fit_baseline(None, communicator)

    everything = labels(np.concatenate(y), np.concatenate(w) if weighted else None)
    expected = baseline(TrainingData(everything), None, objective)
    assert [found.tolist() for found in run_ranks(3, work)] == [expected] * 3


# ------------------------------------------------------------------------------------- variance


def variance(y: list[float], weights: Any = None) -> Fraction:
    return quantized(TrainingData(raw(2), [labels(y, weights)])).label_variance(1, SINGLE_RANK)


def test_label_variance_by_hand() -> None:
    # mean 3/2; (9 + 1 + 1 + 9) / 4 / 4
    assert variance([0, 1, 2, 3]) == Fraction(5, 4)
    # weights 3 and 1: mean 1; (3 * 1 + 1 * 9) / 4; the last row does not count
    assert variance([0, 4, 9], np.array([3, 1, 0])) == 3
    assert variance([0.1, 0.1, 0.1]) == 0


@given(
    st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=8),
    st.sampled_from([0.0, 1e9, -1e12]),
    st.integers(-30, 30),
)
def test_label_variance_loses_nothing_to_an_offset(
    steps: list[int], offset: float, exponent: int
) -> None:
    # A mean that is a float64, and differences of few bits: float32 holds every one of them.
    unit = 2.0 ** (exponent if offset == 0 else 0)
    y = [offset + unit * step for step in (*steps, *(-step for step in steps))]
    exact = sum(Fraction(unit * step) ** 2 for step in steps) / len(steps)
    assert variance(y) == exact


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), weights), min_size=1, max_size=8))
def test_label_variance_is_that_of_targets_rounded_about_their_mean(
    rows: list[tuple[float, float]],
) -> None:
    y = [label if abs(label) >= 2.0**-126 else 0.0 for label, _ in rows]
    w = [Fraction(weight) for _, weight in rows]
    mean = float(sum(Fraction(a) * b for a, b in zip(y, w, strict=True)) / sum(w))
    rounded = [float(np.float32(label - mean)) for label in y]
    centred = [Fraction(c if abs(c) >= 2.0**-126 else 0) for c in rounded]
    first, second = (
        sum(c**power * b for c, b in zip(centred, w, strict=True)) / sum(w) for power in (1, 2)
    )
    assert variance(y, np.array([float(b) for b in w])) == second - first**2


def test_label_variance_is_that_of_all_ranks() -> None:
    parts = [[0.0, 1.0], [2.0], [3.0]]

    def work(communicator: Communicator) -> Fraction:
        one = labels(parts[communicator.rank])
        return quantized(TrainingData(one), communicator).label_variance(0, communicator)

    assert run_ranks(3, work) == [Fraction(5, 4)] * 3


def test_a_target_too_far_from_the_mean_is_refused_by_name_and_row() -> None:
    # The mean is (2 * -3e38 + 3e38) / 3 = -1e38, and 3e38 + 1e38 > 3.4e38.
    with pytest.raises(InvalidDataError) as caught:
        variance([0, -3e38, 3e38], np.array([0, 2, 1]))
    assert str(caught.value) == ("eval_set[0] y minus its mean exceeds float32 in row 2; scale y.")
