"""Whatever fails, at any call of any state: FAILED, no model, nothing held, and usable again."""

import contextlib
import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.faults import METHODS, Fault, record_calls, stop_watching, watch
from support.ranks import run_ranks, shards
from support.runs import Rows, Scenario, make_session, train, training_data

from torchgbdt.core.backend import ComputeBackend, RunRows
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.errors import (
    BackendError,
    InvalidDataError,
    InvalidParameterError,
    StateError,
)
from torchgbdt.core.states import TrainerState
from torchgbdt.core.trainer import TrainingSession


def small() -> Scenario:
    """Two rounds of two levels, a validation set, both metrics: every call of the interface."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    settings = {"n_estimators": 2, "max_depth": 2, "max_bins": 8}
    return Scenario(Rows(X, y), settings, [Rows(X[:9], y[:9])])


def failed_run(
    backend: ComputeBackend, error: BaseException, observers: Any = ()
) -> TrainingSession:
    """The session of a run that must end with exactly this error."""
    session = make_session(backend, small(), observers)
    with pytest.raises(type(error)) as caught:
        session.run(training_data(small()))
    assert caught.value is error
    return session


def assert_given_up(session: TrainingSession, backend: ComputeBackend) -> None:
    """The session is FAILED for good and the backend holds no run."""
    assert session.state is TrainerState.FAILED
    with pytest.raises(StateError, match="failed"):
        session.run(training_data(small()))
    with pytest.raises(StateError):
        backend.run_settings()


def n_calls(under_test: BackendUnderTest) -> int:
    backend = under_test.make()
    return len(record_calls(backend, lambda: train(backend, small())))


def test_a_small_run_makes_every_call_that_training_has(under_test: BackendUnderTest) -> None:
    backend = under_test.make()
    calls = set(record_calls(backend, lambda: train(backend, small())))
    for_others = {"predict", "predict_leaves", "load_gradients", "exchange_histograms"}
    for_checks = {name for name in METHODS if name.startswith("read_")} | {"synchronize"}
    defaults = {"run_settings", "run_rows", "compute_losses", "sum_losses", "rank_rows"}
    assert calls >= set(METHODS) - for_others - for_checks - defaults


@pytest.mark.parametrize("does_its_work", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("kind", [RuntimeError, MemoryError, KeyboardInterrupt])
def test_an_error_at_any_call_leaves_nothing_behind(
    under_test: BackendUnderTest, kind: type[BaseException], does_its_work: bool
) -> None:
    expected = train(under_test.make(), small()).model.digest()
    for position in range(n_calls(under_test)):
        backend, error = under_test.make(), kind("planted")
        fault = Fault(position, error, does_its_work)
        watch(backend, fault)
        session = failed_run(backend, error)
        assert not hasattr(error, "__notes__")  # releasing went well
        assert fault.calls[-1] == "release", f"not released after {fault.calls[position]}"
        stop_watching(backend)
        assert_given_up(session, backend)
        assert train(backend, small()).model.digest() == expected


def run_two_ranks(backends: list[ComputeBackend]) -> tuple[list[TrainingSession], list[Any]]:
    """Sessions of a small run on two ranks, and what each ended with: a digest or an error."""
    parts = shards(small(), [0, 25, 40])
    sessions, ends = [None, None], [None, None]

    def work(communicator: Communicator) -> None:
        rank = communicator.rank
        session = make_session(backends[rank], parts[rank], (), communicator)
        sessions[rank] = session
        try:
            ends[rank] = session.run(training_data(parts[rank])).digest()
        except BaseException as error:
            ends[rank] = error
            raise  # so that the other rank is woken

    with contextlib.suppress(Exception):
        run_ranks(2, work)
    return sessions, ends


@pytest.mark.parametrize("does_its_work", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("struck", [0, 1])
def test_an_error_on_one_rank_at_any_call_fails_both(
    under_test: BackendUnderTest, struck: int, does_its_work: bool
) -> None:
    backends = [under_test.make(), under_test.make()]
    calls = record_calls(backends[struck], lambda: run_two_ranks(backends))
    assert "exchange_histograms" in calls and calls[-2:] == ["diagnostics", "release"]
    for position in range(len(calls)):
        backends = [under_test.make(), under_test.make()]
        fault = Fault(position, RuntimeError("planted"), does_its_work)
        watch(backends[struck], fault)
        sessions, ends = run_two_ranks(backends)
        stop_watching(backends[struck])

        assert ends[struck] is fault.error
        assert_given_up(sessions[struck], backends[struck])
        other = 1 - struck
        if position >= len(calls) - 2 and sessions[other].state is TrainerState.COMPLETED:
            continue  # the ranks need each other no more: this one may have gone on to its end
        assert "another rank" in str(ends[other])
        assert_given_up(sessions[other], backends[other])


def remember_bins(backend: ComputeBackend) -> list[Any]:
    """Weak references to the training bins of every run to come."""
    bins: list[Any] = []
    prepare = backend.prepare

    def prepare_and_remember(rows: RunRows, *rest: Any) -> None:
        bins.append(weakref.ref(rows.bins))
        prepare(rows, *rest)

    backend.prepare = prepare_and_remember  # type: ignore[method-assign]
    return bins


def run_and_forget_the_error(backend: ComputeBackend) -> TrainingSession:
    session = make_session(backend, small())
    try:
        session.run(training_data(small()))
    except RuntimeError as error:
        error.__traceback__ = None  # it holds the data as well
    return session


def test_an_error_at_any_call_frees_the_data(under_test: BackendUnderTest) -> None:
    bins: list[Any] = []
    alive = []  # sessions and backends outlive their data
    for position in range(n_calls(under_test)):
        backend = under_test.make()
        watch(backend, Fault(position, RuntimeError("planted"), True))
        remembered = remember_bins(backend)
        alive.append((backend, run_and_forget_the_error(backend)))
        bins += remembered
    gc.collect()
    assert {session.state for _, session in alive} == {TrainerState.FAILED}
    assert len(bins) > 10 and {reference() is None for reference in bins} == {True}


def test_a_completed_session_keeps_only_its_model(under_test: BackendUnderTest) -> None:
    backend = under_test.make()
    bins = remember_bins(backend)
    session = run_and_forget_the_error(backend)
    gc.collect()
    assert session.state is TrainerState.COMPLETED
    assert [reference() for reference in bins] == [None]


def test_an_error_while_releasing_is_noted_on_the_first(under_test: BackendUnderTest) -> None:
    backend, first = under_test.make(), RuntimeError("first")
    really_release = backend.release

    def fail_twice(name: str, call: Callable[[], Any]) -> Any:
        if name in ("round_gradients", "release"):
            raise first if name == "round_gradients" else RuntimeError("second")
        return call()

    watch(backend, fail_twice)
    session = failed_run(backend, first)
    assert session.state is TrainerState.FAILED
    assert ["second" in note for note in first.__notes__] == [True]
    really_release()


class Raises:
    """A callback that raises at one event."""

    def __init__(self, event: str, error: BaseException) -> None:
        self._event, self._error = event, error

    def __getattr__(self, name: str) -> Callable[[Any], None]:
        def react(context: Any) -> None:
            if name == self._event:
                raise self._error

        return react


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize(
    "event", ["on_train_begin", "on_round_begin", "on_round_end", "on_train_end"]
)
def test_a_callback_that_raises_fails_the_session(
    under_test: BackendUnderTest, event: str, kind: type[BaseException]
) -> None:
    backend, error = under_test.make(), kind("planted")
    session = failed_run(backend, error, [Raises(event, error)])
    assert_given_up(session, backend)


def run_patched(backend: ComputeBackend, one: Scenario, **methods: Any) -> TrainingSession:
    for name, method in methods.items():
        setattr(backend, name, method)
    session = make_session(backend, one)
    session.run(training_data(one))
    return session


def test_gradients_beyond_float32_are_an_error_of_the_data(backend: ComputeBackend) -> None:
    rows = Rows(np.arange(20.0)[:, None], np.full(20, 1e38), np.full(20, 1e10))
    session = make_session(backend, Scenario(rows, {"baseline": 0.0}))
    with pytest.raises(InvalidDataError, match="NaN or infinite"):
        session.run(training_data(Scenario(rows)))
    assert_given_up(session, backend)


@pytest.mark.parametrize(
    ("g", "h", "message"),
    [(np.nan, 1.0, "NaN or infinite"), (0.0, np.inf, "NaN or infinite"), (0.0, -1.0, "negative")],
    ids=["NaN gradient", "infinite Hessian", "negative Hessian"],
)
def test_bad_gradients_from_elsewhere_are_an_error_of_the_data(
    backend: ComputeBackend, g: float, h: float, message: str
) -> None:
    gradients, hessians = np.ones((40, 1), np.float32), np.ones((40, 1), np.float32)
    gradients[7], hessians[7] = g, h
    weighted = Scenario(Rows(small().train.X, small().train.y, np.ones(40)))
    with pytest.raises(InvalidDataError, match=message):
        run_patched(
            backend,
            weighted,
            compute_gradients=lambda output: backend.load_gradients(gradients, hessians),
        )


def test_rows_that_get_lost_are_an_error_of_the_backend(backend: ComputeBackend) -> None:
    route_rows = backend.route_rows
    with pytest.raises(BackendError, match="routed other numbers of rows"):
        run_patched(backend, small(), route_rows=lambda *args: route_rows(*args) + 1)
    with pytest.raises(StateError):
        backend.run_settings()


def test_leaf_values_beyond_float32_are_an_error_of_the_settings(backend: ComputeBackend) -> None:
    one = small().changed(learning_rate=1e38, reg_lambda=0.0)
    rows = Rows(one.train.X, one.train.y * 1e3)
    session = make_session(backend, one.with_train(rows))
    with pytest.raises(InvalidParameterError, match="leaf value exceeds float32"):
        session.run(training_data(one.with_train(rows)))
    assert_given_up(session, backend)
