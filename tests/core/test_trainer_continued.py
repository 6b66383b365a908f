"""Continued training: a model and more rounds are the model of all rounds."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from core.recording import RecordingBackend
from core.sessions import (
    N_ROWS,
    OBJECTIVES,
    At,
    data_for,
    labels_for,
    n_outputs,
    raw_for,
    run,
    session_for,
)
from core.small_runs import binned
from support.exact import assert_identical
from support.ranks import run_ranks

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.model import Model
from torchgbdt.core.observer import TrainingContext
from torchgbdt.core.raw_predictions import raw_float32
from torchgbdt.core.run_data import RawData, TrainingData
from torchgbdt.core.states import TrainerState

every_objective = pytest.mark.parametrize("objective", OBJECTIVES)


def continued(
    first: Model, objective: str, *observers: Any, n_valids: int = 0, **settings: Any
) -> Model:
    return run(data_for(objective, n_valids, init_model=first), objective, *observers, **settings)


# ------------------------------------------------------------------------------------ the model


@every_objective
@pytest.mark.parametrize("rounds", [(1, 4), (2, 3), (4, 1)])
def test_rounds_in_two_runs_are_the_rounds_of_one(objective: str, rounds: tuple[int, int]) -> None:
    whole = run(data_for(objective), objective, n_estimators=5)
    first = run(data_for(objective), objective, n_estimators=rounds[0])
    second = continued(first, objective, n_estimators=rounds[1])
    assert second.digest() == whole.digest()
    assert_identical(second.forest, whole.forest)
    assert first.digest() != whole.digest()


@every_objective
def test_a_data_set_and_its_rows_continue_alike(objective: str) -> None:
    first = run(data_for(objective), objective)
    rows, data = raw_for(objective), binned(raw_for(objective), 16)
    few = RawData(HostMatrix(rows.source.values[:5]), rows.labels[:5])
    sessions = [session_for(objective), session_for(objective)]
    models = [
        sessions[0].run(TrainingData(rows, [few], init_model=first)),
        sessions[1].run(TrainingData(data, [data.subset(np.arange(5))], init_model=first)),
    ]
    assert models[0].digest() == models[1].digest()
    assert sessions[0].history == sessions[1].history


@every_objective
def test_a_model_without_rounds_continues_to_any_model(objective: str) -> None:
    whole = run(data_for(objective), objective)
    assert continued(whole.truncate(0), objective).digest() == whole.digest()


@every_objective
def test_other_data_may_follow_and_baseline_and_classes_stay(objective: str) -> None:
    first = run(data_for(objective), objective)
    other = raw_for(objective, labels=labels_for(objective)[::-1])
    # of classes only one is left
    kept = other.labels == other.labels[0] if first.classes is not None else slice(None)
    X, y = other.source.values[kept], other.labels[kept]
    second = run(TrainingData(RawData(HostMatrix(X), y), init_model=first), objective)
    assert_identical(second.baseline, first.baseline)
    assert second.n_rounds == 6
    assert second.truncate(3).digest() == first.digest()
    if first.classes is not None:
        assert second.classes.tolist() == first.classes.tolist()


@every_objective
def test_rows_that_do_not_count_start_nowhere(objective: str) -> None:
    weights = np.array([1.0, 0, 2] * (N_ROWS // 3))
    data = TrainingData(raw_for(objective, weights=weights))
    first = run(data, objective)
    second = run(dataclasses.replace(data, init_model=first), objective, n_estimators=2)
    assert second.digest() == run(data, objective, n_estimators=5).digest()


@every_objective
def test_margins_are_given_to_each_run(objective: str) -> None:
    margins = np.random.default_rng(0).normal(size=(N_ROWS, n_outputs(objective)))
    data = data_for(objective, margins=margins)
    first = run(data, objective)
    second = run(dataclasses.replace(data, init_model=first), objective, n_estimators=2)
    assert second.digest() == run(data, objective, n_estimators=5).digest()


def test_settings_are_those_of_the_last_run_and_no_best_round_is_inherited() -> None:
    keep = At("on_train_end", lambda context: context.keep_best(1))
    first = run(data_for("softmax"), "softmax", keep)
    assert first.best_iteration == 1
    second = continued(first, "softmax", n_estimators=2, learning_rate=0.5)
    assert (second.best_iteration, second.n_rounds) == (None, 4)
    assert second.settings["learning_rate"] == 0.5
    assert second.settings["n_estimators"] == 2


@every_objective
def test_the_first_model_stays_as_it_was(objective: str) -> None:
    first = run(data_for(objective), objective)
    before = {name: array.copy() for name, array in vars(first.forest.nodes).items()}
    second = continued(first, objective)
    for name, array in vars(first.forest.nodes).items():
        assert_identical(array, before[name])
        assert not np.shares_memory(array, getattr(second.forest.nodes, name))


@every_objective
def test_ranks_continue_as_one(objective: str) -> None:
    first = run(data_for(objective), objective)
    X, y = raw_for(objective).source.values, labels_for(objective)
    shards = [slice(0, 5), slice(5, 5), slice(5, N_ROWS)]

    def work(communicator: Communicator) -> str:
        own = shards[communicator.rank]
        data = TrainingData(RawData(HostMatrix(X[own]), y[own]), init_model=first)
        return session_for(objective, communicator=communicator).run(data).digest()

    expected = run(data_for(objective), objective, n_estimators=6).digest()
    assert run_ranks(3, work) == [expected] * 3


# -------------------------------------------------------------------------- rounds and callbacks


@every_objective
def test_history_goes_on_where_it_would_have(objective: str) -> None:
    whole = session_for(objective, n_estimators=5)
    whole.run(data_for(objective, 2))
    first = run(data_for(objective), objective)
    second = session_for(objective, n_estimators=2)
    second.run(data_for(objective, 2, init_model=first))
    assert list(second.history) == ["valid_0", "valid_1"]
    for name, metrics in second.history.items():
        for metric, values in metrics.items():
            assert_identical(values, whole.history[name][metric][3:])


def test_rounds_are_counted_on() -> None:
    seen: list[tuple[str, int, int, int]] = []

    def note(event: str) -> At:
        return At(event, lambda c: seen.append((event, c.round, c.first_round, c.n_estimators)))

    events = ["on_train_begin", "on_round_begin", "on_round_end", "on_train_end"]
    first = run(data_for("softmax"), "softmax")
    continued(first, "softmax", *map(note, events), n_estimators=2)
    assert seen == [
        ("on_train_begin", 2, 3, 2),
        *((event, 3, 3, 2) for event in events[1:3]),
        *((event, 4, 3, 2) for event in events[1:3]),
        ("on_train_end", 4, 3, 2),
    ]


@every_objective
def test_trees_are_numbered_on(objective: str) -> None:
    first = run(data_for(objective), objective)
    backend = RecordingBackend()
    continued(first, objective, backend=backend, n_estimators=2)
    k = n_outputs(objective)
    assert [tree for (tree,) in backend.arguments("sample_rows")] == [*range(3 * k, 5 * k)]


@every_objective
def test_a_run_starts_at_the_predictions_of_the_model(objective: str) -> None:
    seen: dict[str, np.ndarray] = {}

    def read(context: TrainingContext) -> None:
        seen.update({name: context.raw_predictions(name) for name in ("train", "valid_0")})

    first = run(data_for(objective), objective)
    continued(first, objective, At("on_train_begin", read), n_valids=1)
    for name, n_rows in (("train", N_ROWS), ("valid_0", 11)):
        sums = np.zeros((n_rows, n_outputs(objective)), np.float32)
        OracleBackend().predict(first.forest, raw_for(objective, n_rows).source, sums)
        assert_identical(seen[name], raw_float32(first.baseline, sums, None))


@every_objective
@pytest.mark.parametrize("best", [2, 3, 4, 5])
def test_the_best_round_is_counted_from_the_first_of_all(objective: str, best: int) -> None:
    first = run(data_for(objective), objective)
    found = continued(first, objective, At("on_train_end", lambda context: context.keep_best(best)))
    assert (found.best_iteration, found.n_rounds) == (best, best + 1)
    whole = run(data_for(objective), objective, n_estimators=best + 1)
    assert found.digest() == whole.digest()


@pytest.mark.parametrize("best", [-1, 0, 1, 6])
def test_rounds_of_the_first_model_are_not_cut(best: int) -> None:
    first = run(data_for("softmax"), "softmax")
    keep = At("on_train_end", lambda context: context.keep_best(best))
    with pytest.raises(InvalidParameterError) as caught:
        continued(first, "softmax", keep)
    assert str(caught.value) == f"round_index must be an integer from 2 to 5; found {best}."


@every_objective
def test_the_model_that_is_continued_is_measured_before_the_first_round(objective: str) -> None:
    seen: list[Any] = []
    note = At("on_train_begin", lambda context: seen.append(context.first_values))
    sessions = [session_for(objective, note) for _ in range(2)]
    first = sessions[0].run(data_for(objective, 1))
    sessions[1].run(data_for(objective, 1, init_model=first))
    ended = {
        name: {metric: values[-1] for metric, values in metrics.items()}
        for name, metrics in sessions[0].history.items()
    }
    assert seen == [{}, ended]


def test_nothing_but_the_model_that_is_continued_may_be_kept() -> None:
    first = run(data_for("softmax"), "softmax")
    keep = At("on_train_begin", lambda context: context.keep_best(2))
    found = continued(first, "softmax", keep)
    assert (found.best_iteration, found.digest()) == (2, first.digest())


# ------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changes", "settings", "message"),
    [
        ({}, {"objective": "squared_error"}, "init_model was trained with objective='softmax'"),
        ({"feature_names": ("b", "a")}, {}, r"init_model has the features \['a', 'b'\]"),
        ({"source": HostMatrix(np.ones((N_ROWS, 3)))}, {}, "init_model has 2 features; X has 3"),
        ({"labels": np.arange(N_ROWS)}, {}, "y has the label 0 in row 0, which is no class"),
        ({"labels": np.full(N_ROWS, "10")}, {}, "y holds texts; the classes are integers"),
        ({}, {"baseline": 0.5}, "baseline=0.5 cannot be set with init_model, whose baseline is"),
    ],
)
def test_what_does_not_continue_the_model_fails_and_leaves_it_alone(
    changes: dict[str, Any], settings: dict[str, Any], message: str
) -> None:
    names = {"feature_names": ("a", "b")}
    first = run(TrainingData(raw_for("softmax", **names)), "softmax")
    before = first.digest()
    backend = RecordingBackend()
    session = session_for(**{"objective": "softmax", "backend": backend, **settings})
    data = TrainingData(raw_for("softmax", **{**names, **changes}), init_model=first)
    with pytest.raises((InvalidDataError, InvalidParameterError), match=f"^{message}"):
        session.run(data)
    assert session.state is TrainerState.FAILED
    assert first.digest() == before
    assert "prepare" not in backend.names
    assert backend.names[-1] == "release"


def test_other_bins_than_those_of_the_model_are_refused_by_name() -> None:
    first = run(data_for("squared_error"), "squared_error")
    rows = raw_for("squared_error")
    other = binned(RawData(HostMatrix(2 * rows.source.values), rows.labels), 16)
    with pytest.raises(InvalidDataError, match=r"^X: init_model splits feature"):
        run(TrainingData(other, init_model=first), "squared_error")


def test_a_failed_run_leaves_the_first_model_as_it_was_and_it_can_go_on() -> None:
    def fail(context: TrainingContext) -> None:
        if context.round == 4:
            raise KeyError

    first = run(data_for("softmax"), "softmax")
    before = first.digest()
    with pytest.raises(KeyError):
        continued(first, "softmax", At("on_round_end", fail))
    assert (first.digest(), first.n_rounds) == (before, 3)
    whole = run(data_for("softmax"), "softmax", n_estimators=6)
    assert continued(first, "softmax").digest() == whole.digest()
