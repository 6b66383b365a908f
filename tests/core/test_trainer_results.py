"""What a session leaves: history, model fields, diagnostics, and what the backend was told."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from core.recording import RecordingBackend
from support.ranks import run_ranks

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.backend import RunSettings
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.histogram_plan import histogram_bytes
from torchgbdt.core.run_data import RawData, TrainingData
from torchgbdt.core.settings import TrainerSettings
from torchgbdt.core.trainer import TrainingSession

N_ROWS = 12


def raw(n_rows: int = N_ROWS, weights: Any = None) -> RawData:
    x = np.arange(float(n_rows))
    return RawData(HostMatrix(np.stack((x % 5, x), axis=1)), np.sin(x), weights, ("a", "b"))


def data(n_valids: int = 0, weights: Any = None) -> TrainingData:
    return TrainingData(raw(weights=weights), [raw(7) for _ in range(n_valids)])


def run(
    given: TrainingData,
    backend: OracleBackend | None = None,
    communicator: Communicator = SINGLE_RANK,
    **settings: Any,
) -> tuple[TrainingSession, Any]:
    checked = TrainerSettings(
        **{"n_estimators": 3, "max_depth": 2, "min_samples_leaf": 1, **settings}
    )
    session = TrainingSession(checked, backend or OracleBackend(), (), communicator)
    return session, session.run(given)


# -------------------------------------------------------------------------------------- history


@pytest.mark.parametrize(
    ("n_valids", "eval_metric", "expected"),
    [
        (0, None, {}),  # metrics on the training set cost time
        (1, None, {"valid_0": ["rmse"]}),
        (2, None, {"valid_0": ["rmse"], "valid_1": ["rmse"]}),
        (0, "mae", {"train": ["mae"]}),
        (1, ("mae", "rmse"), {"train": ["mae", "rmse"], "valid_0": ["mae", "rmse"]}),
    ],
)
def test_history_names_data_sets_and_metrics_in_order(
    n_valids: int, eval_metric: Any, expected: dict[str, list[str]]
) -> None:
    session, _ = run(data(n_valids), eval_metric=eval_metric)
    assert list(session.history) == list(expected)
    assert {name: list(metrics) for name, metrics in session.history.items()} == expected
    lengths = {len(values) for one in session.history.values() for values in one.values()}
    assert lengths <= {3}


def test_the_training_set_is_evaluated_only_if_a_metric_is_named() -> None:
    for eval_metric, expected in ((None, {1}), ("rmse", {0, 1})):
        backend = RecordingBackend()
        run(data(1), backend, eval_metric=eval_metric)
        assert {dataset for _, dataset in backend.arguments("compute_losses")} == expected


def test_history_is_the_weighted_metric_by_hand() -> None:
    # Labels 0 and 4, weights 3 and 1: baseline 1, residuals -1 and 3. One bin: each tree is a leaf
    # of 0, as the weighted gradients 3 and -3 cancel. rmse^2 = (3 * 1 + 1 * 9) / 4, mae = 6 / 4.
    one = RawData(HostMatrix(np.ones((2, 1))), np.array([0.0, 4.0]), np.array([3.0, 1.0]))
    session, model = run(TrainingData(one), eval_metric=("rmse", "mae"))
    assert model.baseline.tolist() == [1.0]
    assert session.history == {"train": {"rmse": [np.sqrt(3.0)] * 3, "mae": [1.5] * 3}}
    assert all(type(value) is float for value in session.history["train"]["rmse"])


def test_history_falls_on_the_training_set() -> None:
    session, _ = run(data(), eval_metric="rmse", n_estimators=6, learning_rate=0.5)
    values = session.history["train"]["rmse"]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.6 * values[0]


# ---------------------------------------------------------------------------------------- model


def test_the_model_carries_what_its_predictions_need() -> None:
    _, model = run(data(), learning_rate=np.float32(0.5))
    assert (model.objective, model.link) == ("squared_error", "identity")
    assert (model.n_features, model.feature_names) == (2, ("a", "b"))
    assert (model.n_outputs, model.trees_per_round, model.classes) == (1, 1, None)
    assert model.settings == dataclasses.asdict(
        TrainerSettings(n_estimators=3, max_depth=2, min_samples_leaf=1, learning_rate=0.5)
    )


def test_learning_rate_multiplies_leaf_values() -> None:
    # One tree of one leaf: no regularisation, baseline 0, labels 2 and 4: -G/H = 3.
    one = RawData(HostMatrix(np.ones((2, 1))), np.array([2.0, 4.0]))
    settings = {"baseline": 0.0, "reg_lambda": 0.0, "n_estimators": 1}
    for rate in (1.0, 0.25):
        _, model = run(TrainingData(one), learning_rate=rate, **settings)
        assert model.forest.nodes.value.tolist() == [[3 * rate]]


def test_each_round_fits_what_the_rounds_before_left() -> None:
    # Residuals 3, 3/2, 3/4 with learning rate 1/2.
    one = RawData(HostMatrix(np.ones((2, 1))), np.array([2.0, 4.0]))
    _, model = run(TrainingData(one), learning_rate=0.5, baseline=0.0, reg_lambda=0.0)
    assert model.forest.nodes.value.tolist() == [[1.5], [0.75], [0.375]]


# ----------------------------------------------------------------------- what the backend is told


def told(given: TrainingData, **settings: Any) -> RunSettings:
    backend = RecordingBackend()
    run(given, backend, **settings)
    ((_, _, run_settings),) = backend.arguments("prepare")
    return run_settings


@pytest.mark.parametrize("weights", [None, np.ones(N_ROWS), np.full(N_ROWS, 2.0)])
def test_hessians_are_constant_exactly_without_weights(weights: Any) -> None:
    assert told(data(weights=weights)).constant_hessian is (weights is None)


def test_weights_on_one_rank_make_hessians_vary_on_all() -> None:
    def work(communicator: Communicator) -> bool:
        backend = RecordingBackend()
        weights = np.ones(N_ROWS) if communicator.rank == 1 else None
        run(data(weights=weights), backend, communicator)
        return backend.arguments("prepare")[0][2].constant_hessian

    assert run_ranks(2, work) == [False, False]


def test_weights_of_validation_data_do_not_make_hessians_vary() -> None:
    assert told(TrainingData(raw(), [raw(weights=np.ones(N_ROWS))])).constant_hessian


def test_the_backend_gets_training_rows_and_validation_rows() -> None:
    backend = RecordingBackend()
    run(data(2), backend)
    ((train, valids, settings),) = backend.arguments("prepare")
    assert train.n_rows == N_ROWS
    assert [valid.n_rows for valid in valids] == [7, 7]
    assert settings.tree_outputs == 1
    assert settings.objective.name == "squared_error"


TOTAL_BINS = 5 + 1 + 12 + 1  # the two features of ``raw``, missing bins included


@pytest.mark.parametrize(
    ("budget", "max_depth", "min_samples_leaf", "expected"),
    [
        # budget in histograms; the last searched level of depth d has 2^(d-1) nodes
        (100, 1, 1, 1),
        (100, 3, 1, 4),
        (100, 5, 1, 16),
        (100, 6, 1, 25),  # 12 rows make no more than 2 * 12 + 1 nodes
        (100, None, 1, 25),
        (100, None, 5, 5),
        (7, None, 1, 7),
        (7.9, None, 1, 7),
        (2, 3, 1, 2),
        (1, None, 1, 1),
        (0.1, None, 1, 1),  # one at least
    ],
)
def test_histograms_are_held_within_the_budget(
    budget: float, max_depth: int | None, min_samples_leaf: int, expected: int
) -> None:
    assert histogram_bytes(TOTAL_BINS, 1) == TOTAL_BINS * 24  # count, gradient, Hessian: 8 each
    settings = told(
        data(),
        histogram_budget_mb=budget * TOTAL_BINS * 24 / 2**20,
        max_depth=max_depth,
        min_samples_leaf=min_samples_leaf,
    )
    assert settings.thresholds.total_bins == TOTAL_BINS
    assert settings.n_slots == expected


def test_as_many_histograms_are_held_as_rows_of_all_ranks_can_use() -> None:
    def work(communicator: Communicator) -> int:
        session, _ = run(data(), None, communicator, max_depth=None)
        return session.diagnostics()["histogram_slots"]

    assert run_ranks(2, work) == [2 * (2 * N_ROWS) + 1] * 2


def test_histogram_bytes_of_several_outputs() -> None:
    assert histogram_bytes(10, 3) == 10 * 8 * (1 + 2 * 3)


# ---------------------------------------------------------------------------------- diagnostics


def test_diagnostics_before_a_run_know_the_state_only() -> None:
    session = TrainingSession(TrainerSettings(), OracleBackend())
    assert session.diagnostics() == {"state": "created", "seconds": {}}


def test_diagnostics_after_a_run() -> None:
    session, _ = run(data(1), max_depth=2)
    found = session.diagnostics()
    seconds = found.pop("seconds")
    assert found == {
        "state": "completed",
        "n_rows": N_ROWS,
        "n_features": 2,
        "histogram_slots": 2,
        "backend": "oracle",
        "device": "cpu",
        "launches": 0,
        "synchronizations": 0,
        "bytes_to_host": 0,
        "peak_memory_bytes": found["peak_memory_bytes"],
        "raised_hessians": 0,
        "n_threads": 1,
        "numpy": np.__version__,
    }
    assert set(seconds) == {
        *("binning", "prepare", "gradients", "search_level", "route_rows"),
        *("update_predictions", "evaluate"),
    }
    assert all(value >= 0 for value in seconds.values())


def test_diagnostics_count_rows_of_all_ranks_and_only_those_that_count() -> None:
    def work(communicator: Communicator) -> int:
        weights = np.arange(float(N_ROWS))  # the first row weighs nothing
        session, _ = run(data(weights=weights), None, communicator)
        return session.diagnostics()["n_rows"]

    assert run_ranks(2, work) == [2 * (N_ROWS - 1)] * 2


def test_diagnostics_of_a_failed_session_say_so() -> None:
    session = TrainingSession(TrainerSettings(), OracleBackend())
    with pytest.raises(ValueError, match="y is missing"):
        session.run(TrainingData(RawData(raw().source, None)))
    assert session.diagnostics()["state"] == "failed"


def test_diagnostics_are_a_copy() -> None:
    session, _ = run(data())
    session.diagnostics()["seconds"].clear()
    assert session.diagnostics()["seconds"]
