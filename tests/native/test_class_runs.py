"""Runs on classes: what softmax trees share is current, and arrays that do not fit are refused."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.exact import assert_identical
from support.forests import leaf_tree
from support.runs import integer_thresholds

from torchgbdt import _native
from torchgbdt.backends.native import NativeBackend
from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.backend import ComputeBackend, RunRows, RunSettings
from torchgbdt.core.errors import BackendError
from torchgbdt.core.metrics import LogisticLoss, RootMeanSquaredError, SoftmaxLoss
from torchgbdt.core.objectives import Logistic, Objective, Softmax

N_ROWS, N_CLASSES = 600, 3
RNG = np.random.default_rng(8)
SUMS = RNG.normal(size=(N_ROWS, N_CLASSES)).astype(np.float32)
LABELS = RNG.integers(0, N_CLASSES, N_ROWS).astype(np.float32)
BASELINE = np.array([0.1, -2.0, 1e-9])


def rows(**fields: Any) -> RunRows:
    plain = RunRows(np.zeros((N_ROWS, 1), np.uint8), LABELS, None, None, N_ROWS)
    return replace(plain, **fields)


def settings(objective: Objective | None = None, baseline: np.ndarray = BASELINE) -> RunSettings:
    objective = Softmax(N_CLASSES) if objective is None else objective
    return RunSettings(integer_thresholds([1]), objective, baseline, 1, False, 1)


def prepared(backend: ComputeBackend, train: RunRows) -> ComputeBackend:
    backend.prepare(train, [], settings())
    backend.sample_rows(0)
    return backend


def gradients(backend: ComputeBackend, output: int) -> tuple[np.ndarray, np.ndarray]:
    backend.compute_gradients(output)
    return backend.read_gradients()


@pytest.fixture
def terms_computed(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Grows by one each time that softmax terms are computed."""
    calls: list[None] = []
    kernel: Callable[..., None] = _native.compute_softmax_terms

    def counting(*arguments: Any) -> None:
        calls.append(None)
        kernel(*arguments)

    monkeypatch.setattr(_native, "compute_softmax_terms", counting)
    return calls


def test_trees_of_a_round_share_the_softmax_terms(terms_computed: list[None]) -> None:
    backend = prepared(NativeBackend(2), rows())
    for n_rounds in (1, 2):
        for output in range(N_CLASSES):
            backend.compute_gradients(output)
        assert len(terms_computed) == n_rounds
        for output in range(N_CLASSES):
            backend.update_predictions(leaf_tree(np.array([0.5])), output)


@pytest.mark.parametrize("margins", [None, SUMS[::-1]], ids=["plain", "margins"])
def test_gradients_follow_the_predictions_in_any_order_of_outputs(
    margins: np.ndarray | None,
) -> None:
    train = rows(start=SUMS, margins=margins)
    native, oracle = prepared(NativeBackend(2), train), prepared(OracleBackend(), train)
    for output in (2, 0, 1, 0):
        assert_identical(gradients(native, output), gradients(oracle, output))
        for backend in (native, oracle):
            backend.update_predictions(leaf_tree(np.array([0.25 - output])), output)
    again = rows(start=-SUMS)  # the terms of one run are none of the next
    assert_identical(gradients(prepared(native, again), 1), gradients(prepared(oracle, again), 1))


def test_gradients_of_weighted_rows_in_any_layout() -> None:
    weights = np.repeat(RNG.random(N_ROWS).astype(np.float32), 2)[::2]
    train = rows(
        labels=np.repeat(LABELS, 2)[::2],
        weights=weights,
        margins=np.asfortranarray(SUMS),
        start=SUMS[:, ::-1],
    )
    native, oracle = prepared(NativeBackend(2), train), prepared(OracleBackend(), train)
    for output in range(N_CLASSES):
        assert_identical(gradients(native, output), gradients(oracle, output))


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("labels", LABELS[1:]),
        ("labels", LABELS[:, None]),
        ("weights", LABELS[1:]),
        ("margins", SUMS[:, :2]),
        ("margins", SUMS[:, 0]),
        ("start", SUMS[1:]),
        ("start", SUMS.T),
    ],
)
def test_arrays_of_other_sizes_are_refused(name: str, array: np.ndarray) -> None:
    backend = NativeBackend(1)
    for train, valids in ((rows(**{name: array}), []), (rows(), [rows(**{name: array})])):
        with pytest.raises(BackendError, match=f"{name} must have shape"):
            backend.prepare(train, valids, settings())
    prepared(backend, rows())


@pytest.mark.parametrize("shape", [(2,), (3, 1), ()])
def test_baseline_has_one_number_per_output(shape: tuple[int, ...]) -> None:
    with pytest.raises(BackendError, match="baseline"):
        NativeBackend(1).prepare(rows(), [], settings(baseline=np.zeros(shape)))


@pytest.mark.parametrize("output", [-1, N_CLASSES])
def test_outputs_that_do_not_exist_have_no_gradients(output: int) -> None:
    with pytest.raises(BackendError, match=f"output {output}"):
        prepared(NativeBackend(1), rows()).compute_gradients(output)


def test_metrics_read_the_predictions_of_their_objective_alone() -> None:
    backend = NativeBackend(1)
    prepared(backend, rows())
    assert backend.compute_losses(SoftmaxLoss(), 0)[1]
    for metric in (RootMeanSquaredError(), LogisticLoss()):
        with pytest.raises(BackendError, match=metric.name):
            backend.compute_losses(metric, 0)


def test_labels_that_are_no_class_make_the_loss_not_finite() -> None:
    labels = LABELS.copy()
    labels[17] = N_CLASSES
    backend = prepared(NativeBackend(1), rows(labels=labels))
    assert backend.compute_losses(SoftmaxLoss(), 0) == (0.0, False)


def test_logistic_runs_have_no_softmax_terms(terms_computed: list[None]) -> None:
    backend = NativeBackend(1)
    backend.prepare(rows(), [], settings(Logistic(), BASELINE[:1]))
    backend.compute_gradients(0)
    assert not terms_computed
    assert backend.run.softmax_terms is None
