"""Losses of logistic and softmax at chosen raw predictions, and their sums."""

from fractions import Fraction
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.class_runs import class_rows, prepare_classes
from support.forests import leaf_tree
from support.lockstep import in_lockstep
from support.ranks import run_ranks
from support.runs import MANY_ROWS
from support.strategies import raw_predictions

from torchgbdt.core.backend import ComputeBackend, LossSum
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.metrics import (
    LogisticError,
    LogisticLoss,
    MeanLoss,
    SoftmaxError,
    SoftmaxLoss,
)

INF, NAN = np.inf, np.nan
LN2 = float(np.float32(0.6931472))
LOSSES: dict[str, type[MeanLoss]] = {
    "logistic logloss": LogisticLoss,
    "logistic error": LogisticError,
    "softmax logloss": SoftmaxLoss,
    "softmax error": SoftmaxError,
}
every_loss = pytest.mark.parametrize("name", LOSSES)


def losses_at(backend: ComputeBackend, metric: type[MeanLoss], raw: Any, codes: Any) -> list[float]:
    """The loss of each row: the largest one of a run of one row."""
    found = []
    for x, code in zip(raw, codes, strict=True):
        prepare_classes(backend, class_rows([x], [code]))
        loss, finite = backend.compute_losses(metric(), 0)
        found.append(loss if finite else INF)
    return found


def float32s(*values: float) -> list[float]:
    return np.array(values, np.float32).tolist()


# ------------------------------------------------------------------------------------ logistic


def test_logistic_loss_values(backend: ComputeBackend) -> None:
    # ln 2; ln(1 + e^-1) = 0.31326169, and 1 more on the wrong side; ln(1 + e^-17) = e^-17
    found = losses_at(backend, LogisticLoss, [0.0, 1.0, 1.0, -1.0, 17.0], [0, 1, 0, 0, 1])
    assert found == float32s(LN2, 0.3132617, 1.3132617, 0.3132617, 4.1399378e-08)


@pytest.mark.parametrize(("x", "right"), [(90.0, 0.0), (1e30, 0.0), (3e38, 0.0), (INF, 0.0)])
def test_logistic_loss_has_no_limit(backend: ComputeBackend, x: float, right: float) -> None:
    # e^-90 is below 2^-126; unlike gradients, the loss of a wrong prediction is not clamped
    found = losses_at(backend, LogisticLoss, [x, x, -x, -x], [1, 0, 0, 1])
    assert found == [right, *float32s(x), right, *float32s(x)]


def test_logistic_error_values(backend: ComputeBackend) -> None:
    # Even odds are the first class. Raw predictions decide, also where e^-x rounds to 1.
    raw = [0.0, -0.0, 2.0**-26, 2.0**-20, 5.0, INF, -INF, -(2.0**-149)]
    assert losses_at(backend, LogisticError, raw, [0] * 8) == [0, 0, 1, 1, 1, 1, 0, 0]
    assert losses_at(backend, LogisticError, raw, [1] * 8) == [1, 1, 0, 0, 0, 0, 1, 1]


def test_a_prediction_that_becomes_subnormal_is_even_odds(backend: ComputeBackend) -> None:
    # 1.5 * 2^-126 - 2^-126 = 2^-127 counts as 0, which is the first class
    prepare_classes(backend, class_rows([1.5 * 2.0**-126], [0]))
    backend.update_predictions(leaf_tree(np.array([-(2.0**-126)])), 0)
    assert backend.compute_losses(LogisticError(), 0) == (0.0, True)


# ------------------------------------------------------------------------------------- softmax


def test_softmax_loss_values(backend: ComputeBackend) -> None:
    # ln 2, ln 4; ln(1 + e^-1 + e^-2) = 0.40760596 and 1 and 2 more
    found = losses_at(backend, SoftmaxLoss, [[5.0, 5.0], [-3.0, -3.0]], [0, 1])
    assert found == [LN2] * 2
    assert losses_at(backend, SoftmaxLoss, [[0.0] * 4], [3]) == float32s(1.3862944)
    found = losses_at(backend, SoftmaxLoss, [[1.0, 0.0, -1.0]] * 3, [0, 1, 2])
    assert found == float32s(0.40760595, 1.4076059, 2.4076059)


def test_softmax_loss_has_no_limit(backend: ComputeBackend) -> None:
    # Terms are clamped at e^-86, distances are not; one beyond float32 is infinite.
    raw = [[100.0, 0.0, -100.0]] * 3 + [[3e38, -3e38]] * 2
    found = losses_at(backend, SoftmaxLoss, raw, [0, 1, 2, 0, 1])
    e86 = np.float32(4.4737793e-38)
    assert found == [float(2 * e86), 100.0, 200.0, float(e86), INF]


@pytest.mark.parametrize(
    ("raw", "code", "loss"),
    [
        ([INF, 0.0], 0, INF),  # inf - inf is no number
        ([INF, 0.0], 1, INF),
        ([0.0, -INF], 0, 4.4737793e-38),
        ([0.0, -INF], 1, INF),
        ([-INF, -INF], 0, INF),
        ([NAN, 0.0], 1, INF),
        ([0.0, NAN], 0, INF),
    ],
)
def test_softmax_loss_of_infinite_predictions(
    backend: ComputeBackend, raw: list[float], code: int, loss: float
) -> None:
    assert losses_at(backend, SoftmaxLoss, [raw], [code]) == float32s(loss)


def test_softmax_error_takes_the_first_of_a_tie(backend: ComputeBackend) -> None:
    tie = [[1.0, 2.0, 2.0], [2.0, 1.0, 2.0], [0.0, 0.0, 0.0]]
    assert losses_at(backend, SoftmaxError, tie, [1, 0, 0]) == [0, 0, 0]
    assert losses_at(backend, SoftmaxError, tie, [2, 2, 1]) == [1, 1, 1]
    # larger by less than float32 probabilities can tell: e^-2^-26 rounds to 1
    close = [[0.0, 2.0**-26], [0.0, 2.0**-20]]
    assert losses_at(backend, SoftmaxError, close, [0, 0]) == [1, 1]


@pytest.mark.parametrize(
    ("raw", "likeliest"),
    [([0.0, INF], 1), ([INF, INF], 0), ([-INF, 0.0], 1), ([-INF, -INF], 0), ([3e38, -3e38], 0)],
)
def test_softmax_error_of_infinite_predictions(
    backend: ComputeBackend, raw: list[float], likeliest: int
) -> None:
    found = losses_at(backend, SoftmaxError, [raw] * 2, [likeliest, 1 - likeliest])
    assert found == [0, 1]


# ----------------------------------------------------------------------------------------- both


@every_loss
@pytest.mark.parametrize("bad", [(NAN, 0.0), (0.0, NAN)])
def test_predictions_that_are_no_numbers_have_no_sum(
    under_test: BackendUnderTest, name: str, bad: tuple[float, float]
) -> None:
    raw = [0.0, NAN] if name.startswith("logistic") else [[0.0, 0.0], bad]
    backend = prepare_classes(in_lockstep(under_test), class_rows(raw, [0, 1]))
    assert backend.evaluate(LOSSES[name](), 0, SINGLE_RANK) == LossSum(0, 0, False)


@every_loss
def test_losses_are_weighted_in_float32(backend: ComputeBackend, name: str) -> None:
    # ln 2 or 1, times 2^-126 and 2^-125: ln 2 / 2 * 2^-125 is subnormal and counts as 0
    x = 0.0 if name.startswith("logistic") else [0.0, 0.0]
    loss = LN2 if name.endswith("logloss") else 1.0
    for weight, expected in ((8.0, 8 * loss), (2.0**-126, 0.0 if loss < 1 else 2.0**-126)):
        prepare_classes(backend, class_rows([x], [1], [weight]))
        assert backend.compute_losses(LOSSES[name](), 0) == (expected, True)


@every_loss
def test_a_weighted_loss_beyond_float32_has_no_sum(backend: ComputeBackend, name: str) -> None:
    raw = [-30.0] if name.startswith("logistic") else [[30.0, 0.0]]
    prepare_classes(backend, class_rows(raw, [1], [3e38]))
    assert backend.evaluate(LOSSES[name](), 0, SINGLE_RANK).finite == name.endswith("error")


def test_each_data_set_has_its_own_sum(backend: ComputeBackend) -> None:
    data = (class_rows(*part) for part in (([0.0], [1]), ([0.0, 0.0, 9.0], [1, 0, 1], [2, 3, 4])))
    prepare_classes(backend, *data)
    sums = [backend.evaluate(LogisticError(), i, SINGLE_RANK) for i in range(2)]
    assert [Fraction(one.total) / Fraction(2) ** one.scale for one in sums] == [1, 2]


def test_losses_follow_the_predictions(under_test: BackendUnderTest) -> None:
    data = (class_rows([[0.0, 0.0, 0.0]], [code]) for code in (2, 1))
    backend = prepare_classes(in_lockstep(under_test), *data)
    for output, value in enumerate((0.0, 200.0, 100.0)):
        backend.update_predictions(leaf_tree(np.array([value])), output)
    losses = [backend.compute_losses(SoftmaxLoss(), dataset)[0] for dataset in range(2)]
    assert losses == [100.0, float(2 * np.float32(4.4737793e-38))]


@every_loss
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_rows", [0, 1, 50, MANY_ROWS])
def test_sums_of_any_number_of_rows(
    under_test: BackendUnderTest, name: str, weighted: bool, n_rows: int
) -> None:
    rng = np.random.default_rng(n_rows)
    n_outputs = 1 if name.startswith("logistic") else 3
    raw = 10 * rng.normal(size=(50, n_outputs))[rng.integers(0, 50, n_rows)]
    weights = 2.0 ** rng.integers(-20, 20, n_rows) if weighted else None
    rows = class_rows(raw, rng.integers(0, max(n_outputs, 2), n_rows), weights)
    found = prepare_classes(in_lockstep(under_test), rows).evaluate(LOSSES[name](), 0, SINGLE_RANK)
    assert found.finite and (n_rows < 2 or found.total > 0)


@pytest.mark.parametrize("n_outputs", [2, 5, 30])
def test_losses_of_any_number_of_classes(under_test: BackendUnderTest, n_outputs: int) -> None:
    rng = np.random.default_rng(n_outputs)
    raw = 3 * rng.normal(size=(40, n_outputs))
    rows = class_rows(raw, rng.integers(0, n_outputs, 40), rng.random(40))
    backend = prepare_classes(in_lockstep(under_test), rows)
    for metric in (SoftmaxLoss(), SoftmaxError()):
        backend.evaluate(metric, 0, SINGLE_RANK)


@every_loss
@pytest.mark.parametrize("borders", [(0, 1, 40), (0, 0, 40), (0, 20, 21, 40)], ids=str)
def test_ranks_share_one_sum(under_test: BackendUnderTest, name: str, borders) -> None:
    rng = np.random.default_rng(7)
    n_outputs = 1 if name.startswith("logistic") else 3
    raw, codes, weights = rng.normal(size=(40, n_outputs)), np.arange(40) % 2, rng.random(40)

    def of_rows(rows: slice, make: Any, communicator: Communicator) -> LossSum:
        share = class_rows(raw[rows], codes[rows], weights[rows], total_rows=40)
        return prepare_classes(make(), share).evaluate(LOSSES[name](), 0, communicator)

    def work(communicator: Communicator) -> LossSum:
        mine = slice(*borders[communicator.rank : communicator.rank + 2])
        return of_rows(mine, lambda: in_lockstep(under_test), communicator)

    expected = of_rows(slice(0, 40), under_test.make_reference, SINGLE_RANK)
    assert run_ranks(len(borders) - 1, work) == [expected] * (len(borders) - 1)


@hypothesis.given(data=st.data(), n_outputs=st.sampled_from([1, 2, 3, 6]))
def test_any_predictions_and_weights(
    under_test: BackendUnderTest, data: st.DataObject, n_outputs: int
) -> None:
    raw, codes, weights = data.draw(raw_predictions(n_outputs))
    backend = prepare_classes(in_lockstep(under_test), class_rows(raw, codes, weights))
    for metric in (LogisticLoss, LogisticError) if n_outputs == 1 else (SoftmaxLoss, SoftmaxError):
        backend.evaluate(metric(), 0, SINGLE_RANK)
