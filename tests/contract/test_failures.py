"""Whatever fails, at any call of any state: FAILED, no model, nothing held, and usable again."""

import contextlib
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from support.backends import BackendUnderTest
from support.faults import METHODS, Fault, record_calls, stop_watching, watch
from support.ranks import run_ranks, shards
from support.runs import Scenario, make_session, train, training_data
from support.small_run import assert_given_up, failed_run, small

from torchgbdt.core.backend import ComputeBackend, RunRows
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.states import TrainerState
from torchgbdt.core.trainer import TrainingSession

pytestmark = pytest.mark.core_laws


def calls_of(under_test: BackendUnderTest, one: Scenario) -> list[str]:
    backend = under_test.make()
    return record_calls(backend, lambda: train(backend, one))


def chosen(calls: list[str], config: pytest.Config) -> list[int]:
    """The first and the last call of each name; with --exhaustive every single one."""
    if config.getoption("--exhaustive"):
        return list(range(len(calls)))
    last = {name: position for position, name in enumerate(calls)}
    return sorted({*(calls.index(name) for name in last), *last.values()})


@pytest.mark.parametrize(
    ("objective", "also"),
    [("squared_error", set()), ("logistic", {"count_pairs", "predict"}), ("softmax", set())],
)
def test_a_small_run_makes_every_call_that_training_has(
    under_test: BackendUnderTest, objective: str, also: set[str]
) -> None:
    backend = under_test.make()
    calls = set(record_calls(backend, lambda: train(backend, small(objective))))
    for_others = {"predict", "predict_leaves", "load_gradients", "exchange_histograms"}
    within_others = {"build_histograms", "subtract_histograms", "find_splits"}  # of search_level
    for_checks = {name for name in METHODS if name.startswith("read_")} | {"synchronize"}
    defaults = {
        "run_settings",
        "run_rows",
        "compute_losses",
        "sum_losses",
        "rank_rows",
        "count_pairs",
    }
    assert calls >= (set(METHODS) - for_others - within_others - for_checks - defaults) | also


@pytest.mark.parametrize("does_its_work", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("objective", "kind"),
    [
        *(("squared_error", kind) for kind in (RuntimeError, MemoryError, KeyboardInterrupt)),
        ("logistic", RuntimeError),
        ("softmax", KeyboardInterrupt),
    ],
)
def test_an_error_at_any_call_leaves_nothing_behind(
    request: pytest.FixtureRequest,
    under_test: BackendUnderTest,
    objective: str,
    kind: type[BaseException],
    does_its_work: bool,
) -> None:
    one = small(objective)
    expected = train(under_test.make(), one).model.digest()
    for position in chosen(calls_of(under_test, one), request.config):
        backend, error = under_test.make(), kind("planted")
        fault = Fault(position, error, does_its_work)
        watch(backend, fault)
        session = failed_run(backend, error, one=one)
        assert not hasattr(error, "__notes__")  # releasing went well
        assert fault.calls[-1] == "release", f"not released after {fault.calls[position]}"
        stop_watching(backend)
        assert_given_up(session, backend)
        assert train(backend, one).model.digest() == expected


def run_two_ranks(
    backends: list[ComputeBackend], one: Scenario
) -> tuple[list[TrainingSession], list[Any]]:
    """Sessions of a small run on two ranks, and what each ended with: a digest or an error."""
    parts = shards(one, [0, 25, 40])
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
@pytest.mark.parametrize(
    ("objective", "struck"), [("squared_error", 0), ("squared_error", 1), ("logistic", 1)]
)
def test_an_error_on_one_rank_at_any_call_fails_both(
    request: pytest.FixtureRequest,
    under_test: BackendUnderTest,
    objective: str,
    struck: int,
    does_its_work: bool,
) -> None:
    one = small(objective)
    backends = [under_test.make(), under_test.make()]
    calls = record_calls(backends[struck], lambda: run_two_ranks(backends, one))
    assert "exchange_histograms" in calls and calls[-2:] == ["diagnostics", "release"]
    for position in chosen(calls, request.config):
        backends = [under_test.make(), under_test.make()]
        fault = Fault(position, RuntimeError("planted"), does_its_work)
        watch(backends[struck], fault)
        sessions, ends = run_two_ranks(backends, one)
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


def test_an_error_at_any_call_frees_the_data(
    request: pytest.FixtureRequest, under_test: BackendUnderTest
) -> None:
    bins: list[Any] = []
    alive = []  # sessions and backends outlive their data
    for position in chosen(calls_of(under_test, small()), request.config):
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
