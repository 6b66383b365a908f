"""The life of a run on a backend: prepare, release, what it says about itself."""

import json
from collections.abc import Callable

import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.exact import assert_identical
from support.forests import leaf_tree, random_forest
from support.runs import integer_thresholds, run_rows, run_settings, train
from support.scenarios import scenario

from torchgbdt.core.backend import NODE_DTYPE, ComputeBackend, LevelBatch, RunRows
from torchgbdt.core.communicator import SINGLE_RANK
from torchgbdt.core.errors import StateError
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.metrics import RootMeanSquaredError
from torchgbdt.core.splits import SPLIT_DTYPE, SplitRules

BATCH = LevelBatch(np.array([(0, 3, 3, 0, 0, -1, True)], NODE_DTYPE), np.zeros((1, 1, 2), np.int64))
RULES = SplitRules(1.0, 0.0, 1, np.ones(1, np.int64), np.zeros((1, 2), np.int64))
ZEROS = np.zeros((3, 1), np.float32)
RMSE = RootMeanSquaredError()

CALLS_OF_A_RUN: dict[str, Callable[[ComputeBackend], object]] = {
    "sample_rows": lambda b: b.sample_rows(0),
    "compute_gradients": lambda b: b.compute_gradients(0),
    "load_gradients": lambda b: b.load_gradients(ZEROS, ZEROS),
    "round_gradients": lambda b: b.round_gradients(np.zeros((1, 2), np.int64)),
    "build_histograms": lambda b: b.build_histograms(BATCH),
    "exchange_histograms": lambda b: b.exchange_histograms(BATCH, SINGLE_RANK),
    "read_histograms": lambda b: b.read_histograms(BATCH),
    "find_splits": lambda b: b.find_splits(BATCH, RULES),
    "search_level": lambda b: b.search_level(BATCH, RULES, SINGLE_RANK, True),
    "run_settings": lambda b: b.run_settings(),
    "run_rows": lambda b: b.run_rows(0),
    "route_rows": lambda b: b.route_rows(BATCH.nodes, np.zeros(1, SPLIT_DTYPE)),
    "update_predictions": lambda b: b.update_predictions(leaf_tree(np.ones(1)), 0),
    "compute_losses": lambda b: b.compute_losses(RMSE, 0),
    "sum_losses": lambda b: b.sum_losses(0),
    "evaluate": lambda b: b.evaluate(RMSE, 0, SINGLE_RANK),
    "rank_rows": lambda b: b.rank_rows(0, 0),
    "read_predictions": lambda b: b.read_predictions(0),
    "read_gradients": lambda b: b.read_gradients(),
    "read_fixed_point": lambda b: b.read_fixed_point(),
    "read_row_order": lambda b: b.read_row_order(),
}


def small_run(backend: ComputeBackend, n_rows: int = 3) -> None:
    bins = np.zeros((n_rows, 1), np.uint8)
    backend.prepare(run_rows(bins), [], run_settings(integer_thresholds([2])))


@pytest.mark.parametrize("call", CALLS_OF_A_RUN)
def test_calls_of_a_run_need_a_run(backend: ComputeBackend, call: str) -> None:
    with pytest.raises(StateError):
        CALLS_OF_A_RUN[call](backend)


@pytest.mark.parametrize("call", CALLS_OF_A_RUN)
def test_calls_of_a_run_after_release(backend: ComputeBackend, call: str) -> None:
    small_run(backend)
    backend.sample_rows(0)
    backend.release()
    with pytest.raises(StateError):
        CALLS_OF_A_RUN[call](backend)


def test_release_may_be_called_at_any_time(backend: ComputeBackend) -> None:
    backend.release()
    small_run(backend)
    backend.release()
    backend.release()


def test_a_new_run_starts_from_nothing(backend: ComputeBackend) -> None:
    small_run(backend, 5)
    backend.update_predictions(leaf_tree(np.ones(1)), 0)
    backend.release()
    small_run(backend, 3)
    assert backend.read_predictions(0).tolist() == [[0.0]] * 3
    assert backend.sample_rows(0) == 3


def test_a_run_knows_what_it_was_told(backend: ComputeBackend) -> None:
    thresholds = integer_thresholds([2, 3])
    train_rows, valid = run_rows(np.zeros((4, 2))), run_rows(np.zeros((2, 2)))
    train_rows = RunRows(train_rows.bins, train_rows.labels, None, None, total_rows=100)
    settings = run_settings(thresholds)
    backend.prepare(train_rows, [valid], settings)
    assert [backend.run_rows(i).total_rows for i in range(2)] == [100, 2]
    assert_identical([backend.run_rows(0), backend.run_rows(1)], [train_rows, valid])
    assert backend.run_settings() is settings


def test_read_only_rows_are_only_read(backend: ComputeBackend) -> None:
    rng = np.random.default_rng(1)
    bins = rng.integers(0, 3, (50, 2)).astype(np.uint8)
    labels, weights = rng.random((2, 50)).astype(np.float32)
    for array in (bins, labels, weights):
        array.setflags(write=False)
    backend.prepare(run_rows(bins, labels, weights), [], run_settings(integer_thresholds([3, 3])))
    backend.sample_rows(0)
    assert backend.compute_gradients(0).finite


def test_predicting_and_binning_do_not_disturb_a_run(under_test: BackendUnderTest) -> None:
    backend = under_test.make()
    X = np.random.default_rng(2).normal(size=(30, 2))
    forest = random_forest(np.random.default_rng(3), [[0.0], [0.5]])

    class Busy:
        def __getattr__(self, event: str) -> Callable[[object], None]:
            return self.work

        def work(self, context: object) -> None:
            backend.predict(forest, HostMatrix(X), np.zeros((30, 1), np.float32))
            backend.bin_features(HostMatrix(X), None, integer_thresholds([2, 2]))

    found = train(backend, scenario("plain"), [Busy()])
    expected = train(under_test.make(), scenario("plain"))
    assert found.model.digest() == expected.model.digest()


def test_a_backend_says_what_it_is(under_test: BackendUnderTest) -> None:
    backend = under_test.make()
    facts = backend.diagnostics()
    assert facts["backend"] == backend.name == under_test.name
    assert facts["device"] == "cpu" and facts["n_threads"] >= 1
    assert json.loads(json.dumps(facts)) == facts  # plain values that may be logged


def test_a_session_says_what_happened(under_test: BackendUnderTest) -> None:
    facts = train(under_test.make(), scenario("plain")).session.diagnostics()
    assert facts["state"] == "completed" and facts["backend"] == under_test.name
    assert (facts["n_rows"], facts["n_features"]) == (240, 4)
    assert facts["histogram_slots"] >= 1
    phases = {"binning", "prepare", "gradients", "search_level", "route_rows"}
    assert facts["seconds"].keys() >= phases | {"update_predictions", "evaluate"}
    assert all(seconds >= 0 for seconds in facts["seconds"].values())
    assert json.loads(json.dumps(facts)) == facts
