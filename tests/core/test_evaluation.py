"""Metrics after each round: what is asked of the backend, and what the history is told."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.ranks import run_ranks

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.backend import LossSum
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.metrics import (
    AreaUnderCurve,
    LogisticLoss,
    MeanAbsoluteError,
    Metric,
    RootMeanSquaredError,
    RSquared,
)
from torchgbdt.core.ranking import RankedWeights, rank_rows
from torchgbdt.core.rounds import EvaluatedSet, Evaluation

NAN = float("nan")


def one_set(
    index: int = 0, weight: float = 1, variance: Fraction = Fraction(0), scale: int = 0
) -> EvaluatedSet:
    return EvaluatedSet(index, Fraction(weight), variance, scale)


class Answers(OracleBackend):
    """Answers with given sums and rankings: (metric name or "auc", data set) -> what it is."""

    def __init__(self, answers: dict[tuple[str, int], Any]) -> None:
        super().__init__()
        self.answers = answers
        self.scales: list[int] = []

    def evaluate(self, metric: Any, dataset: int, communicator: Communicator) -> LossSum:
        return self.answers[metric.name, dataset]

    def rank_rows(self, dataset: int, scale: int) -> RankedWeights:
        self.scales.append(scale)
        return self.answers["auc", dataset]


def recorded(
    answers: dict[tuple[str, int], Any],
    metrics: Sequence[Metric],
    data: EvaluatedSet,
    communicator: Communicator = SINGLE_RANK,
) -> list[float]:
    """One value of each metric."""
    evaluation = Evaluation(Answers(answers), communicator, list(metrics), {"train": data})
    evaluation.record()
    return [evaluation.history["train"][metric.name][0] for metric in metrics]


def ranking(x: Sequence[float], y: Sequence[int], scale: int = 0) -> RankedWeights:
    return rank_rows(np.array(x, np.float32), np.array(y, np.float32), None, scale)


# ---------------------------------------------------------------------------------- mean losses


def test_metrics_of_each_data_set_are_recorded_round_by_round() -> None:
    backend = Answers(
        {
            ("rmse", 0): LossSum(36, 2, True),  # 36 / 4 / 4 = 9/4
            ("mae", 0): LossSum(6, 0, True),
            ("rmse", 2): LossSum(0, 0, True),
            ("mae", 2): LossSum(1, -1, True),  # 1 * 2 / 5
        }
    )
    datasets = {"train": one_set(0, 4), "valid_1": one_set(2, 5)}
    metrics: list[Metric] = [RootMeanSquaredError(), MeanAbsoluteError()]
    evaluation = Evaluation(backend, SINGLE_RANK, metrics, datasets)
    empty: dict[str, Any] = {name: {"rmse": [], "mae": []} for name in datasets}
    assert evaluation.history == empty
    evaluation.record()
    first = {
        "train": {"rmse": [1.5], "mae": [1.5]},
        "valid_1": {"rmse": [0.0], "mae": [0.4]},
    }
    assert evaluation.history == first
    backend.answers["rmse", 0] = LossSum(4, 0, True)
    evaluation.record()
    assert evaluation.history["train"]["rmse"] == [1.5, 1.0]


@pytest.mark.parametrize(
    ("metric", "worst"),
    [
        (RootMeanSquaredError(), np.inf),
        (MeanAbsoluteError(), np.inf),
        (LogisticLoss(), np.inf),
        (RSquared(), -np.inf),
    ],
)
def test_a_loss_that_is_not_finite_makes_the_metric_the_worst_there_is(
    metric: Metric, worst: float
) -> None:
    assert recorded({(metric.name, 0): LossSum(0, 0, False)}, [metric], one_set()) == [worst]


def test_r2_takes_the_variance_of_its_own_data_set() -> None:
    answers = {("r2", 0): LossSum(3, 1, True)}  # 3 / 2 / 4 = 3/8
    assert recorded(answers, [RSquared()], one_set(0, 4, Fraction(1, 2))) == [0.25]
    assert recorded(answers, [RSquared()], one_set(0, 4, Fraction(3))) == [0.875]


# ------------------------------------------------------------------------------------------ auc


def test_the_area_is_that_of_the_ranked_rows() -> None:
    data = one_set(3, scale=7)
    answers = {("auc", 3): ranking([1, 2, 3, 4], [0, 1, 0, 1], 7)}
    backend = Answers(answers)
    evaluation = Evaluation(backend, SINGLE_RANK, [AreaUnderCurve()], {"valid_2": data})
    evaluation.record()
    assert evaluation.history == {"valid_2": {"auc": [0.75]}}
    assert backend.scales == [7]


def test_the_area_without_a_class_is_nan_and_with_a_nan_the_worst_there_is() -> None:
    metric = [AreaUnderCurve()]
    assert np.isnan(recorded({("auc", 0): ranking([1, 2], [1, 1])}, metric, one_set()))
    assert recorded({("auc", 0): ranking([1, NAN], [0, 1])}, metric, one_set()) == [-np.inf]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([([1, 3], [0, 0]), ([2, 4], [1, 1])], 0.75),
        ([([], []), ([1, 2, 3, 4], [0, 1, 0, 1])], 0.75),
        ([([2, 2], [0, 0]), ([2], [1])], 0.5),
        ([([2, NAN], [0, 0]), ([2], [1])], -np.inf),
        ([([2], [0]), ([NAN], [1])], -np.inf),
    ],
)
def test_the_area_is_that_of_the_rows_of_all_ranks(parts: list[Any], expected: float) -> None:
    def work(communicator: Communicator) -> list[float]:
        answers = {("auc", 0): ranking(*parts[communicator.rank])}
        return recorded(answers, [AreaUnderCurve()], one_set(), communicator)

    assert run_ranks(2, work) == [[expected]] * 2


def test_an_area_on_ranks_that_lack_a_class_each_is_an_area_all_the_same() -> None:
    def work(communicator: Communicator) -> list[float]:
        rank = communicator.rank
        answers = {("auc", 0): ranking([rank, rank], [rank, rank])}
        return recorded(answers, [AreaUnderCurve()], one_set(), communicator)

    assert run_ranks(2, work) == [[1.0]] * 2
    with_nan = run_ranks(
        2,
        lambda c: recorded({("auc", 0): ranking([c.rank], [1])}, [AreaUnderCurve()], one_set(), c),
    )
    assert np.isnan(with_nan).all()
