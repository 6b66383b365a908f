"""A training session: its states, its callbacks, its history, and what it hands over."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from core.recording import RecordingBackend
from support.exact import assert_identical
from support.ranks import run_ranks

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError, StateError
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.observer import TrainingContext
from torchgbdt.core.raw_predictions import raw_float32
from torchgbdt.core.run_data import RawData, TrainingData
from torchgbdt.core.settings import TrainerSettings
from torchgbdt.core.states import TrainerState
from torchgbdt.core.trainer import TrainingSession

ROWS = 12


def raw(n_rows: int = ROWS, weights: Any = None) -> RawData:
    x = np.arange(float(n_rows))
    return RawData(HostMatrix(np.stack((x % 5, x), axis=1)), np.sin(x), weights, ("a", "b"))


def data(n_valids: int = 0) -> TrainingData:
    return TrainingData(raw(), [raw(7) for _ in range(n_valids)])


def make(
    *observers: Any,
    backend: OracleBackend | None = None,
    communicator: Communicator = SINGLE_RANK,
    present: Any = None,
    **settings: Any,
) -> TrainingSession:
    checked = TrainerSettings(
        **{"n_estimators": 4, "max_depth": 2, "min_samples_leaf": 1, **settings}
    )
    more = {} if present is None else {"present": present}
    return TrainingSession(checked, backend or OracleBackend(), observers, communicator, **more)


class Observer:
    """Does what it is told at an event: at="on_round_end", in_round=1, do=lambda context: ..."""

    def __init__(self, at: str = "", do: Any = None, in_round: int | None = None) -> None:
        self.at, self.do, self.in_round = at, do, in_round
        self.events: list[tuple[str, int]] = []

    def _see(self, event: str, context: TrainingContext) -> None:
        self.events.append((event, context.round))
        if event == self.at and self.in_round in (None, context.round):
            self.do(context)

    def on_train_begin(self, context: TrainingContext) -> None:
        self._see("on_train_begin", context)

    def on_round_begin(self, context: TrainingContext) -> None:
        self._see("on_round_begin", context)

    def on_round_end(self, context: TrainingContext) -> None:
        self._see("on_round_end", context)

    def on_train_end(self, context: TrainingContext) -> None:
        self._see("on_train_end", context)


def events(n_rounds: int) -> list[tuple[str, int]]:
    rounds = [(f"on_round_{side}", i) for i in range(n_rounds) for side in ("begin", "end")]
    return [("on_train_begin", -1), *rounds, ("on_train_end", n_rounds - 1)]


# --------------------------------------------------------------------------------------- states


def test_a_session_begins_created_and_ends_completed() -> None:
    session = make()
    assert session.state is TrainerState.CREATED
    model = session.run(data())
    assert session.state is TrainerState.COMPLETED
    assert model.n_rounds == 4


def test_backend_calls_meet_the_session_in_the_state_they_belong_to() -> None:
    states: dict[str, TrainerState] = {}

    def note(name: str) -> Any:
        def answer(arguments: Any, oracle: Any) -> Any:
            states.setdefault(name, session.state)
            return oracle()

        return answer

    names = ("bin_features", "prepare", "sample_rows", "compute_losses", "diagnostics", "release")
    session = make(backend=RecordingBackend(**{name: note(name) for name in names}))
    session.run(data(1))
    assert states == {
        "bin_features": TrainerState.VALIDATED,
        "prepare": TrainerState.QUANTIZED,
        "sample_rows": TrainerState.ITERATING,
        "compute_losses": TrainerState.ITERATING,
        "diagnostics": TrainerState.ITERATING,
        "release": TrainerState.MODEL_FINALIZED,
    }


def test_a_state_that_does_not_follow_is_refused() -> None:
    session = make()
    with pytest.raises(StateError, match=r"^created cannot be followed by iterating\.$"):
        session._enter(TrainerState.ITERATING)
    assert session.state is TrainerState.CREATED


def test_a_state_whose_resources_do_not_exist_is_refused() -> None:
    session = make()
    with pytest.raises(StateError, match=r"^validated needs \['input'\], which do not exist\.$"):
        session._enter(TrainerState.VALIDATED)
    assert session.state is TrainerState.CREATED


def test_a_session_runs_once() -> None:
    session = make()
    session.run(data())
    with pytest.raises(StateError) as caught:
        session.run(data())
    assert str(caught.value) == "this session is completed; start a new one to train again."
    assert session.state is TrainerState.COMPLETED


def test_a_failed_session_does_not_run_again() -> None:
    session = make()
    with pytest.raises(InvalidDataError):
        session.run(TrainingData(RawData(raw().source, None)))
    assert session.state is TrainerState.FAILED
    with pytest.raises(StateError, match="this session is failed"):
        session.run(data())
    assert session.state is TrainerState.FAILED


@pytest.mark.parametrize(
    "event", ["on_train_begin", "on_round_begin", "on_round_end", "on_train_end"]
)
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, KeyError, MemoryError])
def test_whatever_a_callback_raises_fails_the_session_and_is_raised_on(
    event: str, error: type[BaseException]
) -> None:
    def fail(context: TrainingContext) -> None:
        raise error("from the callback")

    backend = RecordingBackend()
    session = make(Observer(event, fail), backend=backend)
    with pytest.raises(error, match="from the callback"):
        session.run(data())
    assert session.state is TrainerState.FAILED
    assert backend.names[-1] == "release"


def test_a_second_error_while_releasing_is_noted_on_the_first() -> None:
    def fail(arguments: Any, oracle: Any) -> None:
        raise OSError("no way back")

    def stop(context: TrainingContext) -> None:
        raise KeyError("first")

    session = make(Observer("on_round_end", stop), backend=RecordingBackend(release=fail))
    with pytest.raises(KeyError, match="first") as caught:
        session.run(data())
    assert caught.value.__notes__ == ["giving up the run failed as well: OSError('no way back')"]
    assert session.state is TrainerState.FAILED


def test_the_backend_is_released_once_after_everything_was_read() -> None:
    backend = RecordingBackend()
    make(backend=backend).run(data())
    assert backend.names[-2:] == ["diagnostics", "release"]
    assert backend.names.count("release") == 1


def test_a_completed_session_holds_no_data() -> None:
    session, given = make(), data(1)
    sources = [weakref.ref(one.source) for one in (given.train, *given.valids)]
    session.run(given)
    del given
    gc.collect()
    assert [source() for source in sources] == [None, None]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"objective": "poisson"}, "objective"),
        ({"eval_metric": "auc"}, "eval_metric"),
        ({"objective": "logistic", "eval_metric": "rmse"}, "eval_metric"),
    ],
)
def test_unknown_names_are_refused_before_anything_runs(settings: Any, name: str) -> None:
    with pytest.raises(InvalidParameterError, match=f"^{name} must be "):
        make(**settings)


# ------------------------------------------------------------------------------------ callbacks


def test_all_observers_see_all_events_in_order() -> None:
    first, second = Observer(), Observer()
    make(first, second).run(data())
    assert first.events == second.events == events(4)


def test_the_history_holds_the_round_that_ended() -> None:
    lengths: list[tuple[int, int]] = []

    def note(context: TrainingContext) -> None:
        lengths.append((context.round, len(context.history["valid_0"]["rmse"])))

    make(Observer("on_round_begin", note), Observer("on_round_end", note)).run(data(1))
    assert lengths == [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (3, 4)]


@pytest.mark.parametrize(
    ("event", "in_round", "n_rounds"),
    [
        ("on_train_begin", None, 1),
        ("on_round_begin", 0, 1),
        ("on_round_begin", 2, 3),
        ("on_round_end", 0, 1),
        ("on_round_end", 2, 3),
        ("on_round_end", 3, 4),
        ("on_train_end", None, 4),
    ],
)
def test_a_stop_ends_training_after_the_round(
    event: str, in_round: int | None, n_rounds: int
) -> None:
    asking, other = Observer(event, TrainingContext.request_stop, in_round), Observer()
    model = make(asking, other).run(data())
    assert model.n_rounds == n_rounds
    assert asking.events == other.events == events(n_rounds)
    assert model.digest() == make(n_estimators=n_rounds).run(data()).digest()


@pytest.mark.parametrize("asking_rank", [0, 1])
def test_a_stop_on_one_rank_stops_all(asking_rank: int) -> None:
    def work(communicator: Communicator) -> int:
        asks = communicator.rank == asking_rank
        observer = Observer("on_round_end" if asks else "", TrainingContext.request_stop, 1)
        return make(observer, communicator=communicator).run(data()).n_rounds

    assert run_ranks(2, work) == [2, 2]


@pytest.mark.parametrize("best", [0, 1, 3])
def test_the_model_is_cut_back_to_the_round_that_is_kept(best: int) -> None:
    def keep(context: TrainingContext) -> None:
        context.keep_best(best)

    session = make(Observer("on_train_end", keep))
    model = session.run(data(1))
    assert model.best_iteration == best
    assert model.n_rounds == best + 1
    assert model.digest() == make(n_estimators=best + 1).run(data()).digest()
    assert len(session.history["valid_0"]["rmse"]) == 4


def test_the_round_kept_last_counts() -> None:
    keep_each = Observer("on_round_end", lambda context: context.keep_best(context.round // 2))
    assert make(keep_each).run(data()).best_iteration == 1


def test_without_a_kept_round_the_model_has_them_all() -> None:
    model = make().run(data())
    assert (model.best_iteration, model.n_rounds) == (None, 4)


def test_callbacks_read_raw_predictions_of_each_data_set() -> None:
    seen: dict[tuple[str, int], np.ndarray] = {}

    def read(context: TrainingContext) -> None:
        for name in ("train", "valid_0"):
            seen[name, context.round] = context.raw_predictions(name)
        with pytest.raises(InvalidParameterError, match="dataset must be one of"):
            context.raw_predictions("valid_1")

    model = make(Observer("on_train_begin", read), Observer("on_round_end", read)).run(data(1))
    for (name, round_index), found in seen.items():
        source = raw(ROWS if name == "train" else 7).source
        sums = np.zeros((source.n_rows, 1), np.float32)
        OracleBackend().predict(model.truncate(round_index + 1).forest, source, sums)
        assert_identical(found, raw_float32(model.baseline, sums, None))
    assert len(seen) == 10


def test_margins_are_part_of_raw_predictions() -> None:
    seen: list[np.ndarray] = []
    margins = np.linspace(-1, 1, ROWS).astype(np.float32)
    read = Observer("on_train_begin", lambda context: seen.append(context.raw_predictions()))
    make(read).run(TrainingData(raw(), margins=margins))
    assert_identical(seen[0], margins[:, None])


def test_predictions_are_presented_as_the_caller_wants_them() -> None:
    seen: list[Any] = []
    read = Observer("on_train_end", lambda context: seen.append(context.raw_predictions()))
    make(read, present=lambda array: ("presented", array.shape)).run(data())
    assert seen == [("presented", (ROWS, 1))]


def test_the_context_knows_the_run() -> None:
    seen: list[TrainingContext] = []
    session = make(Observer("on_train_begin", seen.append), eval_metric=["mae", "rmse"])
    session.run(data())
    assert seen[0].n_estimators == 4
    assert seen[0].higher_is_better == {"mae": False, "rmse": False}
    assert seen[0].history is session.history


def test_what_the_backend_counted_is_reported_after_a_failure_too() -> None:
    def stop(context: TrainingContext) -> None:
        raise KeyError

    session = make(Observer("on_round_end", stop))
    with pytest.raises(KeyError):
        session.run(data())
    found = session.diagnostics()
    assert (found["state"], found["backend"]) == ("failed", "oracle")
    assert found["peak_memory_bytes"] > 0  # taken down before the run was released


def test_an_interrupt_on_the_way_out_is_raised_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    session = make()
    enter = session._enter

    def enter_and_interrupt(state: TrainerState, **gained: Any) -> None:
        enter(state, **gained)
        if state is TrainerState.COMPLETED:
            raise KeyboardInterrupt

    monkeypatch.setattr(session, "_enter", enter_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        session.run(data())
    assert session.state is TrainerState.COMPLETED
