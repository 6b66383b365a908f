"""Metrics: float32 losses of the rows, their exact integer sum, and the number in the history."""

from fractions import Fraction

import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.forests import leaf_tree
from support.lockstep import in_lockstep
from support.ranks import run_ranks
from support.runs import MANY_ROWS, integer_thresholds, run_settings

from torchgbdt.core.backend import ComputeBackend, LossSum, RunRows
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.metrics import MeanAbsoluteError, RootMeanSquaredError

METRICS = {"rmse": RootMeanSquaredError, "mae": MeanAbsoluteError}
every_metric = pytest.mark.parametrize("name", METRICS)


def rows_of(labels, weights=None, total_rows: int | None = None) -> RunRows:
    y = np.asarray(labels, np.float32)
    w = None if weights is None else np.asarray(weights, np.float32)
    bins = np.zeros((y.size, 1), np.uint8)
    return RunRows(bins, y, w, None, y.size if total_rows is None else total_rows)


def prepared(backend: ComputeBackend, *data: RunRows) -> ComputeBackend:
    constant = data[0].weights is None
    backend.prepare(data[0], data[1:], run_settings(integer_thresholds([1]), constant=constant))
    return backend


def evaluate(backend: ComputeBackend, name: str, dataset: int = 0) -> LossSum:
    return backend.evaluate(METRICS[name](), dataset, SINGLE_RANK)


def value(sum_: LossSum) -> Fraction:
    return Fraction(sum_.total) / Fraction(2) ** sum_.scale


def test_squared_losses_by_hand(backend: ComputeBackend) -> None:
    # e = 0 - label: e^2 = 1, 4, 0.25; 1 -> scale so that 4 = 2^2 * 1 keeps all bits
    prepared(backend, rows_of([1.0, -2.0, 0.5]))
    found = evaluate(backend, "rmse")
    # the largest loss is 4 = 0.5 * 2^3; 3 rows leave 62 - 2 = 60 bits: scale 60 - 3 = 57
    assert (found.total, found.scale, found.finite) == (21 * 2**55, 57, True)


def test_absolute_losses_with_weights_by_hand(backend: ComputeBackend) -> None:
    prepared(backend, rows_of([1.0, -2.0, 0.5], [2.0, 0.25, 4.0]))
    assert value(evaluate(backend, "mae")) == Fraction("4.5")  # 2 + 0.5 + 2


@every_metric
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_rows", [0, 1, 50, MANY_ROWS])
def test_sums_of_any_number_of_rows(
    under_test: BackendUnderTest, name: str, weighted: bool, n_rows: int
) -> None:
    rng = np.random.default_rng(n_rows)
    labels = rng.normal(size=n_rows) * 10.0 ** rng.uniform(-15, 10, n_rows)
    weights = 10.0 ** rng.uniform(-6, 6, n_rows) if weighted else None
    found = evaluate(prepared(in_lockstep(under_test), rows_of(labels, weights)), name)
    assert found.finite and (found.total > 0) == (n_rows > 0)


def test_each_data_set_has_its_own_sum(backend: ComputeBackend) -> None:
    prepared(backend, rows_of([1.0, 1.0]), rows_of([3.0]), rows_of([5.0], [2.0]))
    assert [value(evaluate(backend, "mae", i)) for i in range(3)] == [2, 3, 10]


@every_metric
def test_losses_follow_the_predictions(under_test: BackendUnderTest, name: str) -> None:
    backend = prepared(in_lockstep(under_test), rows_of([1.0, 3.0]), rows_of([2.0]))
    backend.update_predictions(leaf_tree(np.array([2.0])), 0)
    assert [value(evaluate(backend, name, i)) for i in range(2)] == [2, 0]


@pytest.mark.parametrize(
    ("labels", "weights"),
    [([1.0, 1e30], None), ([1.0, 1e15], [1.0, 1e20])],
    ids=["squared", "weighted"],
)
def test_a_loss_beyond_float32_is_no_error(under_test: BackendUnderTest, labels, weights) -> None:
    found = evaluate(prepared(in_lockstep(under_test), rows_of(labels, weights)), "rmse")
    assert (found.total, found.scale, found.finite) == (0, 0, False)


def test_a_loss_that_is_not_a_number_is_no_error(under_test: BackendUnderTest) -> None:
    backend = prepared(in_lockstep(under_test), rows_of([3e38, 1.0]))
    for _ in range(2):
        backend.update_predictions(leaf_tree(np.array([3e38])), 0)
    backend.update_predictions(leaf_tree(np.array([-3e38])), 0)
    assert not evaluate(backend, "mae").finite


def test_a_loss_below_the_smallest_normal_number_is_zero(backend: ComputeBackend) -> None:
    # (2^-64)^2 = 2^-128 is subnormal, (2^-63)^2 = 2^-126 is not
    for label, largest in ((2.0**-64, 0.0), (2.0**-63, 2.0**-126)):
        prepared(backend, rows_of([label]))
        assert backend.compute_losses(METRICS["rmse"](), 0) == (largest, True)
        backend.release()


@every_metric
def test_a_residual_that_becomes_subnormal_is_no_loss(backend: ComputeBackend, name: str) -> None:
    # 2^-126 - 1.5 * 2^-126 = -2^-127; times 2^100 it would count
    prepared(backend, rows_of([1.5 * 2.0**-126], [2.0**100]))
    backend.update_predictions(leaf_tree(np.array([2.0**-126])), 0)
    assert backend.compute_losses(METRICS[name](), 0) == (0.0, True)


def test_losses_too_small_for_the_scale_round_to_even(backend: ComputeBackend) -> None:
    # the largest loss 2^59 takes all 61 bits of one row's share of 3: scale 60 - 60 = 0
    prepared(backend, rows_of([2.0**59, 0.5, 1.5]))
    assert evaluate(backend, "mae").total == 2**59 + 0 + 2


@every_metric
@pytest.mark.parametrize("borders", [(0, 1, 40), (0, 0, 40), (0, 20, 21, 40)], ids=str)
def test_ranks_share_one_sum(under_test: BackendUnderTest, name: str, borders) -> None:
    rng = np.random.default_rng(7)
    labels, weights = rng.normal(size=40), rng.random(40)

    def work(communicator: Communicator) -> LossSum:
        mine = slice(*borders[communicator.rank : communicator.rank + 2])
        backend = prepared(in_lockstep(under_test), rows_of(labels[mine], weights[mine], 40))
        return backend.evaluate(METRICS[name](), 0, communicator)

    expected = evaluate(prepared(under_test.make_reference(), rows_of(labels, weights)), name)
    assert run_ranks(len(borders) - 1, work) == [expected] * (len(borders) - 1)


def test_one_rank_with_an_infinite_loss_is_infinite_on_all(under_test: BackendUnderTest) -> None:
    def work(communicator: Communicator) -> LossSum:
        label = 1e30 if communicator.rank == 1 else 1.0
        backend = prepared(in_lockstep(under_test), rows_of([label], total_rows=2))
        return backend.evaluate(METRICS["rmse"](), 0, communicator)

    assert run_ranks(2, work) == [LossSum(0, 0, False)] * 2
